#ifndef BH_POLICY_ADMISSION_H
#define BH_POLICY_ADMISSION_H

#include "base/arena.h"
#include "model/policies.h"
#include "model/spec.h"

/* Admission: whether a job may be submitted at all, by the policies of the site file that
 * are above it.  All of them are asked, so a tenant's can only narrow.  Pure. */

/* What decided; the numbers in the audit records are in tables/admission.tbl. */
enum bh_admission_rule_id {
    BH_ADMISSION_NONE,
#define BH_ADMISSION(rule, id, entry) BH_ADMISSION_##id,
#include "tables/admission.tbl"
#undef BH_ADMISSION
    BH_ADMISSIONS
};

/* A policy made ready: whose it is ("" the site's) and what it says. */
struct bh_admission_policy {
    const char *owner;
    struct bh_policy_rules rules;
};

/* All of a site, parents before children. */
struct bh_admission {
    const struct bh_admission_policy *policies;
    uint32_t count;
};

/* Make the policies of a site that bh_site_check found right ready, in `arena`; texts stay the
 * site's.  BH_FULL: no room. */
BH_MUST_USE bh_rc bh_admission_compile(const struct bh_site *site, struct bh_arena *arena,
                                       struct bh_admission *ret_admission, struct bh_err *err);

/* Walk the policies that hold for `tenant`, the site's first: start with *cursor = 0; NULL at
 * the end. */
const struct bh_admission_policy *bh_admission_next(const struct bh_admission *admission, const char *tenant,
                                                    uint32_t *cursor);

/* What is submitted, and when. */
struct bh_admission_request {
    const struct bh_job_spec *spec;
    uint64_t count, gang;           /* partitions of each member, and members; 1 at least */
    uint64_t cpu_milli, memory_mib; /* of each member, the SKU's where it says none; 0: the
                                       node's share */
    uint64_t time_limit_ns;         /* 0: none */
    enum bh_priority priority;
    uint64_t models; /* GPU models that keep its SKU, a bit each */
    uint64_t now_ns;
};

/* What the owner of a policy and those below have at once, without the job submitted. */
struct bh_admission_counts {
    uint64_t running, pending; /* jobs */
    uint64_t partitions;       /* of the job's SKU, running or waited for */
};

/* How many partitions of the SKU the policy allows at once; UINT64_MAX: it does not say, and
 * no count is needed. */
uint64_t bh_admission_sku_partitions(const struct bh_admission_policy *policy, const char *sku);

/* What one policy says.  `counts` NULL: caps on what there is at once are not judged.
 *   BH_DENIED  `ret_rule` says which entry; the message names the policy, the entry and what
 *              it allows, the hint what to do */
BH_MUST_USE bh_rc bh_admission_check(const struct bh_admission_policy *policy,
                                     const struct bh_admission_request *request,
                                     const struct bh_admission_counts *counts,
                                     enum bh_admission_rule_id *ret_rule, struct bh_err *err);

/* The entry's name in the site file, and its number in audit records. */
const char *bh_admission_entry(enum bh_admission_rule_id rule);
uint32_t bh_admission_number(enum bh_admission_rule_id rule);

#endif
