#include "model/role.h"

#include <string.h>

const char *const bh_role_names[BH_ROLES] = {
    [BH_ROLE_NONE] = "none",         [BH_ROLE_VIEWER] = "viewer", [BH_ROLE_DEVELOPER] = "developer",
    [BH_ROLE_OPERATOR] = "operator", [BH_ROLE_ADMIN] = "admin",   [BH_ROLE_AUDITOR] = "auditor",
    [BH_ROLE_BILLING] = "billing",
};

enum bh_role
bh_role_find(const char *name)
{
    for (int role = BH_ROLE_VIEWER; role < BH_ROLES; role++)
        if (strcmp(bh_role_names[role], name) == 0)
            return (enum bh_role)role;
    return BH_ROLE_NONE;
}
