#include "engine/check.h"

bool
bh_engine_check(const struct bh_engine *engine, char *ret_broken, size_t size)
{
    return true;
}
