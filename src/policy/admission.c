#include "policy/admission.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/buf.h"
#include "base/time.h"
#include "model/geometry.h"

static const struct {
    uint32_t number;
    const char *entry;
} entries[BH_ADMISSIONS] = {
#define BH_ADMISSION(rule, id, name) [BH_ADMISSION_##id] = { rule, name },
#include "tables/admission.tbl"
#undef BH_ADMISSION
};

const char *
bh_admission_entry(enum bh_admission_rule_id rule)
{
    BH_ASSERT(rule > BH_ADMISSION_NONE && rule < BH_ADMISSIONS);
    return entries[rule].entry;
}

uint32_t
bh_admission_number(enum bh_admission_rule_id rule)
{
    BH_ASSERT(rule > BH_ADMISSION_NONE && rule < BH_ADMISSIONS);
    return entries[rule].number;
}

bh_rc
bh_admission_compile(const struct bh_site *site, struct bh_arena *arena, struct bh_admission *ret_admission,
                     struct bh_err *err)
{
    const struct bh_site_policy *policy;
    struct bh_admission_policy *policies;
    uint32_t cursor = 0, count = 0;
    const char *owner;

    while (bh_policies_next(site, NULL, &cursor, &owner))
        count++;
    policies = bh_arena_alloc(arena, count * sizeof *policies + 1);
    if (!policies)
        return bh_err_set(err, BH_FULL, "the policies are too large");
    *ret_admission = (struct bh_admission){ policies, count };
    for (cursor = 0, count = 0; (policy = bh_policies_next(site, NULL, &cursor, &owner)); count++) {
        bh_rc rc = bh_site_policy_read(policy, &policies[count].rules, err);

        if (rc != BH_OK)
            return rc;
        policies[count].owner = owner;
    }
    return BH_OK;
}

const struct bh_admission_policy *
bh_admission_next(const struct bh_admission *admission, const char *tenant, uint32_t *cursor)
{
    while (*cursor < admission->count) {
        const struct bh_admission_policy *policy = &admission->policies[(*cursor)++];
        size_t length = strlen(policy->owner);

        if (length == 0
            || (strncmp(policy->owner, tenant, length) == 0
                && (tenant[length] == '/' || tenant[length] == '\0')))
            return policy;
    }
    return NULL;
}

uint64_t
bh_admission_sku_partitions(const struct bh_admission_policy *policy, const char *sku)
{
    const struct bh_site_policy *text = policy->rules.text;
    const struct bh_site_policy_partitions *items = text->max_sku_partitions.items;

    for (uint32_t i = 0; i < text->max_sku_partitions.count; i++)
        if (strcmp(items[i].sku, sku) == 0)
            return policy->rules.sku_partitions[i];
    return UINT64_MAX;
}

/* ---- one policy ---- */

/* One question to it. */
struct asking {
    const struct bh_admission_policy *policy;
    const struct bh_policy_rules *rules;
    const struct bh_site_policy *text;
    const struct bh_admission_request *request;
    const struct bh_job_spec *spec;
    const struct bh_admission_counts *counts;
    enum bh_admission_rule_id rule; /* what is asked about just now */
    struct bh_err *err;
};

/* "policy.skus of acme/vision: " before what is wrong; `todo` says what to do. */
#define DENY(a, todo, format, ...)                                                                           \
    (bh_err_set((a)->err, BH_DENIED, "policy.%s of %.80s: " format, entries[(a)->rule].entry,                \
                *(a)->policy->owner ? (a)->policy->owner : "the site", __VA_ARGS__),                         \
     bh_err_hint((a)->err, "%s", todo))

/* "small, medium", cut to what fits. */
static void
admission_put_texts(char *ret_text, size_t size, const struct bh_texts *list)
{
    struct bh_buf text;

    ret_text[0] = '\0';
    for (uint32_t i = 0; i < list->count; i++) {
        size_t used = strlen(ret_text);

        bh_buf_init_fixed(&text, ret_text + used, size - used);
        bh_buf_printf(&text, "%s%s", i ? ", " : "", list->items[i]);
        bh_buf_text(&text);
        if (text.overflow) {
            ret_text[used] = '\0';
            break;
        }
    }
}

static bh_rc
admission_deny_word(const struct asking *a, const char *word, const struct bh_texts *allowed)
{
    char list[60];

    admission_put_texts(list, sizeof list, allowed);
    return DENY(a, "ask for what is allowed, or have an admin widen the policy",
                "%.48s is not allowed, only %s", word, list);
}

static bh_rc
admission_check_skus(const struct asking *a)
{
    if (a->text->skus.count == 0 || bh_policy_names(&a->text->skus, a->spec->sku))
        return BH_OK;
    return admission_deny_word(a, a->spec->sku, &a->text->skus);
}

/* The engine may take any model that keeps the SKU, so all must be allowed. */
static bh_rc
admission_check_models(const struct asking *a)
{
    uint64_t others = a->request->models & ~a->rules->models;

    if (a->rules->models == 0 || (others == 0 && a->request->models != 0))
        return BH_OK;
    for (uint32_t model = 1; model < BH_GPU_MODELS; model++)
        if (others >> model & 1)
            return DENY(a, "ask for a SKU that only allowed models offer; `bulkhead get skus`",
                        "%.30s may be placed on %s", a->spec->sku,
                        bh_model_facts((enum bh_gpu_model)model)->name);
    return DENY(a, "ask for another SKU; `bulkhead get skus` lists them", "no known GPU model offers %.30s",
                a->spec->sku);
}

static bh_rc
admission_check_mask(const struct asking *a, uint64_t mask, uint32_t value, const char *const *names,
                     const struct bh_texts *allowed)
{
    if (mask == 0 || mask >> value & 1)
        return BH_OK;
    return admission_deny_word(a, names[value], allowed);
}

static bh_rc
admission_check_kinds(const struct asking *a)
{
    return admission_check_mask(a, a->rules->kinds, a->spec->kind, bh_job_kind_names, &a->text->kinds);
}

static bh_rc
admission_check_priorities(const struct asking *a)
{
    return admission_check_mask(a, a->rules->priorities, a->request->priority, bh_priority_names,
                                &a->text->priorities);
}

static bh_rc
admission_check_contracts(const struct asking *a)
{
    return admission_check_mask(a, a->rules->contracts, a->spec->on_preempt, bh_contract_names,
                                &a->text->contracts);
}

static bh_rc
admission_check_images(const struct asking *a)
{
    const char *image = a->spec->image ? a->spec->image : "host";

    for (uint32_t i = 0; i < a->text->images.count; i++)
        if (bh_policy_image_allows(a->text->images.items[i], image))
            return BH_OK;
    return a->text->images.count == 0 ? BH_OK : admission_deny_word(a, image, &a->text->images);
}

static bh_rc
admission_check_networks(const struct asking *a)
{
    return admission_check_mask(a, a->rules->networks, a->spec->network, bh_network_mode_names,
                                &a->text->networks);
}

static bh_rc
admission_check_mount(const struct asking *a, const char *path, bool write)
{
    for (uint32_t i = 0; i < a->text->mounts.count; i++)
        if (bh_policy_mount_allows(a->text->mounts.items[i], path, write))
            return BH_OK;
    if (!write)
        return admission_deny_word(a, path, &a->text->mounts);
    return DENY(a, "mount it read-only, or have an admin widen the policy",
                "%.60s is not allowed for writing", path);
}

/* Folders that are mounted; the working directory is one. */
static bh_rc
admission_check_mounts(const struct asking *a)
{
    const struct bh_mount_spec *mount = a->spec->mounts.items;
    bh_rc rc = BH_OK;

    if (a->text->mounts.count == 0)
        return BH_OK;
    for (uint32_t i = 0; i < a->spec->mounts.count && rc == BH_OK; i++)
        if (mount[i].source)
            rc = admission_check_mount(a, mount[i].source, mount[i].write);
    return rc == BH_OK && bh_spec_cwd_folder(a->spec) ? admission_check_mount(a, a->spec->cwd, false) : rc;
}

/* Which there may be at all; docs/data.md has what may be done with them. */
static bh_rc
admission_check_datasets(const struct asking *a)
{
    const struct bh_mount_spec *mount = a->spec->mounts.items;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < a->spec->mounts.count && a->text->datasets.count && rc == BH_OK; i++)
        if (mount[i].dataset && !bh_policy_names(&a->text->datasets, mount[i].dataset))
            rc = admission_deny_word(a, mount[i].dataset, &a->text->datasets);
    return rc;
}

static bh_rc
admission_check_labels(const struct asking *a)
{
    for (uint32_t i = 0; i < a->text->labels.count; i++) {
        const char *wanted = a->text->labels.items[i];
        bool met = false;

        for (uint32_t k = 0; k < a->spec->labels.count && !met; k++)
            met = bh_policy_label_meets(wanted, a->spec->labels.items[k]);
        if (!met)
            return DENY(a, "add it: --label NAME=VALUE, or labels: [NAME=VALUE]",
                        "a job must have the label %.60s", wanted);
    }
    return BH_OK;
}

static bh_rc
admission_check_most(const struct asking *a, const char *noun, uint64_t wanted, uint64_t most)
{
    if (wanted <= most)
        return BH_OK;
    return DENY(a, "ask for less, or have an admin widen the policy", "%" PRIu64 " %s are more than %" PRIu64,
                wanted, noun, most);
}

static bh_rc
admission_check_count(const struct asking *a)
{
    return admission_check_most(a, "partitions of a member", a->request->count, a->rules->count);
}

static bh_rc
admission_check_gang(const struct asking *a)
{
    return admission_check_most(a, "members", a->request->gang, a->rules->gang);
}

static bh_rc
admission_check_partitions(const struct asking *a)
{
    return admission_check_most(a, "partitions", a->request->count * a->request->gang, a->rules->partitions);
}

/* An amount that is not set is the node's share, which may be anything. */
static bh_rc
admission_check_cpu(const struct asking *a)
{
    if (a->rules->cpu_milli == UINT64_MAX)
        return BH_OK;
    if (a->request->cpu_milli == 0)
        return DENY(a, "set --cpu, or cpu of the SKU in the site file",
                    "%s are limited, and the job does not set them", "cores");
    return admission_check_most(a, "thousandths of a core", a->request->cpu_milli * a->request->gang,
                                a->rules->cpu_milli);
}

static bh_rc
admission_check_memory(const struct asking *a)
{
    if (a->rules->memory_bytes == UINT64_MAX)
        return BH_OK;
    if (a->request->memory_mib == 0)
        return DENY(a, "set --memory, or memory of the SKU in the site file",
                    "%s is limited, and the job does not set it", "main memory");
    return admission_check_most(a, "MiB of memory", a->request->memory_mib * a->request->gang,
                                a->rules->memory_bytes >> 20);
}

static bh_rc
admission_check_require_time_limit(const struct asking *a)
{
    if (!a->text->require_time_limit || a->request->time_limit_ns)
        return BH_OK;
    return DENY(a, "set a time limit: --time-limit 2h", "a job must have a %s", "time limit");
}

static bh_rc
admission_check_time_limit(const struct asking *a)
{
    if (a->rules->time_limit_ns == UINT64_MAX
        || (a->request->time_limit_ns && a->request->time_limit_ns <= a->rules->time_limit_ns))
        return BH_OK;
    return DENY(a, "set a shorter one: --time-limit", "%s longer than %.32s",
                a->request->time_limit_ns ? "its time limit is" : "without a time limit it may run",
                a->text->max_time_limit);
}

static bh_rc
admission_check_hours(const struct asking *a)
{
    char list[70];

    if (bh_policy_open(a->rules, a->request->now_ns / (60 * BH_NS_PER_S)))
        return BH_OK;
    admission_put_texts(list, sizeof list, &a->text->hours);
    return DENY(a, "submit it at that time, or have an admin widen the policy", "jobs are accepted %s", list);
}

static bh_rc
admission_check_cap(const struct asking *a, const char *noun, uint64_t held, uint64_t wanted, uint64_t most)
{
    if (wanted <= most && held <= most - wanted)
        return BH_OK;
    return DENY(a, "wait until some have ended, or cancel some",
                "%" PRIu64 " %s exist, %" PRIu64 " more would exceed %" PRIu64, held, noun, wanted, most);
}

static bh_rc
admission_check_jobs(const struct asking *a)
{
    return a->counts
               ? admission_check_cap(a, "jobs", a->counts->running + a->counts->pending, 1, a->rules->jobs)
               : BH_OK;
}

static bh_rc
admission_check_pending(const struct asking *a)
{
    return a->counts ? admission_check_cap(a, "pending jobs", a->counts->pending, 1, a->rules->pending)
                     : BH_OK;
}

static bh_rc
admission_check_sku_partitions(const struct asking *a)
{
    uint64_t most = bh_admission_sku_partitions(a->policy, a->spec->sku);

    if (!a->counts || most == UINT64_MAX)
        return BH_OK;
    return admission_check_cap(a, a->spec->sku, a->counts->partitions, a->request->count * a->request->gang,
                               most);
}

bh_rc
bh_admission_check(const struct bh_admission_policy *policy, const struct bh_admission_request *request,
                   const struct bh_admission_counts *counts, enum bh_admission_rule_id *ret_rule,
                   struct bh_err *err)
{
    static bh_rc (*const checks[BH_ADMISSIONS])(const struct asking *) = {
        [BH_ADMISSION_SKUS] = admission_check_skus,
        [BH_ADMISSION_MODELS] = admission_check_models,
        [BH_ADMISSION_KINDS] = admission_check_kinds,
        [BH_ADMISSION_PRIORITIES] = admission_check_priorities,
        [BH_ADMISSION_CONTRACTS] = admission_check_contracts,
        [BH_ADMISSION_IMAGES] = admission_check_images,
        [BH_ADMISSION_MOUNTS] = admission_check_mounts,
        [BH_ADMISSION_LABELS] = admission_check_labels,
        [BH_ADMISSION_COUNT] = admission_check_count,
        [BH_ADMISSION_GANG] = admission_check_gang,
        [BH_ADMISSION_PARTITIONS] = admission_check_partitions,
        [BH_ADMISSION_CPU] = admission_check_cpu,
        [BH_ADMISSION_MEMORY] = admission_check_memory,
        [BH_ADMISSION_REQUIRE_TIME_LIMIT] = admission_check_require_time_limit,
        [BH_ADMISSION_TIME_LIMIT] = admission_check_time_limit,
        [BH_ADMISSION_HOURS] = admission_check_hours,
        [BH_ADMISSION_JOBS] = admission_check_jobs,
        [BH_ADMISSION_PENDING] = admission_check_pending,
        [BH_ADMISSION_SKU_PARTITIONS] = admission_check_sku_partitions,
        [BH_ADMISSION_DATASETS] = admission_check_datasets,
        [BH_ADMISSION_NETWORKS] = admission_check_networks,
    };
    struct asking a = { .policy = policy,
                        .rules = &policy->rules,
                        .text = policy->rules.text,
                        .request = request,
                        .spec = request->spec,
                        .counts = counts,
                        .err = err };

    for (int rule = BH_ADMISSION_NONE + 1; rule < BH_ADMISSIONS; rule++) {
        BH_ASSERT(checks[rule]);
        a.rule = (enum bh_admission_rule_id)rule;
        if (checks[rule](&a) == BH_OK)
            continue;
        *ret_rule = a.rule;
        return BH_DENIED;
    }
    return BH_OK;
}
