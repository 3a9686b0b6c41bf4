#include "policy/datasets.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "model/image.h"
#include "model/path.h"

static const uint32_t numbers[BH_DATA_RULES] = {
#define BH_DATA(rule, id, doc) [BH_DATA_##id] = rule,
#include "tables/datasets.tbl"
#undef BH_DATA
};

bh_rc
bh_datasets_compile(const struct bh_site *site, struct bh_arena *arena, struct bh_datasets *ret_datasets,
                    struct bh_err *err)
{
    const struct bh_site_dataset *texts = site->datasets.items;
    struct bh_dataset *items = bh_arena_alloc(arena, site->datasets.count * sizeof *items + 1);
    bh_rc rc = BH_OK;

    if (!items)
        return bh_err_set(err, BH_FULL, "the datasets are too large");
    for (uint32_t i = 0; i < site->datasets.count && rc == BH_OK; i++)
        rc = bh_dataset_read(&texts[i], &items[i], err);
    if (rc == BH_OK)
        *ret_datasets = (struct bh_datasets){ site, items, site->datasets.count };
    return rc;
}

const struct bh_dataset *
bh_datasets_find(const struct bh_datasets *datasets, const char *name)
{
    for (uint32_t i = 0; i < datasets->count; i++)
        if (strcmp(datasets->items[i].text->name, name) == 0)
            return &datasets->items[i];
    return NULL;
}

const struct bh_dataset *
bh_datasets_at(const struct bh_datasets *datasets, const char *path)
{
    for (uint32_t i = 0; i < datasets->count; i++)
        if (bh_file_path_within(datasets->items[i].text->path, path)
            || bh_file_path_within(path, datasets->items[i].text->path))
            return &datasets->items[i];
    return NULL;
}

/* ---- one grant ---- */

static const struct bh_site_dataset_grant *
datasets_grant_at(const struct bh_dataset *dataset, uint32_t at)
{
    return (const struct bh_site_dataset_grant *)dataset->text->grants.items + at;
}

/* Whether what is said of `above` holds for `tenant`. */
static bool
datasets_is_above(const char *above, const char *tenant)
{
    size_t length = strlen(above);

    return strcmp(above, "*") == 0
           || (strncmp(above, tenant, length) == 0 && (tenant[length] == '/' || tenant[length] == '\0'));
}

static bool
datasets_holds_role(const struct bh_site *site, enum bh_role role, const struct bh_data_request *request)
{
    const struct bh_site_binding *bindings = site->bindings.items;

    for (uint32_t i = 0; i < site->bindings.count; i++)
        if (bindings[i].role == role && bindings[i].principal
            && strcmp(bindings[i].principal, request->principal) == 0
            && datasets_is_above(bindings[i].tenant, request->tenant))
            return true;
    return false;
}

static bool
datasets_is_for(const struct bh_datasets *datasets, const struct bh_site_dataset_grant *grant,
                const struct bh_data_request *request)
{
    return (!grant->tenant || datasets_is_above(grant->tenant, request->tenant))
           && (!grant->principal || strcmp(grant->principal, request->principal) == 0)
           && (!grant->role || datasets_holds_role(datasets->site, grant->role, request));
}

static bool
datasets_is_labelled(const struct bh_site_dataset_grant *grant, const struct bh_data_request *request)
{
    if (!grant->label || !request->labels)
        return true;
    for (uint32_t i = 0; i < request->labels->count; i++)
        if (bh_policy_label_meets(grant->label, request->labels->items[i]))
            return true;
    return false;
}

static bool
datasets_is_there(const struct bh_datasets *datasets, const struct bh_site_dataset_grant *grant,
                  const struct bh_data_request *request)
{
    const struct bh_site_pool *pool;

    if ((grant->to.nodes.count == 0 && grant->to.pools.count == 0) || !request->node
        || bh_policy_names(&grant->to.nodes, request->node))
        return true;
    pool = bh_site_pool_of(datasets->site, request->node);
    return pool && bh_policy_names(&grant->to.pools, pool->name);
}

/* How near the grant comes to giving the right: NONE when it does. */
static enum bh_data_rule
datasets_check_grant(const struct bh_datasets *datasets, const struct bh_dataset *dataset, uint32_t at,
                     const struct bh_data_request *request, uint32_t right)
{
    const struct bh_site_dataset_grant *grant = datasets_grant_at(dataset, at);

    if (!datasets_is_for(datasets, grant, request))
        return BH_DATA_NO_GRANT;
    if (!datasets_is_labelled(grant, request))
        return BH_DATA_UNLABELLED;
    if (!(dataset->may[at] & right))
        return BH_DATA_LACKS;
    if (dataset->until_ns[at] <= request->now_ns)
        return BH_DATA_ENDED;
    return datasets_is_there(datasets, grant, request) ? BH_DATA_NONE : BH_DATA_ELSEWHERE;
}

/* ---- all grants of one dataset ---- */

/* One right: whether it is given, by which grant first, and until when. */
static struct bh_data_verdict
datasets_check_right(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                     const struct bh_data_request *request, uint32_t right)
{
    struct bh_data_verdict verdict = { .reason = BH_DATA_NO_GRANT, .lacks = right };

    for (uint32_t i = 0; i < dataset->text->grants.count; i++) {
        enum bh_data_rule reason = datasets_check_grant(datasets, dataset, i, request, right);

        if (reason == BH_DATA_NONE) {
            if (!verdict.allow)
                verdict = (struct bh_data_verdict){ .allow = true, .grant = i };
            if (dataset->until_ns[i] > verdict.until_ns)
                verdict.until_ns = dataset->until_ns[i];
        } else if (!verdict.allow && reason > verdict.reason) {
            verdict.reason = reason;
            verdict.grant = i;
        }
    }
    return verdict;
}

struct bh_data_verdict
bh_datasets_check(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                  const struct bh_data_request *request)
{
    struct bh_data_verdict all = { .allow = true, .until_ns = UINT64_MAX };

    BH_ASSERT(request->rights != 0 && request->rights < BH_DATA_RIGHTS);
    for (uint32_t right = BH_DATA_MOUNT; right < BH_DATA_RIGHTS; right <<= 1) {
        struct bh_data_verdict one;

        if (!(request->rights & right))
            continue;
        one = datasets_check_right(datasets, dataset, request, right);
        if (!one.allow) {
            one.lacks |= all.lacks;
            if (!all.allow) {
                one.reason = all.reason;
                one.grant = all.grant;
            }
            all = one;
        } else if (all.allow) {
            if (right != BH_DATA_COPY || request->rights == BH_DATA_COPY)
                all.grant = one.grant;
            if (one.until_ns < all.until_ns)
                all.until_ns = one.until_ns;
        }
    }
    return all;
}

uint32_t
bh_data_rule_number(const struct bh_data_verdict *verdict)
{
    BH_ASSERT(verdict->reason < BH_DATA_RULES);
    return verdict->allow ? BH_DATA_RULE_GRANT + verdict->grant : numbers[verdict->reason];
}

uint32_t
bh_datasets_may(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                const struct bh_data_request *request, uint64_t *ret_until_ns)
{
    uint32_t may = 0;

    *ret_until_ns = 0;
    for (uint32_t right = BH_DATA_MOUNT; right < BH_DATA_RIGHTS; right <<= 1) {
        struct bh_data_verdict one = datasets_check_right(datasets, dataset, request, right);

        if (!one.allow)
            continue;
        may |= right;
        if (one.until_ns > *ret_until_ns)
            *ret_until_ns = one.until_ns;
    }
    return may;
}

/* ---- jobs ---- */

static bool
datasets_is_shown(const struct bh_job_spec *spec, const char *cwd)
{
    const struct bh_mount_spec *mounts = spec->mounts.items;
    char unused[BH_MOUNT_TARGET_MAX];

    for (uint32_t i = 0; i < spec->mounts.count; i++)
        if (mounts[i].source && bh_file_path_within(mounts[i].source, cwd)
            && strcmp(bh_mount_target(&mounts[i], unused), mounts[i].source) == 0)
            return true;
    return false;
}

/* The working directory is mounted for writing where no mount shows it. */
static bool
datasets_writes_cwd(const struct bh_job_spec *spec)
{
    return bh_spec_cwd_folder(spec) && !datasets_is_shown(spec, spec->cwd);
}

static bool
datasets_writes_elsewhere(const struct bh_job_spec *spec, const char *dataset)
{
    const struct bh_mount_spec *mounts = spec->mounts.items;

    for (uint32_t i = 0; i < spec->mounts.count; i++)
        if (mounts[i].write && (!mounts[i].dataset || strcmp(mounts[i].dataset, dataset) != 0))
            return true;
    return datasets_writes_cwd(spec);
}

/* A receiver that a job can send to may keep what it sends. */
static bool
datasets_sends(const struct bh_job_spec *spec)
{
    return spec->network != BH_NETWORK_NONE;
}

uint32_t
bh_data_rights_wanted(const struct bh_job_spec *spec, uint32_t mount)
{
    const struct bh_mount_spec *own = (const struct bh_mount_spec *)spec->mounts.items + mount;
    uint32_t rights = BH_DATA_MOUNT | BH_DATA_READ;

    BH_ASSERT(mount < spec->mounts.count && own->dataset);
    if (own->write)
        rights |= BH_DATA_WRITE;
    if (datasets_sends(spec) || datasets_writes_elsewhere(spec, own->dataset))
        rights |= BH_DATA_COPY;
    return rights;
}

bool
bh_datasets_names(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                  const struct bh_data_request *request)
{
    for (uint32_t i = 0; i < dataset->text->grants.count; i++)
        if (datasets_is_for(datasets, datasets_grant_at(dataset, i), request))
            return true;
    return false;
}

/* Whether nothing of a dataset is at or below `path`, nor above it. */
static bool
avoids_datasets(const struct bh_datasets *datasets, const char *path, struct bh_data_denial *denial)
{
    denial->dataset = path ? bh_datasets_at(datasets, path) : NULL;
    denial->verdict = (struct bh_data_verdict){ .allow = !denial->dataset, .reason = BH_DATA_PATH };
    return !denial->dataset;
}

static bool
datasets_allow_mount(const struct bh_datasets *datasets, const struct bh_job_spec *spec,
                     const struct bh_data_request *request, struct bh_data_denial *denial)
{
    const struct bh_mount_spec *mount = (const struct bh_mount_spec *)spec->mounts.items + denial->mount;
    struct bh_data_request asked = *request;

    if (!mount->dataset)
        return avoids_datasets(datasets, mount->source, denial);
    asked.rights = denial->rights = bh_data_rights_wanted(spec, denial->mount);
    denial->dataset = bh_datasets_find(datasets, mount->dataset);
    denial->verdict = denial->dataset ? bh_datasets_check(datasets, denial->dataset, &asked)
                                      : (struct bh_data_verdict){ .reason = BH_DATA_UNKNOWN };
    return denial->verdict.allow;
}

/* The folder that its image is read from, or NULL. */
static const char *
datasets_image_of(const struct bh_job_spec *spec, struct bh_image *image)
{
    return spec->image && !bh_image_parse(spec->image, image) && image->path[0] == '/' ? image->path : NULL;
}

bool
bh_datasets_allow(const struct bh_datasets *datasets, const struct bh_job_spec *spec,
                  const struct bh_data_request *request, struct bh_data_denial *ret_denial)
{
    struct bh_data_denial denial = { .where = BH_DATA_IN_MOUNT };
    struct bh_image image;
    bool allowed = true;

    for (uint32_t i = 0; i < spec->mounts.count && allowed; i++) {
        denial = (struct bh_data_denial){ .where = BH_DATA_IN_MOUNT, .mount = i };
        allowed = datasets_allow_mount(datasets, spec, request, &denial);
    }
    if (allowed && datasets_writes_cwd(spec)) {
        denial = (struct bh_data_denial){ .where = BH_DATA_IN_CWD };
        allowed = avoids_datasets(datasets, spec->cwd, &denial);
    }
    if (allowed) {
        denial = (struct bh_data_denial){ .where = BH_DATA_IN_IMAGE };
        allowed = avoids_datasets(datasets, datasets_image_of(spec, &image), &denial);
    }
    if (allowed)
        return true;
    denial.named = denial.dataset && bh_datasets_names(datasets, denial.dataset, request);
    *ret_denial = denial;
    return false;
}

/* ---- words ---- */

static void
datasets_put_reason(const struct bh_data_request *request, const struct bh_data_denial *denial,
                    struct bh_err *err)
{
    const struct bh_data_verdict *verdict = &denial->verdict;
    const struct bh_site_dataset_grant *grant =
        denial->dataset->text->grants.count ? datasets_grant_at(denial->dataset, verdict->grant) : NULL;
    uint32_t at = verdict->grant;
    const char *lacks = bh_data_rights_text(verdict->lacks);

    switch (verdict->reason) {
    case BH_DATA_UNLABELLED:
        bh_err_set(err, BH_DENIED, "grants[%" PRIu32 "] is for jobs with the label %.60s", at, grant->label);
        break;
    case BH_DATA_LACKS:
        bh_err_set(err, BH_DENIED, "grants[%" PRIu32 "] gives %s, and no grant gives %s", at,
                   bh_data_rights_text(denial->dataset->may[at]), lacks);
        break;
    case BH_DATA_ENDED:
        bh_err_set(err, BH_DENIED, "grants[%" PRIu32 "] gave %s until %s", at, lacks, grant->until);
        break;
    case BH_DATA_ELSEWHERE:
        bh_err_set(err, BH_DENIED, "grants[%" PRIu32 "] gives %s, but not on node %.63s", at, lacks,
                   request->node);
        break;
    case BH_DATA_NONE:
    case BH_DATA_UNKNOWN:
    case BH_DATA_NO_GRANT:
    case BH_DATA_PATH:
    case BH_DATA_RULES:
        bh_err_set(err, BH_DENIED, "no grant covers %.60s in %.90s", request->principal, request->tenant);
        break;
    }
}

/* Which of the job's places it was that asks for the right to copy. */
static void
datasets_put_copy_next(const struct bh_job_spec *spec, const struct bh_data_denial *denial,
                       struct bh_err *err)
{
    const struct bh_mount_spec *mounts = spec->mounts.items;
    bool writes = datasets_writes_elsewhere(spec, mounts[denial->mount].dataset);

    (void)bh_err_hint(err, "leave out %s%s%s%s, to which data could be copied, or ask for a grant of copy",
                      datasets_sends(spec) ? "--network " : "",
                      datasets_sends(spec) ? bh_network_mode_names[spec->network] : "",
                      datasets_sends(spec) && writes ? ", " : "",
                      writes ? "the other mounts for writing and --cwd" : "");
}

/* The next step of the submitter, else what to ask for. */
static void
datasets_put_next(const struct bh_job_spec *spec, const struct bh_data_request *request,
                  const struct bh_data_denial *denial, struct bh_err *err)
{
    uint32_t lacks = denial->verdict.lacks;

    if (denial->verdict.reason == BH_DATA_UNLABELLED)
        (void)bh_err_hint(err, "add the label with --label, where it is true of the job");
    else if (lacks == BH_DATA_COPY)
        datasets_put_copy_next(spec, denial, err);
    else if (lacks == BH_DATA_WRITE)
        (void)bh_err_hint(err, "mount it read-only, or ask for a grant of write");
    else
        (void)bh_err_hint(err, "an admin can add to its grants: {tenant: %.80s, may: [%s]}", request->tenant,
                          bh_data_rights_text(denial->rights));
}

static bh_rc
datasets_refuse_image(const char *path, struct bh_err *err)
{
    bh_err_set(err, BH_DENIED, "%.80s may not be used", path);
    return bh_err_hint(err,
                       "images must be below image_roots in node.conf, which an administrator can change");
}

bh_rc
bh_datasets_refuse_image(const struct bh_job_spec *spec, struct bh_err *err)
{
    struct bh_image image;
    const char *path = datasets_image_of(spec, &image);

    datasets_refuse_image(path ? path : spec->image, err);
    return bh_err_wrap(err, "image");
}

/* A folder of a dataset was asked for by its path. */
static bh_rc
datasets_explain_path(const struct bh_job_spec *spec, const struct bh_data_denial *denial, bool hidden,
                      struct bh_err *err)
{
    const struct bh_mount_spec *mounts = spec->mounts.items;
    struct bh_image image;
    const char *path = denial->where == BH_DATA_IN_CWD     ? spec->cwd
                       : denial->where == BH_DATA_IN_IMAGE ? datasets_image_of(spec, &image)
                                                           : mounts[denial->mount].source;

    err->hint[0] = '\0';
    if (hidden && denial->where == BH_DATA_IN_IMAGE)
        return datasets_refuse_image(path, err);
    if (hidden)
        return bh_err_set(err, BH_DENIED, "%.80s may not be used", path);
    bh_err_set(err, BH_DENIED, "%.80s and the folder of dataset %.63s overlap", path,
               denial->dataset->text->name);
    return bh_err_hint(err, "mount it by its name: --mount dataset=%.63s", denial->dataset->text->name);
}

bh_rc
bh_datasets_explain(const struct bh_job_spec *spec, const struct bh_data_request *request,
                    const struct bh_data_denial *denial, bool hidden, struct bh_err *err)
{
    const struct bh_mount_spec *mounts = spec->mounts.items;
    const char *name = denial->where == BH_DATA_IN_MOUNT ? mounts[denial->mount].dataset : NULL;

    BH_ASSERT(!denial->verdict.allow);
    hidden = hidden && !denial->named;
    if (!name)
        datasets_explain_path(spec, denial, hidden, err);
    else if (!denial->dataset || hidden) {
        bh_err_set(err, BH_NOT_FOUND, "no dataset %.63s that you may see", name);
        (void)bh_err_hint(err, "`bulkhead get datasets` lists them");
    } else {
        datasets_put_reason(request, denial, err);
        datasets_put_next(spec, request, denial, err);
        (void)bh_err_wrap(err, "%.63s", name);
    }
    if (denial->where == BH_DATA_IN_MOUNT)
        return bh_err_wrap(err, "mounts[%" PRIu32 "]", denial->mount);
    return bh_err_wrap(err, "%s", denial->where == BH_DATA_IN_CWD ? "cwd" : "image");
}
