#include "model/quantity.h"

#include "base/assert.h"

uint64_t
bh_parts_equivalent(struct bh_parts parts)
{
    return parts.compute > parts.memory ? parts.compute : parts.memory;
}

struct bh_parts
bh_parts_add(struct bh_parts a, struct bh_parts b)
{
    return (struct bh_parts){ a.compute + b.compute, a.memory + b.memory };
}

struct bh_parts
bh_parts_sub(struct bh_parts a, struct bh_parts b)
{
    BH_ASSERT(a.compute >= b.compute);
    BH_ASSERT(a.memory >= b.memory);
    return (struct bh_parts){ a.compute - b.compute, a.memory - b.memory };
}

void
bh_part_ns_format(bh_part_ns value, char ret_text[40])
{
    char digits[40];
    uint32_t count = 0;

    do {
        BH_ASSERT(count < sizeof(digits) - 1);
        digits[count++] = (char)('0' + (int)(value % 10));
        value /= 10;
    } while (value);
    for (uint32_t i = 0; i < count; i++)
        ret_text[i] = digits[count - 1 - i];
    ret_text[count] = '\0';
}
