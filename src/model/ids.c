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

bh_rc
bh_name_check(const char *name, struct bh_err *err)
{
    if (bh_name_valid(name))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "not a valid name");
    return bh_err_hint(err, "1 to %d of a-z 0-9 - _ . beginning and ending with a letter or digit",
                       BH_NAME_MAX);
}
