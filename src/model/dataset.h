#ifndef BH_MODEL_DATASET_H
#define BH_MODEL_DATASET_H

#include "base/err.h"
#include "base/fields.h"
#include "model/role.h"

/* Datasets and models as the site file names them, and who may do what with them: docs/data.md
 * explains each entry.  What no grant gives is denied. */

enum bh_dataset_kind { BH_DATASET_DATA, BH_DATASET_MODEL, BH_DATASET_KINDS };

/* What becomes of a running job that loses access to the dataset. */
enum bh_dataset_expiry { BH_DATASET_KEEP, BH_DATASET_STOP, BH_DATASET_EXPIRIES };

/* What a grant may give, a bit each. */
enum bh_data_right {
    BH_DATA_MOUNT = 1, /* a job may have it in its sandbox at all */
    BH_DATA_READ = 2,
    BH_DATA_WRITE = 4,
    BH_DATA_COPY = 8, /* beside other places that it can write and that outlast it */
    BH_DATA_RIGHTS = 16
};

/* Where a job may have it; an empty list restricts nothing. */
struct bh_site_dataset_location {
    struct bh_texts nodes, pools;
};

/* All that is said of tenant, principal, role and label must hold of a job. */
struct bh_site_dataset_grant {
    const char *label;   /* "team", "env=dev|prod" */
    struct bh_texts may; /* "mount", "read", "write", "copy" */
    const char *principal;
    enum bh_role role;  /* held by name on the job's tenant, or above */
    const char *tenant; /* the job's, or above; "*" is any */
    struct bh_site_dataset_location to;
    const char *until; /* "2027-01-01T00:00:00Z"; NULL: without an end */
};

struct bh_site_dataset {
    struct bh_list grants; /* struct bh_site_dataset_grant */
    enum bh_dataset_kind kind;
    const char *name;
    enum bh_dataset_expiry on_expiry;
    const char *path;   /* folder on every node that has it */
    const char *tenant; /* whose it is; records of access are this tenant's */
};

extern const char *const bh_dataset_kind_names[BH_DATASET_KINDS];
extern const struct bh_fields bh_site_dataset_fields;

enum { BH_DATASET_GRANTS_MAX = 64 };

/* A dataset with the numbers of its grants read. */
struct bh_dataset {
    const struct bh_site_dataset *text;
    uint32_t may[BH_DATASET_GRANTS_MAX];      /* bits of enum bh_data_right */
    uint64_t until_ns[BH_DATASET_GRANTS_MAX]; /* UINT64_MAX: without an end */
};

/* Check and read one by itself; `ret_dataset` points into it.  Names are not looked up.
 *   BH_INVALID  a path that is none or that every sandbox shows, a grant without a recipient or a right, a
 * word or a moment that is not understood BH_RANGE    too many grants */
BH_MUST_USE bh_rc bh_dataset_read(const struct bh_site_dataset *text, struct bh_dataset *ret_dataset,
                                  struct bh_err *err);

/* "mount, read" of these bits; "nothing" of none. */
const char *bh_data_rights_text(uint32_t rights);

#endif
