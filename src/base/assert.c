#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void
bh_assert_fail(const char *condition, const char *file, int line)
{
    fprintf(stderr, "bulkhead: assertion failed: %s (%s:%d)\n", condition, file, line);
    abort();
}
