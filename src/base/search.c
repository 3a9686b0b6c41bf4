#include "base/search.h"

#include <string.h>

static uint64_t
member_at(const char *first, size_t stride, size_t at)
{
    uint64_t member;

    memcpy(&member, first + at * stride, sizeof member);
    return member;
}

size_t
bh_search_at(size_t stride, size_t count, const void *first, uint64_t wanted)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (member_at(first, stride, middle) < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}
