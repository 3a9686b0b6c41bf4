#ifndef BH_POLICY_DATASETS_H
#define BH_POLICY_DATASETS_H

#include "base/arena.h"
#include "model/site.h"
#include "model/spec.h"

/* Which principal may do what with which dataset: the grants of the site file, and what a job asks of them.
 * What no grant gives is denied.  Pure. */

enum bh_data_rule {
    BH_DATA_NONE,
#define BH_DATA(rule, id, doc) BH_DATA_##id,
#include "tables/datasets.tbl"
#undef BH_DATA
    BH_DATA_RULES
};

enum { BH_DATA_RULE_GRANT = 3100 };

/* All of a site, in its file's order. */
struct bh_datasets {
    const struct bh_site *site; /* for bindings and pools */
    const struct bh_dataset *items;
    uint32_t count;
};

/* Read the datasets of a site that bh_site_check found right, in `arena`; texts stay the
 * site's.  BH_FULL: no room. */
BH_MUST_USE bh_rc bh_datasets_compile(const struct bh_site *site, struct bh_arena *arena,
                                      struct bh_datasets *ret_datasets, struct bh_err *err);

/* The dataset of that name, and the one whose folder `path` lies in or that lies in it; NULL:
 * there is none. */
const struct bh_dataset *bh_datasets_find(const struct bh_datasets *datasets, const char *name);
const struct bh_dataset *bh_datasets_at(const struct bh_datasets *datasets, const char *path);

/* A job that wants `rights` (enum bh_data_right, one at least). */
struct bh_data_request {
    const char *tenant, *principal; /* of the job: path and name */
    const struct bh_texts *labels;  /* NULL: as if it had any that is asked for */
    const char *node;               /* NULL: not known yet, every place will do */
    uint32_t rights;
    uint64_t now_ns;
};

struct bh_data_verdict {
    bool allow;
    enum bh_data_rule reason; /* of a denial */
    uint32_t grant;           /* allowed: the first that gives what is done, write before read
                                 before mount; denied UNLABELLED and nearer: which it is about */
    uint32_t lacks;           /* denied: the rights that no grant gives */
    uint64_t until_ns;        /* allowed: it holds until then; UINT64_MAX: without an end */
};

/* Grants add up: each right may come from another one.  A grant counts when its tenant is the
 * job's or above it, its principal is the job's, its role is bound to the principal by name on the
 * job's tenant or above, the job has its label, the node is one of its places, and its end has not
 * come: as far as it says each.  The reason of a denial is the nearest for the first right, in
 * the order of enum bh_data_right, that is missing. */
struct bh_data_verdict bh_datasets_check(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                                         const struct bh_data_request *request);

/* The number of a verdict in audit records. */
uint32_t bh_data_rule_number(const struct bh_data_verdict *verdict);

/* All rights that request->tenant and principal have; request->rights is not read.
 * `ret_until_ns`: when the last of them ends. */
uint32_t bh_datasets_may(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                         const struct bh_data_request *request, uint64_t *ret_until_ns);

/* Whether some grant is for request->tenant and principal, whatever else it asks for: those know
 * of the dataset. */
bool bh_datasets_names(const struct bh_datasets *datasets, const struct bh_dataset *dataset,
                       const struct bh_data_request *request);

/* What mount number `mount` of a job, one of a dataset, asks of it: mount and read, write when it is for
 * writing, and copy when the job has another place that it can write and that outlasts it (another mount for
 * writing, unless of the same dataset, a working directory, or any network but none: a host there may keep
 * what is sent). */
uint32_t bh_data_rights_wanted(const struct bh_job_spec *spec, uint32_t mount);

/* What denies a job its data. */
struct bh_data_denial {
    enum { BH_DATA_IN_MOUNT, BH_DATA_IN_CWD, BH_DATA_IN_IMAGE } where;
    uint32_t mount;                   /* IN_MOUNT: which */
    const struct bh_dataset *dataset; /* NULL: UNKNOWN */
    uint32_t rights;                  /* that it asks for; 0 of a DOOR */
    bool named;                       /* bh_datasets_names */
    struct bh_data_verdict verdict;
};

/* Whether the job may have all datasets that it names, and reaches none by a path: a mount, its
 * working directory, an image; request->rights is not read.  False: the first that is in the
 * way in `ret_denial`. */
bool bh_datasets_allow(const struct bh_datasets *datasets, const struct bh_job_spec *spec,
                       const struct bh_data_request *request, struct bh_data_denial *ret_denial);

/* BH_DENIED: an image is requested in a folder that has none: either no node has images there, or it is the
 * folder of a dataset, or near it, that the caller may not know of.  The answer is the same, so that requests
 * do not show where others' folders are. */
bh_rc bh_datasets_refuse_image(const struct bh_job_spec *spec, struct bh_err *err);

/* The denial in words, with what to do.  `hidden`: the caller may not know of datasets that no grant names
 * the subject for, and learns nothing of them: BH_NOT_FOUND where the subject names one, as if there were
 * none.  Else BH_DENIED. */
bh_rc bh_datasets_explain(const struct bh_job_spec *spec, const struct bh_data_request *request,
                          const struct bh_data_denial *denial, bool hidden, struct bh_err *err);

#endif
