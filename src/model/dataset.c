#include "model/dataset.h"

#include <inttypes.h>
#include <string.h>

#include "base/num.h"
#include "model/ids.h"
#include "model/path.h"

enum { LABEL_MAX = 200, PLACES_MAX = 64 };

const char *const bh_dataset_kind_names[BH_DATASET_KINDS] = {
    [BH_DATASET_DATA] = "dataset",
    [BH_DATASET_MODEL] = "model",
};

static const char *const expiry_names[BH_DATASET_EXPIRIES] = {
    [BH_DATASET_KEEP] = "keep",
    [BH_DATASET_STOP] = "stop",
};

/* The public table names its zero; a file leaves it out instead. */
static const char *const role_names[BH_ROLES] = {
    [BH_ROLE_VIEWER] = "viewer", [BH_ROLE_DEVELOPER] = "developer", [BH_ROLE_OPERATOR] = "operator",
    [BH_ROLE_ADMIN] = "admin",   [BH_ROLE_AUDITOR] = "auditor",     [BH_ROLE_BILLING] = "billing",
};

static const struct bh_field place_rows[] = {
    BH_F(struct bh_site_dataset_location, nodes, BH_FIELD_TEXTS, .max = PLACES_MAX, .doc = "names of nodes"),
    BH_F(struct bh_site_dataset_location, pools, BH_FIELD_TEXTS, .max = PLACES_MAX, .doc = "names of pools"),
};
static const struct bh_fields place_fields = BH_FIELDS("place", struct bh_site_dataset_location, place_rows);

static const struct bh_field grant_rows[] = {
    BH_F(struct bh_site_dataset_grant, label, BH_FIELD_TEXT, .max = LABEL_MAX,
         .doc = "for jobs with this label: \"team\", \"env=dev|prod\""),
    BH_F(struct bh_site_dataset_grant, may, BH_FIELD_TEXTS, .flags = BH_FIELD_REQUIRED, .max = 4,
         .doc = "mount, read, write, copy"),
    BH_F(struct bh_site_dataset_grant, principal, BH_FIELD_TEXT, .max = BH_NAME_MAX,
         .doc = "for jobs of this principal"),
    BH_F_ENUM(struct bh_site_dataset_grant, role, role_names,
              .doc = "for jobs of principals with this role, by name, on the job's tenant"),
    BH_F(struct bh_site_dataset_grant, tenant, BH_FIELD_TEXT, .max = BH_TENANT_PATH_MAX,
         .doc = "for jobs of this tenant and those below; \"*\" is any"),
    BH_F(struct bh_site_dataset_grant, to, BH_FIELD_STRUCT, .of = &place_fields,
         .doc = "where they may use it; anywhere when absent"),
    BH_F(struct bh_site_dataset_grant, until, BH_FIELD_TEXT, .max = 32,
         .doc = "\"2027-01-01T00:00:00Z\"; without an end when absent"),
};
static const struct bh_fields grant_fields =
    BH_FIELDS("dataset_grant", struct bh_site_dataset_grant, grant_rows);

static const struct bh_field dataset_rows[] = {
    BH_F(struct bh_site_dataset, grants, BH_FIELD_LIST, .of = &grant_fields, .max = BH_DATASET_GRANTS_MAX,
         .doc = "who may do what with it; no one when absent"),
    BH_F_ENUM(struct bh_site_dataset, kind, bh_dataset_kind_names, .doc = "dataset when absent"),
    BH_F(struct bh_site_dataset, name, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_NAME_MAX,
         .doc = "name that jobs mount it by"),
    BH_F_ENUM(struct bh_site_dataset, on_expiry, expiry_names,
              .doc = "what happens to a running job whose grant has ended: keep, or stop; both are recorded"),
    BH_F(struct bh_site_dataset, path, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_FILE_PATH_MAX,
         .doc = "its folder on the nodes"),
    BH_F(struct bh_site_dataset, tenant, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_TENANT_PATH_MAX,
         .doc = "its owner"),
};
const struct bh_fields bh_site_dataset_fields = BH_FIELDS("dataset", struct bh_site_dataset, dataset_rows);

static const struct {
    const char *word;
    enum bh_data_right right;
} rights[] = {
    { "mount", BH_DATA_MOUNT },
    { "read", BH_DATA_READ },
    { "write", BH_DATA_WRITE },
    { "copy", BH_DATA_COPY },
};

const char *
bh_data_rights_text(uint32_t wanted)
{
    static const char *const texts[BH_DATA_RIGHTS] = {
        "nothing",
        "mount",
        "read",
        "mount, read",
        "write",
        "mount, write",
        "read, write",
        "mount, read, write",
        "copy",
        "mount, copy",
        "read, copy",
        "mount, read, copy",
        "write, copy",
        "mount, write, copy",
        "read, write, copy",
        "mount, read, write, copy",
    };

    return texts[wanted & (BH_DATA_RIGHTS - 1)];
}

static bh_rc
dataset_read_may(const struct bh_texts *words, uint32_t *ret_may, struct bh_err *err)
{
    *ret_may = 0;
    for (uint32_t i = 0; i < words->count; i++) {
        uint32_t found = 0;

        for (size_t r = 0; r < BH_COUNT(rights); r++)
            if (strcmp(rights[r].word, words->items[i]) == 0)
                found = rights[r].right;
        if (!found)
            return bh_err_set(err, BH_INVALID,
                              "may: \"%.30s\" is not one of mount, read, write, "
                              "copy",
                              words->items[i]);
        *ret_may |= found;
    }
    return *ret_may ? BH_OK : bh_err_set(err, BH_INVALID, "may: is empty");
}

static bool
dataset_is_label(const char *text)
{
    return text[0] != '\0' && text[0] != '=' && text[strlen(text) - 1] != '=';
}

static bh_rc
dataset_read_grant(const struct bh_site_dataset_grant *grant, uint32_t *ret_may, uint64_t *ret_until_ns,
                   struct bh_err *err)
{
    bh_rc rc = dataset_read_may(&grant->may, ret_may, err);

    if (rc != BH_OK)
        return rc;
    if (!grant->tenant && !grant->principal && !grant->role && !grant->label) {
        bh_err_set(err, BH_INVALID, "has no grantee");
        return bh_err_hint(err,
                           "name a tenant, a principal, a role or a label; tenant: \"*\" is every tenant");
    }
    if (grant->label && !dataset_is_label(grant->label))
        return bh_err_set(err, BH_INVALID, "label: \"%.60s\" is not understood", grant->label);
    if ((grant->to.nodes.items && !grant->to.nodes.count)
        || (grant->to.pools.items && !grant->to.pools.count))
        return bh_err_set(err, BH_INVALID, "to: an empty list"); /* it would read as "anywhere" */
    *ret_until_ns = UINT64_MAX;
    rc = grant->until ? bh_parse_utc(grant->until, ret_until_ns, err) : BH_OK;
    return rc == BH_OK ? rc : bh_err_wrap(err, "until");
}

/* Paths that the sandbox shows every job from the machine, or fills itself. */
static bh_rc
dataset_check_path(const char *path, struct bh_err *err)
{
    static const char *const shown[] = { "/bin",    "/boot", "/dev", "/etc",  "/lib", "/lib32", "/lib64",
                                         "/libx32", "/proc", "/run", "/sbin", "/sys", "/usr" };
    const char *fault = bh_file_path_fault(path);

    if (fault)
        return bh_err_set(err, BH_INVALID, "path %s", fault);
    if (strspn(path, "/") == strlen(path))
        return bh_err_set(err, BH_INVALID, "path is the root folder");
    for (size_t i = 0; i < BH_COUNT(shown); i++)
        if (bh_file_path_within(shown[i], path))
            return bh_err_set(err, BH_INVALID, "path is in %s, which every sandbox has", shown[i]);
    return BH_OK;
}

bh_rc
bh_dataset_read(const struct bh_site_dataset *text, struct bh_dataset *ret_dataset, struct bh_err *err)
{
    const struct bh_site_dataset_grant *grants = text->grants.items;
    struct bh_dataset dataset = { .text = text };
    bh_rc rc;

    if (bh_name_check(text->name, err) != BH_OK)
        return err->rc;
    if (text->grants.count > BH_DATASET_GRANTS_MAX)
        return bh_err_set(err, BH_RANGE, "more than %d grants", BH_DATASET_GRANTS_MAX);
    rc = dataset_check_path(text->path, err);
    for (uint32_t i = 0; i < text->grants.count && rc == BH_OK; i++) {
        rc = dataset_read_grant(&grants[i], &dataset.may[i], &dataset.until_ns[i], err);
        if (rc != BH_OK)
            bh_err_wrap(err, "grants[%" PRIu32 "]", i);
    }
    if (rc != BH_OK)
        return rc;
    *ret_dataset = dataset;
    return BH_OK;
}
