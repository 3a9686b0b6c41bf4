#include "model/driver.h"

#include "base/attr.h"

static const struct fix {
    enum bh_driver_fault fault;
    const char *cve;
    struct bh_driver_version first;
} fixes[] = {
#define BH_DRIVER_FIX(fault, cve, branch, minor, patch) { BH_DRIVER_##fault, cve, { branch, minor, patch } },
#include "tables/driver_fixes.tbl"
#undef BH_DRIVER_FIX
};

enum { NUMBERS_MAX = 3, DIGITS_MAX = 4 };

/* One number of at most four digits; NULL: there is none. */
static const char *
driver_read_number(const char *at, uint32_t *ret_number)
{
    uint32_t digits = 0, number = 0;

    for (; *at >= '0' && *at <= '9'; at++, digits++)
        if (digits < DIGITS_MAX)
            number = number * 10 + (uint32_t)(*at - '0');
    *ret_number = number;
    return digits >= 1 && digits <= DIGITS_MAX ? at : NULL;
}

bh_rc
bh_driver_parse(const char *text, struct bh_driver_version *ret_version, struct bh_err *err)
{
    uint32_t numbers[NUMBERS_MAX] = { 0 }, count = 0;
    const char *at = text;

    while (at && count < NUMBERS_MAX) {
        at = driver_read_number(at, &numbers[count]);
        if (!at)
            break;
        count++;
        if (*at != '.')
            break;
        at++;
    }
    if (!at || *at || count < 2)
        return bh_err_set(err, BH_INVALID, "\"%.40s\" is not a driver version", text);
    *ret_version = (struct bh_driver_version){ numbers[0], numbers[1], numbers[2] };
    return BH_OK;
}

static bool
is_before(const struct bh_driver_version *a, const struct bh_driver_version *b)
{
    return a->minor != b->minor ? a->minor < b->minor : a->patch < b->patch;
}

bool
bh_driver_is_fixed(const char *text, enum bh_driver_fault fault)
{
    struct bh_driver_version version;
    uint32_t newest = 0;
    struct bh_err err;

    if (bh_driver_parse(text, &version, &err) != BH_OK)
        return false;
    for (size_t i = 0; i < BH_COUNT(fixes); i++) {
        if (fixes[i].fault != fault)
            continue;
        if (fixes[i].first.branch == version.branch)
            return !is_before(&version, &fixes[i].first);
        newest = fixes[i].first.branch > newest ? fixes[i].first.branch : newest;
    }
    return newest != 0 && version.branch > newest;
}

const char *
bh_driver_fix_cve(enum bh_driver_fault fault)
{
    for (size_t i = 0; i < BH_COUNT(fixes); i++)
        if (fixes[i].fault == fault)
            return fixes[i].cve;
    return "";
}

void
bh_driver_put_fixed(struct bh_buf *out, enum bh_driver_fault fault)
{
    const char *before = "";

    for (size_t i = 0; i < BH_COUNT(fixes); i++) {
        if (fixes[i].fault != fault)
            continue;
        bh_buf_printf(out, "%s%u.%u.%02u", before, fixes[i].first.branch, fixes[i].first.minor,
                      fixes[i].first.patch);
        before = ", ";
    }
}
