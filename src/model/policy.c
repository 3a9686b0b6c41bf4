#include "model/policy.h"

#include <string.h>

#include "base/num.h"
#include "model/geometry.h"
#include "model/ids.h"
#include "model/image.h"
#include "model/job.h"
#include "model/network.h"
#include "model/path.h"

enum { DAY_MIN = 1440, WEEK_MIN = 7 * DAY_MIN, ITEMS_MAX = 64, AHEAD_MAX_MIN = 14 * 60 };

static const struct bh_field partitions_rows[] = {
    BH_F(struct bh_site_policy_partitions, partitions, BH_FIELD_TEXT,
         .flags = BH_FIELD_REQUIRED | BH_FIELD_NUMBERS, .max = 16, .doc = "how many of it at once"),
    BH_F_OLD(struct bh_site_policy_partitions, partitions, "pieces", BH_FIELD_TEXT, .max = 16,
             .doc = "now partitions"),
    BH_F(struct bh_site_policy_partitions, sku, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_NAME_MAX,
         .doc = "a SKU's name"),
};
static const struct bh_fields partitions_fields =
    BH_FIELDS("policy_partitions", struct bh_site_policy_partitions, partitions_rows);

#define AMOUNT(member, text)                                                                                 \
    BH_F(struct bh_site_policy, member, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32, .doc = text)
#define WORDS(member, text) BH_F(struct bh_site_policy, member, BH_FIELD_TEXTS, .max = ITEMS_MAX, .doc = text)

static const struct bh_field policy_rows[] = {
    WORDS(contracts, "what on_preempt may be: requeue, suspend, never, checkpoint"),
    WORDS(datasets, "names of datasets and models; \"none\""),
    WORDS(egress, "what jobs with egress may reach: \"10.0.0.0/8 tcp 443\"; nothing without a policy"),
    WORDS(egress_deny, "prefixes that they may not reach, even if allowed elsewhere: \"172.16.0.0/12\""),
    WORDS(hours, "when jobs may be submitted: \"mon-fri 08:00-18:00 +01:00\"; UTC without a zone"),
    WORDS(images, "\"host\", \"dir:/srv/roots\", \"oci:/srv/images\" with everything below, "
                  "\"oci:/srv/a:TAG\", \"oci:/srv/a@sha256\", \"sha256:HEX\""),
    WORDS(kinds, "batch, service, interactive"),
    WORDS(labels, "labels that a job must have: \"team\", \"env=dev|prod\""),
    AMOUNT(max_count, "partitions of each member"),
    AMOUNT(max_cpu, "cores of all members together"),
    AMOUNT(max_gang, "members"),
    AMOUNT(max_jobs, "running and pending jobs at once, with everything below"),
    AMOUNT(max_memory, "main memory of all members together: \"64Gi\""),
    AMOUNT(max_partitions, "partitions of all members together"),
    AMOUNT(max_pending, "pending jobs at once, with everything below"),
    BH_F_OLD(struct bh_site_policy, max_partitions, "max_pieces", BH_FIELD_TEXT, .max = 32,
             .doc = "now max_partitions"),
    BH_F(struct bh_site_policy, max_sku_partitions, BH_FIELD_LIST, .of = &partitions_fields,
         .max = BH_POLICY_SKUS_MAX, .doc = "running and pending partitions of a SKU at once"),
    BH_F_OLD(struct bh_site_policy, max_sku_partitions, "max_sku_pieces", BH_FIELD_LIST,
             .of = &partitions_fields, .max = BH_POLICY_SKUS_MAX, .doc = "now max_sku_partitions"),
    AMOUNT(max_time_limit, "\"24h\"; a job without a limit is over it"),
    WORDS(models, "GPU models; every model that offers the job's SKU must be named"),
    WORDS(mounts, "folders, with everything below: \"/data\", \"rw:/scratch\"; \"none\""),
    WORDS(networks, "none, tenant, egress"),
    WORDS(priorities, "low, normal, high, urgent"),
    BH_F(struct bh_site_policy, require_time_limit, BH_FIELD_BOOL, .doc = "a job must set a time limit"),
    WORDS(resolvers, "DNS servers of jobs with egress; egress of this policy must allow udp 53 to them"),
    WORDS(skus, "names of SKUs"),
};
const struct bh_fields bh_site_policy_fields = BH_FIELDS("policy", struct bh_site_policy, policy_rows);

/* ---- single entries ---- */

bool
bh_policy_names(const struct bh_texts *list, const char *text)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i], text) == 0)
            return true;
    return false;
}

/* The path of an entry of `mounts`; NULL: it allows nothing. */
static const char *
policy_mount_path(const char *entry, bool *ret_write)
{
    *ret_write = strncmp(entry, "rw:", 3) == 0;
    return *ret_write ? entry + 3 : strcmp(entry, "none") == 0 ? NULL : entry;
}

bool
bh_policy_mount_allows(const char *entry, const char *path, bool write)
{
    bool writable;
    const char *above = policy_mount_path(entry, &writable);

    return above && (writable || !write) && bh_file_path_within(above, path);
}

bool
bh_policy_image_allows(const char *entry, const char *image)
{
    struct bh_image over, under;

    return !bh_image_parse_entry(entry, &over) && !bh_image_parse_entry(image, &under)
           && bh_image_allows(&over, &under);
}

/* Whether "dev|prod" has the word. */
static bool
policy_is_choice(const char *choices, const char *word, size_t length)
{
    while (*choices) {
        size_t choice = strcspn(choices, "|");

        if (choice == length && memcmp(choices, word, length) == 0)
            return true;
        choices += choice + (choices[choice] == '|');
    }
    return false;
}

bool
bh_policy_label_meets(const char *entry, const char *label)
{
    size_t name = strcspn(entry, "="), length = strcspn(label, "=");

    if (name != length || memcmp(entry, label, name) != 0)
        return false;
    if (entry[name] == '\0')
        return true;
    return label[length] != '\0'
           && policy_is_choice(entry + name + 1, label + length + 1, strlen(label + length + 1));
}

/* ---- hours ---- */

static bool
policy_read_day(const char **at, uint32_t *ret_day)
{
    static const char names[7][4] = { "mon", "tue", "wed", "thu", "fri", "sat", "sun" };

    for (uint32_t day = 0; day < 7; day++)
        if (strncmp(*at, names[day], 3) == 0) {
            *ret_day = day;
            *at += 3;
            return true;
        }
    return false;
}

/* "mon-fri", "sat,sun", "fri-mon,wed" */
static bool
policy_read_days(const char **at, uint32_t *ret_days)
{
    uint32_t first, last;

    do {
        *at += **at == ',';
        if (!policy_read_day(at, &first))
            return false;
        last = first;
        if (**at == '-') {
            ++*at;
            if (!policy_read_day(at, &last))
                return false;
        }
        for (uint32_t day = first;; day = (day + 1) % 7) {
            *ret_days |= 1u << day;
            if (day == last)
                break;
        }
    } while (**at == ',');
    return true;
}

static bool
policy_read_clock(const char **at, uint32_t *ret_min)
{
    const char *text = *at;

    for (int i = 0; i < 5; i++)
        if (i == 2 ? text[i] != ':' : text[i] < '0' || text[i] > '9')
            return false;
    *ret_min = ((uint32_t)(text[0] - '0') * 10 + (uint32_t)(text[1] - '0')) * 60
               + (uint32_t)(text[3] - '0') * 10 + (uint32_t)(text[4] - '0');
    *at += 5;
    return text[3] < '6' && *ret_min <= DAY_MIN;
}

static bool
policy_read_zone(const char **at, int32_t *ret_ahead)
{
    uint32_t ahead;
    bool behind;

    if (**at == '\0' || strcmp(*at, " UTC") == 0) {
        *at += strlen(*at);
        return true;
    }
    behind = (*at)[0] == ' ' && (*at)[1] == '-';
    if (!behind && strncmp(*at, " +", 2) != 0)
        return false;
    *at += 2;
    if (!policy_read_clock(at, &ahead) || ahead > AHEAD_MAX_MIN)
        return false;
    *ret_ahead = behind ? -(int32_t)ahead : (int32_t)ahead;
    return true;
}

static bool
policy_read_hours(const char *at, struct bh_policy_hours *ret_hours)
{
    struct bh_policy_hours hours = { .days = 0 };

    if (!policy_read_days(&at, &hours.days) || *at++ != ' ' || !policy_read_clock(&at, &hours.from_min)
        || *at++ != '-' || !policy_read_clock(&at, &hours.to_min) || !policy_read_zone(&at, &hours.ahead_min))
        return false;
    *ret_hours = hours;
    return *at == '\0' && hours.from_min < hours.to_min;
}

/* `minute` of the week in UTC. */
static bool
policy_within(const struct bh_policy_hours *hours, uint32_t minute)
{
    uint32_t local = (minute + (uint32_t)(WEEK_MIN + hours->ahead_min)) % WEEK_MIN;

    return (hours->days >> local / DAY_MIN & 1) && local % DAY_MIN >= hours->from_min
           && local % DAY_MIN < hours->to_min;
}

static bool
policy_open_at(const struct bh_policy_rules *rules, uint32_t minute)
{
    for (uint32_t i = 0; i < rules->hour_count; i++)
        if (policy_within(&rules->hours[i], minute))
            return true;
    return rules->hour_count == 0;
}

bool
bh_policy_open(const struct bh_policy_rules *rules, uint64_t minute)
{
    /* The epoch was a Thursday. */
    return policy_open_at(rules, (uint32_t)((minute + 3 * DAY_MIN) % WEEK_MIN));
}

static bh_rc
policy_read_all_hours(const struct bh_texts *list, struct bh_policy_rules *rules, struct bh_err *err)
{
    if (list->count > BH_POLICY_HOURS_MAX)
        return bh_err_set(err, BH_RANGE, "hours: more than %d", BH_POLICY_HOURS_MAX);
    for (uint32_t i = 0; i < list->count; i++)
        if (!policy_read_hours(list->items[i], &rules->hours[i])) {
            bh_err_set(err, BH_INVALID, "hours[%" PRIu32 "]: \"%.60s\" is not understood", i, list->items[i]);
            return bh_err_hint(
                err, "write \"mon-fri 08:00-18:00 +01:00\"; use a second entry for the time after midnight");
        }
    rules->hour_count = list->count;
    return BH_OK;
}

/* ---- words and amounts ---- */

/* The value of that name in a table, 0 and up; `count` when there is none. */
static uint32_t
policy_find_name(const char *const *names, uint32_t count, const char *name)
{
    uint32_t value = 0;

    while (value < count && (!names[value] || strcmp(names[value], name) != 0))
        value++;
    return value;
}

/* Lists of words that are values of an enum. */
static const struct {
    const char *entry;
    size_t list, mask;
    const char *const *names; /* NULL: GPU models */
    uint32_t count;
} words[] = {
#define MASK(member, names, count)                                                                           \
    {                                                                                                        \
#member, offsetof(struct bh_site_policy, member), offsetof(struct bh_policy_rules, member), names,   \
            count                                                                                            \
    }
    MASK(contracts, bh_contract_names, BH_CONTRACTS),
    MASK(kinds, bh_job_kind_names, BH_JOB_KINDS),
    MASK(models, NULL, BH_GPU_MODELS),
    MASK(networks, bh_network_mode_names, BH_NETWORK_MODES),
    MASK(priorities, bh_priority_names, BH_PRIORITIES),
#undef MASK
};
_Static_assert(BH_GPU_MODELS <= 64, "a mask has a bit for each model");

/* `count` when the word is not known. */
static uint32_t
policy_word_value(size_t w, const char *name)
{
    enum bh_gpu_model model;

    if (words[w].names)
        return policy_find_name(words[w].names, words[w].count, name);
    model = bh_model_find(name);
    return model == BH_GPU_MODEL_NONE ? BH_GPU_MODELS : (uint32_t)model;
}

static const struct bh_texts *
policy_list_at(const struct bh_site_policy *policy, size_t offset)
{
    return (const struct bh_texts *)(const void *)((const char *)policy + offset);
}

static uint64_t *
policy_number_at(struct bh_policy_rules *rules, size_t offset)
{
    return (uint64_t *)(void *)((char *)rules + offset);
}

static uint64_t
policy_number_of(const struct bh_policy_rules *rules, size_t offset)
{
    return *(const uint64_t *)(const void *)((const char *)rules + offset);
}

static bh_rc
policy_read_words(const struct bh_site_policy *policy, struct bh_policy_rules *rules, struct bh_err *err)
{
    for (size_t w = 0; w < BH_COUNT(words); w++) {
        const struct bh_texts *list = policy_list_at(policy, words[w].list);

        for (uint32_t i = 0; i < list->count; i++) {
            const char *name = list->items[i];
            uint32_t value = policy_word_value(w, name);

            if (value == words[w].count)
                return bh_err_set(err, BH_INVALID, "%s[%" PRIu32 "]: \"%.40s\" is not known", words[w].entry,
                                  i, name);
            *policy_number_at(rules, words[w].mask) |= UINT64_C(1) << value;
        }
    }
    return BH_OK;
}

static bh_rc
policy_parse_cores(const char *text, uint64_t *ret_milli, struct bh_err *err)
{
    return bh_parse_parts(text, 1000, ret_milli, err);
}

static const struct {
    const char *entry;
    size_t text, number;
    bh_rc (*parse)(const char *text, uint64_t *ret_number, struct bh_err *err);
} amounts[] = {
#define MOST(member, number, parse)                                                                          \
    {                                                                                                        \
#member, offsetof(struct bh_site_policy, member), offsetof(struct bh_policy_rules, number), parse    \
    }
    MOST(max_count, count, bh_parse_u64),
    MOST(max_cpu, cpu_milli, policy_parse_cores),
    MOST(max_gang, gang, bh_parse_u64),
    MOST(max_jobs, jobs, bh_parse_u64),
    MOST(max_memory, memory_bytes, bh_parse_bytes),
    MOST(max_pending, pending, bh_parse_u64),
    MOST(max_partitions, partitions, bh_parse_u64),
    MOST(max_time_limit, time_limit_ns, bh_parse_span),
#undef MOST
};

static const char *
policy_amount_at(const struct bh_site_policy *policy, size_t a)
{
    const char *text;

    memcpy(&text, (const char *)policy + amounts[a].text, sizeof text);
    return text;
}

static bh_rc
policy_read_amounts(const struct bh_site_policy *policy, struct bh_policy_rules *rules, struct bh_err *err)
{
    for (size_t a = 0; a < BH_COUNT(amounts); a++) {
        uint64_t *number = policy_number_at(rules, amounts[a].number);
        const char *text = policy_amount_at(policy, a);

        *number = UINT64_MAX;
        if (text && amounts[a].parse(text, number, err) != BH_OK)
            return bh_err_wrap(err, "%s", amounts[a].entry);
    }
    return BH_OK;
}

static bh_rc
policy_read_partitions(const struct bh_list *list, struct bh_policy_rules *rules, struct bh_err *err)
{
    const struct bh_site_policy_partitions *items = list->items;

    if (list->count > BH_POLICY_SKUS_MAX)
        return bh_err_set(err, BH_RANGE, "max_sku_partitions: more than %d", BH_POLICY_SKUS_MAX);
    for (uint32_t i = 0; i < list->count; i++) {
        if (bh_parse_u64(items[i].partitions, &rules->sku_partitions[i], err) != BH_OK)
            return bh_err_wrap(err, "max_sku_partitions[%" PRIu32 "]", i);
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(items[k].sku, items[i].sku) == 0)
                return bh_err_set(err, BH_INVALID, "max_sku_partitions: %s is named twice", items[i].sku);
    }
    return BH_OK;
}

/* ---- texts ---- */

static bool
policy_is_mount(const char *entry)
{
    bool write;
    const char *path = policy_mount_path(entry, &write);

    return !path || !bh_file_path_fault(path);
}

static bool
policy_is_image(const char *entry)
{
    struct bh_image image;

    return !bh_image_parse_entry(entry, &image);
}

static bool
policy_is_label(const char *entry)
{
    return entry[0] != '\0' && entry[0] != '=' && entry[strlen(entry) - 1] != '=';
}

static bool
policy_is_egress(const char *entry)
{
    struct bh_net_rule rule;
    struct bh_err ignored;

    return bh_net_rule_parse(entry, &rule, &ignored) == BH_OK;
}

static bool
policy_is_prefix(const char *entry)
{
    struct bh_cidr cidr;
    struct bh_err ignored;

    return bh_cidr_parse(entry, &cidr, &ignored) == BH_OK;
}

static bool
policy_is_address(const char *entry)
{
    return policy_is_prefix(entry) && !strchr(entry, '/');
}

static bool
policy_is_any(const char *entry)
{
    return entry[0] != '\0';
}

/* All lists; an empty one would be lost when the file is written out, and would then allow
 * all where it seemed to allow nothing. */
static const struct {
    const char *entry;
    size_t list;
    bool (*valid)(const char *entry);
} lists[] = {
#define LIST(member, valid)                                                                                  \
    {                                                                                                        \
#member, offsetof(struct bh_site_policy, member), valid                                              \
    }
    LIST(contracts, policy_is_any), LIST(datasets, policy_is_any),      LIST(hours, policy_is_any),
    LIST(images, policy_is_image),  LIST(kinds, policy_is_any),         LIST(labels, policy_is_label),
    LIST(models, policy_is_any),    LIST(mounts, policy_is_mount),      LIST(priorities, policy_is_any),
    LIST(skus, policy_is_any),      LIST(egress, policy_is_egress),     LIST(egress_deny, policy_is_prefix),
    LIST(networks, policy_is_any),  LIST(resolvers, policy_is_address),
#undef LIST
};

bool
bh_site_policy_empty(const struct bh_site_policy *policy)
{
    for (size_t l = 0; l < BH_COUNT(lists); l++)
        if (policy_list_at(policy, lists[l].list)->items)
            return false;
    for (size_t a = 0; a < BH_COUNT(amounts); a++)
        if (policy_amount_at(policy, a))
            return false;
    return policy->max_sku_partitions.count == 0 && !policy->require_time_limit;
}

static bh_rc
policy_check_lists(const struct bh_site_policy *policy, struct bh_err *err)
{
    for (size_t l = 0; l < BH_COUNT(lists); l++) {
        const struct bh_texts *list = policy_list_at(policy, lists[l].list);

        if (list->items && list->count == 0) {
            bh_err_set(err, BH_INVALID, "%s: an empty list", lists[l].entry);
            return bh_err_hint(
                err,
                "list what is allowed, or leave it out to allow all; mounts and datasets accept \"none\"");
        }
        for (uint32_t i = 0; i < list->count; i++)
            if (!lists[l].valid(list->items[i]))
                return bh_err_set(err, BH_INVALID, "%s[%" PRIu32 "]: \"%.60s\" is not understood",
                                  lists[l].entry, i, list->items[i]);
    }
    return BH_OK;
}

/* A resolver that the list beside it does not allow would only look like one. */
static bool
policy_reaches_resolver(const struct bh_texts *egress, const char *resolver)
{
    struct bh_net_rule rule, dns = { .protocol = BH_NET_UDP, .first = 53, .last = 53 };
    struct bh_err ignored;

    for (uint32_t i = 0; i < egress->count; i++)
        if (bh_cidr_parse(resolver, &dns.to, &ignored) == BH_OK
            && bh_net_rule_parse(egress->items[i], &rule, &ignored) == BH_OK
            && bh_net_rule_covers(&rule, &dns))
            return true;
    return false;
}

static bh_rc
policy_check_resolvers(const struct bh_site_policy *policy, struct bh_err *err)
{
    if (policy->resolvers.count > BH_NET_RESOLVERS_MAX)
        return bh_err_set(err, BH_RANGE, "resolvers: more than %d", BH_NET_RESOLVERS_MAX);
    for (uint32_t i = 0; i < policy->resolvers.count; i++) {
        const char *resolver = policy->resolvers.items[i];

        if (policy_reaches_resolver(&policy->egress, resolver))
            continue;
        bh_err_set(err, BH_INVALID, "resolvers[%" PRIu32 "]: egress does not allow %.20s", i, resolver);
        return bh_err_hint(err, "add \"%.20s udp 53\" to egress of this policy", resolver);
    }
    return BH_OK;
}

bh_rc
bh_site_policy_read(const struct bh_site_policy *policy, struct bh_policy_rules *ret_rules,
                    struct bh_err *err)
{
    struct bh_policy_rules rules = { .text = policy };
    bh_rc rc = policy_check_lists(policy, err);

    if (rc != BH_OK)
        return rc;
    rc = policy_check_resolvers(policy, err);
    if (rc != BH_OK)
        return rc;
    rc = policy_read_words(policy, &rules, err);
    if (rc != BH_OK)
        return rc;
    rc = policy_read_amounts(policy, &rules, err);
    if (rc != BH_OK)
        return rc;
    rc = policy_read_partitions(&policy->max_sku_partitions, &rules, err);
    if (rc != BH_OK)
        return rc;
    rc = policy_read_all_hours(&policy->hours, &rules, err);
    if (rc != BH_OK)
        return rc;
    *ret_rules = rules;
    return BH_OK;
}

/* ---- narrower ---- */

static bh_rc
policy_widens(const char *entry, const char *what, struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "%s: %.80s is more than the policy above allows", entry, what);
    return bh_err_hint(err, "a tenant's policy can only narrow; widen the one above, or leave "
                            "this entry out to inherit");
}

static bool
policy_same(const char *above, const char *below)
{
    return strcmp(above, below) == 0;
}

static bool
policy_same_or_none(const char *above, const char *below)
{
    return policy_same(above, below) || strcmp(below, "none") == 0;
}

static bool
policy_mount_covers(const char *above, const char *below)
{
    bool write;
    const char *path = policy_mount_path(below, &write);

    return !path || bh_policy_mount_allows(above, path, write);
}

static bool
policy_egress_covers(const char *above, const char *below)
{
    struct bh_net_rule over, rule;
    struct bh_err ignored;

    return bh_net_rule_parse(above, &over, &ignored) == BH_OK
           && bh_net_rule_parse(below, &rule, &ignored) == BH_OK && bh_net_rule_covers(&over, &rule);
}

/* Lists in which each entry of the one below must be within one of the one above. */
static const struct {
    const char *entry;
    size_t list;
    bool (*covers)(const char *above, const char *below);
} covered[] = {
#define COVER(member, covers)                                                                                \
    {                                                                                                        \
#member, offsetof(struct bh_site_policy, member), covers                                             \
    }
    COVER(datasets, policy_same_or_none), COVER(images, bh_policy_image_allows),
    COVER(mounts, policy_mount_covers),   COVER(skus, policy_same),
    COVER(egress, policy_egress_covers),  COVER(resolvers, policy_same),
#undef COVER
};

static bh_rc
policy_check_words(const struct bh_policy_rules *above, const struct bh_policy_rules *below,
                   struct bh_err *err)
{
    for (size_t w = 0; w < BH_COUNT(words); w++) {
        const struct bh_texts *list = policy_list_at(below->text, words[w].list);
        uint64_t allowed = policy_number_of(above, words[w].mask);

        for (uint32_t i = 0; i < list->count && allowed; i++)
            if (!(allowed >> policy_word_value(w, list->items[i]) & 1))
                return policy_widens(words[w].entry, list->items[i], err);
    }
    return BH_OK;
}

static bh_rc
policy_check_covered(const struct bh_site_policy *above, const struct bh_site_policy *below,
                     struct bh_err *err)
{
    for (size_t c = 0; c < BH_COUNT(covered); c++) {
        const struct bh_texts *over = policy_list_at(above, covered[c].list);
        const struct bh_texts *list = policy_list_at(below, covered[c].list);

        for (uint32_t i = 0; i < list->count && over->count > 0; i++) {
            bool found = false;

            for (uint32_t k = 0; k < over->count && !found; k++)
                found = covered[c].covers(over->items[k], list->items[i]);
            if (!found)
                return policy_widens(covered[c].entry, list->items[i], err);
        }
    }
    return BH_OK;
}

/* A label that the one above asks for with certain values takes no others below. */
static bool
policy_label_narrows(const char *above, const char *below)
{
    size_t name = strcspn(above, "="), length = strcspn(below, "=");
    const char *choice = below + length + (below[length] == '=');

    if (name != length || memcmp(above, below, name) != 0 || above[name] == '\0')
        return true;
    if (*choice == '\0')
        return false;
    while (*choice) {
        size_t word = strcspn(choice, "|");

        if (!policy_is_choice(above + name + 1, choice, word))
            return false;
        choice += word + (choice[word] == '|');
    }
    return true;
}

static bh_rc
policy_check_labels(const struct bh_texts *above, const struct bh_texts *below, struct bh_err *err)
{
    for (uint32_t i = 0; i < below->count; i++)
        for (uint32_t k = 0; k < above->count; k++)
            if (!policy_label_narrows(above->items[k], below->items[i]))
                return policy_widens("labels", below->items[i], err);
    return BH_OK;
}

static bh_rc
policy_check_partitions(const struct bh_policy_rules *above, const struct bh_policy_rules *below,
                        struct bh_err *err)
{
    const struct bh_site_policy_partitions *over = above->text->max_sku_partitions.items;
    const struct bh_site_policy_partitions *items = below->text->max_sku_partitions.items;

    for (uint32_t i = 0; i < below->text->max_sku_partitions.count; i++)
        for (uint32_t k = 0; k < above->text->max_sku_partitions.count; k++)
            if (strcmp(items[i].sku, over[k].sku) == 0 && below->sku_partitions[i] > above->sku_partitions[k])
                return policy_widens("max_sku_partitions", items[i].sku, err);
    return BH_OK;
}

static bh_rc
policy_check_hours(const struct bh_policy_rules *above, const struct bh_policy_rules *below,
                   struct bh_err *err)
{
    if (below->hour_count == 0)
        return BH_OK;
    for (uint32_t minute = 0; minute < WEEK_MIN; minute++)
        if (policy_open_at(below, minute) && !policy_open_at(above, minute))
            return policy_widens("hours", below->text->hours.items[0], err);
    return BH_OK;
}

bh_rc
bh_policy_check_narrower(const struct bh_policy_rules *above, const struct bh_policy_rules *below,
                         struct bh_err *err)
{
    bh_rc rc = policy_check_words(above, below, err);

    if (rc != BH_OK)
        return rc;
    rc = policy_check_covered(above->text, below->text, err);
    if (rc != BH_OK)
        return rc;
    for (size_t a = 0; a < BH_COUNT(amounts); a++) {
        const char *text = policy_amount_at(below->text, a);

        if (text && policy_number_of(below, amounts[a].number) > policy_number_of(above, amounts[a].number))
            return policy_widens(amounts[a].entry, text, err);
    }
    rc = policy_check_labels(&above->text->labels, &below->text->labels, err);
    if (rc != BH_OK)
        return rc;
    rc = policy_check_partitions(above, below, err);
    if (rc != BH_OK)
        return rc;
    return policy_check_hours(above, below, err);
}
