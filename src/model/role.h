#ifndef BH_MODEL_ROLE_H
#define BH_MODEL_ROLE_H

/* What a principal or a group may be bound to a tenant as; tables/roles.tbl says what
 * each role allows.  Viewer to admin are ordered: each can do more than the last. */
enum bh_role {
    BH_ROLE_NONE,
    BH_ROLE_VIEWER,
    BH_ROLE_DEVELOPER,
    BH_ROLE_OPERATOR,
    BH_ROLE_ADMIN,
    BH_ROLE_AUDITOR,
    BH_ROLE_BILLING,
    BH_ROLES
};

extern const char *const bh_role_names[BH_ROLES];

/* The role of that name, or BH_ROLE_NONE. */
enum bh_role bh_role_find(const char *name);

#endif
