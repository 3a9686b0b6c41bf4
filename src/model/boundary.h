#ifndef BH_MODEL_BOUNDARY_H
#define BH_MODEL_BOUNDARY_H

#include <stdbool.h>
#include <stdint.h>

/* How far a tenant trusts those outside its subtree, weakest first.  The engine
 * derives from it which kinds of sharing may bring two jobs onto one GPU. */
enum bh_boundary {
    BH_BOUNDARY_UNSET, /* takes the default of the tenant's kind */
    BH_BOUNDARY_NONE,
    BH_BOUNDARY_SOFT,
    BH_BOUNDARY_HARD,
    BH_BOUNDARY_FORTRESS,
    BH_BOUNDARIES
};

enum bh_tenant_kind {
    BH_TENANT_ORGANIZATION,
    BH_TENANT_DEPARTMENT,
    BH_TENANT_TEAM,
    BH_TENANT_PROJECT,
    BH_TENANT_KINDS
};

/* What separates a lease from others on its hardware, strongest first (A).  The
 * letters are what people see; each grade's page says what it does not stop. */
enum bh_grade {
    BH_GRADE_NONE,
    BH_GRADE_A, /* dedicated node */
    BH_GRADE_B, /* whole GPU */
    BH_GRADE_C, /* MIG instance */
    BH_GRADE_D, /* driver-enforced memory cap */
    BH_GRADE_E, /* MPS with server-side limits */
    BH_GRADE_F, /* capped by the CUDA shim */
    BH_GRADE_G, /* advisory */
    BH_GRADES
};

extern const char *const bh_boundary_names[BH_BOUNDARIES];
extern const char *const bh_tenant_kind_names[BH_TENANT_KINDS];
extern const char *const bh_grade_names[BH_GRADES];

/* organization fortress, department hard, team soft, project none. */
enum bh_boundary bh_boundary_default(enum bh_tenant_kind kind);

/* The stronger of two. */
enum bh_boundary bh_boundary_max(enum bh_boundary a, enum bh_boundary b);

/* The weakest grade allowed across a boundary: none F, soft F, hard C, fortress B. */
enum bh_grade bh_boundary_grade(enum bh_boundary boundary);

/* Whether `have` is at least as strong as `need`. */
bool bh_grade_meets(enum bh_grade have, enum bh_grade need);

#endif
