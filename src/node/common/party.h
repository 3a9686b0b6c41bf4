#ifndef BH_NODE_COMMON_PARTY_H
#define BH_NODE_COMMON_PARTY_H

#include "model/ids.h"

/* Parties, each of which has a part of a node's disk: a topmost tenant with all below it.  Tenants below it
 * are no parties of their own: two parties would have two parts. */

enum { BH_PARTY_SIZE = BH_NAME_MAX + 1 };

/* The party of the tenant of that path, or "" where that is none. */
void bh_party_of(const char *tenant, char ret_party[BH_PARTY_SIZE]);

#endif
