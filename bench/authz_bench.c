/* How long an authorisation takes with many bindings: bh_authz_check with 1,000 of them over
 * 400 tenants, for callers of several kinds.  Prints nanoseconds of CPU a check. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/clock.h"
#include "base/attr.h"
#include "policy/authz.h"

enum { TENANTS = 400, PRINCIPALS = 300, BINDINGS = 1000, GIDS = 16, CHECKS = 200000 };

static struct bh_dir_tenant tenants[TENANTS];
static struct bh_dir_principal principals[PRINCIPALS];
static struct bh_dir_binding bindings[BINDINGS];
static uint32_t gids[GIDS];

static const struct bh_directory dir = {
    .tenants = tenants,
    .tenant_count = TENANTS,
    .principals = principals,
    .principal_count = PRINCIPALS,
    .bindings = bindings,
    .binding_count = BINDINGS,
};

/* Four levels, as organizations are: each tenant has a few below it.  Of the roles a third
 * is a group's; no user holds a role through the groups from 900 on. */
static void
fill(void)
{
    for (uint32_t i = 0; i < TENANTS; i++)
        tenants[i] = (struct bh_dir_tenant){ .id = { i + 1 }, .parent = { (i + 3) / 4 }, .path = "" };
    for (uint32_t i = 0; i < PRINCIPALS; i++)
        principals[i] = (struct bh_dir_principal){ .id = { i + 1 }, .name = "" };
    for (uint32_t i = 0; i < BINDINGS; i++)
        bindings[i] = (struct bh_dir_binding){
            .role = (enum bh_role)(1 + i % (BH_ROLES - 1)),
            .principal = { i % 3 ? 2 + i * 7 % (PRINCIPALS - 2) : 0 },
            .gid = i % 3 ? 0 : 500 + i,
            .tenant = { 1 + i * 31 % TENANTS },
        };
    for (uint32_t i = 0; i < GIDS; i++)
        gids[i] = 100 + i;
}

static void
measure(const char *name, const struct bh_subject *who, const char *verb)
{
    uint64_t begun = bench_clock(CLOCK_PROCESS_CPUTIME_ID), allowed = 0;

    for (uint32_t i = 0; i < CHECKS; i++)
        allowed += bh_authz_check(&dir, who, verb, (bh_tenant_id){ 1 + i % TENANTS }).allow;
    printf("authz_check, %d bindings, %s: %" PRIu64 " ns (%" PRIu64 "%% allowed)\n", BINDINGS, name,
           (bench_clock(CLOCK_PROCESS_CPUTIME_ID) - begun) / CHECKS, allowed * 100 / CHECKS);
}

int
main(void)
{
    struct bh_subject some = { .principal = { 100 } };
    struct bh_subject grouped = { .principal = { 100 }, .gids = gids, .gid_count = GIDS };
    struct bh_subject all = { .principal = { 1 } };

    fill();
    measure("a few of them the caller's", &some, "job.submit");
    measure("a caller in 16 groups", &grouped, "job.view");
    for (uint32_t i = 0; i < BINDINGS; i++)
        bindings[i].principal.v = 1;
    measure("all of them the caller's", &all, "job.submit");
    for (uint32_t i = 0; i < BINDINGS; i++)
        bindings[i] = (struct bh_dir_binding){ .role = BH_ROLE_ADMIN, .gid = 900 + i, .tenant = { 1 } };
    measure("the worst: all are groups' on the top, 16 groups searched", &grouped, "job.submit");
    return 0;
}
