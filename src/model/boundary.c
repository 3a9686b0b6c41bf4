#include "model/boundary.h"

#include "base/assert.h"

const char *const bh_boundary_names[BH_BOUNDARIES] = {
    [BH_BOUNDARY_UNSET] = "default", [BH_BOUNDARY_NONE] = "none",         [BH_BOUNDARY_SOFT] = "soft",
    [BH_BOUNDARY_HARD] = "hard",     [BH_BOUNDARY_FORTRESS] = "fortress",
};

const char *const bh_tenant_kind_names[BH_TENANT_KINDS] = {
    [BH_TENANT_ORGANIZATION] = "organization",
    [BH_TENANT_DEPARTMENT] = "department",
    [BH_TENANT_TEAM] = "team",
    [BH_TENANT_PROJECT] = "project",
};

const char *const bh_grade_names[BH_GRADES] = {
    [BH_GRADE_NONE] = "none", [BH_GRADE_A] = "A", [BH_GRADE_B] = "B", [BH_GRADE_C] = "C",
    [BH_GRADE_D] = "D",       [BH_GRADE_E] = "E", [BH_GRADE_F] = "F", [BH_GRADE_G] = "G",
};

enum bh_boundary
bh_boundary_default(enum bh_tenant_kind kind)
{
    static const enum bh_boundary defaults[BH_TENANT_KINDS] = {
        [BH_TENANT_ORGANIZATION] = BH_BOUNDARY_FORTRESS,
        [BH_TENANT_DEPARTMENT] = BH_BOUNDARY_HARD,
        [BH_TENANT_TEAM] = BH_BOUNDARY_SOFT,
        [BH_TENANT_PROJECT] = BH_BOUNDARY_NONE,
    };

    BH_ASSERT((uint32_t)kind < BH_TENANT_KINDS);
    return defaults[kind];
}

enum bh_boundary
bh_boundary_max(enum bh_boundary a, enum bh_boundary b)
{
    return a > b ? a : b;
}

enum bh_grade
bh_boundary_grade(enum bh_boundary boundary)
{
    static const enum bh_grade weakest[BH_BOUNDARIES] = {
        [BH_BOUNDARY_UNSET] = BH_GRADE_F,    [BH_BOUNDARY_NONE] = BH_GRADE_F,
        [BH_BOUNDARY_SOFT] = BH_GRADE_F,     [BH_BOUNDARY_HARD] = BH_GRADE_C,
        [BH_BOUNDARY_FORTRESS] = BH_GRADE_B,
    };

    BH_ASSERT((uint32_t)boundary < BH_BOUNDARIES);
    return weakest[boundary];
}

bool
bh_grade_meets(enum bh_grade have, enum bh_grade need)
{
    return have != BH_GRADE_NONE && (need == BH_GRADE_NONE || have <= need);
}
