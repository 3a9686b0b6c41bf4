#include "node/common/party.h"

#include <stdio.h>
#include <string.h>

void
bh_party_of(const char *tenant, char ret_party[BH_PARTY_SIZE])
{
    size_t length = strcspn(tenant, "/");

    *ret_party = '\0';
    if (length >= BH_PARTY_SIZE)
        return;
    snprintf(ret_party, BH_PARTY_SIZE, "%.*s", (int)length, tenant);
    if (!bh_name_valid(ret_party)) /* it becomes the name of a folder */
        *ret_party = '\0';
}
