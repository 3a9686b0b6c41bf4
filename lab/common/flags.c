#include "lab/common/flags.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/words.h"

enum { ITEM_MAX = 40 };

/* Read one item of a list. */
static bh_rc
parse_item(const struct bh_flag *flag, const char *text, uint32_t *ret_value, struct bh_err *err)
{
    struct bh_choice choice = { flag->name + 2, flag->names, flag->name_count };
    uint64_t thousandths;
    bh_rc rc;

    if (flag->kind == BH_FLAG_CHOICES)
        return bh_word_choose(&choice, text, ret_value, err);
    rc = bh_parse_parts(text, 1000, &thousandths, err);
    if (rc != BH_OK)
        return rc;
    if (thousandths < flag->low || thousandths > flag->high)
        return bh_err_set(err, BH_RANGE, "%.40s is not within %u.%03u and %u.%03u", text, flag->low / 1000,
                          flag->low % 1000, flag->high / 1000, flag->high % 1000);
    *ret_value = (uint32_t)thousandths;
    return BH_OK;
}

static bh_rc
parse_list(const struct bh_flag *flag, const char *text, struct bh_flag_list *ret_list, struct bh_err *err)
{
    struct bh_flag_list list = { .count = 0 };
    char item[ITEM_MAX];
    bh_rc rc = BH_OK;

    for (const char *at = text; at && rc == BH_OK;) {
        size_t length = strcspn(at, ",");

        if (length == 0 || length >= sizeof item)
            return bh_err_set(err, BH_INVALID, "\"%.60s\" is no list", text);
        if (list.count == BH_FLAG_LIST_MAX)
            return bh_err_set(err, BH_INVALID, "more than %d items", BH_FLAG_LIST_MAX);
        memcpy(item, at, length);
        item[length] = '\0';
        rc = parse_item(flag, item, &list.values[list.count++], err);
        at = at[length] ? at + length + 1 : NULL;
    }
    if (rc != BH_OK)
        return rc;
    *ret_list = list;
    return BH_OK;
}

static bh_rc
parse_value(const struct bh_flag *flag, const char *text, struct bh_err *err)
{
    switch (flag->kind) {
    case BH_FLAG_ON:
        break;
    case BH_FLAG_TEXT:
        *(const char **)flag->place = text;
        break;
    case BH_FLAG_NUMBER:
        return bh_parse_u32(text, flag->low, flag->high, flag->place, err);
    case BH_FLAG_SEED:
        return bh_parse_u64(text, flag->place, err);
    case BH_FLAG_THOUSANDTHS:
    case BH_FLAG_CHOICES:
        return parse_list(flag, text, flag->place, err);
    }
    return BH_OK;
}

static const struct bh_flag *
find_flag(const struct bh_flag *flags, uint32_t count, const char *word, size_t length)
{
    for (uint32_t i = 0; i < count; i++)
        if (strlen(flags[i].name) == length && memcmp(flags[i].name, word, length) == 0)
            return &flags[i];
    return NULL;
}

bh_rc
bh_flags_parse(const struct bh_flag *flags, uint32_t flag_count, int count, char **words, struct bh_err *err)
{
    for (int i = 0; i < count; i++) {
        size_t length = strcspn(words[i], "=");
        const struct bh_flag *flag = find_flag(flags, flag_count, words[i], length);
        const char *value = words[i][length] ? words[i] + length + 1 : NULL;
        bh_rc rc;

        if (!flag)
            return bh_err_set(err, BH_INVALID, "unknown option %.60s", words[i]);
        if (flag->kind == BH_FLAG_ON && value)
            return bh_err_set(err, BH_INVALID, "%s takes no value", flag->name);
        if (flag->kind == BH_FLAG_ON) {
            *(bool *)flag->place = true;
            continue;
        }
        if (!value && i + 1 < count)
            value = words[++i];
        if (!value)
            return bh_err_set(err, BH_INVALID, "%s wants a value", flag->name);
        rc = parse_value(flag, value, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "%s", flag->name);
    }
    return BH_OK;
}
