/* The requests that reach `bulkhead login` on 127.0.0.1: only one with the state is taken, and its code
 * consists of allowed bytes, none of which means anything elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/login/loopback.h"
#include "tests/fuzz/fuzz.h"

#define STATE "sT4te-_of.this~one"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char end[] = "\r\n\r\n";
    struct bh_loopback door = { .fd = -1, .port = 8080, .state = STATE };
    char code[BH_LOOPBACK_CODE_MAX] = "", *text, *copy;
    enum bh_loopback_outcome outcome;

    if (size >= BH_LOOPBACK_REQUEST_MAX || memchr(data, '\0', size))
        return 0;
    text = malloc(size + sizeof end);
    BH_ASSERT(text);
    memcpy(text, data, size);
    memcpy(text + size, end, sizeof end);
    copy = strdup(text);
    BH_ASSERT(copy);
    outcome = bh_loopback_judge(&door, text, code);
    BH_ASSERT(outcome < BH_LOOPBACK_LARGE && (outcome == BH_LOOPBACK_DONE) == (*code != '\0'));
    if (outcome == BH_LOOPBACK_DONE || outcome == BH_LOOPBACK_NO)
        BH_ASSERT(strstr(copy, "state=" STATE) && strstr(copy, "127.0.0.1:8080"));
    if (outcome == BH_LOOPBACK_DONE)
        BH_ASSERT(strstr(copy, code) && !strpbrk(code, "%&=+ \r\n"));
    free(copy);
    free(text);
    return 0;
}
