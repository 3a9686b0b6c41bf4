#include "lab/common/flags.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/words.h"

bool
bh_flag_next_item(const char **list, char ret_item[BH_FLAG_ITEM_MAX])
{
    size_t length = strcspn(*list, ",");

    if (length == 0 || length >= BH_FLAG_ITEM_MAX)
        return false;
    memcpy(ret_item, *list, length);
    ret_item[length] = '\0';
    *list += length;
    *list += **list == ',' && (*list)[1] != '\0'; /* a comma at the end stays */
    return true;
}

void
bh_flags_print(FILE *out, const struct bh_flag *flags, uint32_t flag_count)
{
    for (uint32_t i = 0; i < flag_count; i++)
        fprintf(out, "  %-11s %-14s %s\n", flags[i].name, flags[i].value ? flags[i].value : "",
                flags[i].help);
}

/* Read one item of a list. */
static bh_rc
flags_parse_item(const struct bh_flag *flag, const char *text, uint32_t *ret_value, struct bh_err *err)
{
    struct bh_choice choice = { flag->name + 2, flag->names, flag->name_count };
    uint64_t thousandths;
    bh_rc rc;

    if (flag->kind != BH_FLAG_THOUSANDTHS)
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
flags_parse_list(const struct bh_flag *flag, const char *text, struct bh_flag_list *ret_list,
                 struct bh_err *err)
{
    struct bh_flag_list list = { .count = 0 };
    char item[BH_FLAG_ITEM_MAX];
    const char *rest = text;

    while (bh_flag_next_item(&rest, item)) {
        bh_rc rc;

        if (list.count == BH_FLAG_LIST_MAX)
            return bh_err_set(err, BH_INVALID, "more than %d items", BH_FLAG_LIST_MAX);
        rc = flags_parse_item(flag, item, &list.values[list.count++], err);
        if (rc != BH_OK)
            return rc;
    }
    if (*rest || list.count == 0)
        return bh_err_set(err, BH_INVALID, "\"%.60s\" is no list", text);
    *ret_list = list;
    return BH_OK;
}

static bh_rc
flags_parse_set(const struct bh_flag *flag, const char *text, uint32_t *ret_set, struct bh_err *err)
{
    struct bh_flag_list list;
    uint32_t set = 0;
    bh_rc rc;

    if (strcmp(text, "all") == 0) {
        *ret_set = (1u << flag->name_count) - 1;
        return BH_OK;
    }
    rc = flags_parse_list(flag, text, &list, err);
    if (rc != BH_OK)
        return rc;
    for (uint32_t i = 0; i < list.count; i++)
        set |= 1u << list.values[i];
    *ret_set = set;
    return BH_OK;
}

/* "A-B", or "A" for one seed. */
static bh_rc
flags_parse_seeds(const struct bh_flag *flag, const char *text, struct bh_flag_seeds *ret_seeds,
                  struct bh_err *err)
{
    const char *dash = strchr(text, '-');
    struct bh_flag_seeds seeds;
    char first[24];
    bh_rc rc;

    snprintf(first, sizeof first, "%.*s", dash ? (int)(dash - text) : 23, text);
    rc = bh_parse_u64(first, &seeds.first, err);
    seeds.last = seeds.first;
    if (rc == BH_OK && dash)
        rc = bh_parse_u64(dash + 1, &seeds.last, err);
    if (rc != BH_OK)
        return bh_err_set(err, rc, "%.40s: not A or A-B", text);
    if (seeds.last < seeds.first || seeds.last - seeds.first >= flag->high)
        return bh_err_set(err, BH_RANGE, "from 1 to %u of them", flag->high);
    *ret_seeds = seeds;
    return BH_OK;
}

static bh_rc
flags_parse_value(const struct bh_flag *flag, const char *text, struct bh_err *err)
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
        return flags_parse_list(flag, text, flag->place, err);
    case BH_FLAG_CHOICE:
        return flags_parse_item(flag, text, flag->place, err);
    case BH_FLAG_SET:
        return flags_parse_set(flag, text, flag->place, err);
    case BH_FLAG_SPAN:
        return bh_parse_span(text, flag->place, err);
    case BH_FLAG_SEEDS:
        return flags_parse_seeds(flag, text, flag->place, err);
    case BH_FLAG_READ:
        return flag->read(flag->place, text, err);
    }
    return BH_OK;
}

static const struct bh_flag *
flags_find(const struct bh_flag *flags, uint32_t count, const char *word, size_t length)
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
        const struct bh_flag *flag = flags_find(flags, flag_count, words[i], length);
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
        rc = flags_parse_value(flag, value, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "%s", flag->name);
    }
    return BH_OK;
}
