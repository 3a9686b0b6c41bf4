#include "model/ids.h"

static bool
is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool
bh_name_valid(const char *name)
{
    uint32_t length = 0;

    for (; name[length]; length++) {
        char c = name[length];

        if (length >= BH_NAME_MAX)
            return false;
        if (!is_alphanumeric(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return length > 0 && is_alphanumeric(name[0]) && is_alphanumeric(name[length - 1]);
}
