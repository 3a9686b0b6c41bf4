/* Random questions to the authoriser, with its answers, for second.py to answer again.
 *
 *   authz_cases COUNT SEED
 *
 * Prints worlds and questions, a line each, fields separated by tabs:
 *
 *   w                                              a new world: forget the last one
 *   t ID PARENT                                    a tenant
 *   p ID GONE                                      a principal
 *   b ROLE PRINCIPAL GID TENANT GROUP              a binding; principal 0: the group's, of
 *                                                  the provider unless GROUP is 0
 *   s VERB LEVEL WITHIN                            the verb asks for a person who is there;
 *                                                  of several the first counts
 *   c WHO VERB TENANT   ALLOW RULE                 bh_authz_check
 *   a WHO VERB          ALLOW RULE                 bh_authz_check_anywhere
 *   v WHO VERB          ALL TENANTS                bh_authz_visible
 *   g WHO ROLE TENANT WORDS   VERB                 bh_authz_not_held; no words: all verbs;
 *                                                  "" when all is held
 *
 * WHO is PRINCIPAL, ROOT, GIDS (with commas), SCOPES ("=" and the words; "-" is none
 * given, so all), GROUPS and PRESENCE (kind, level, shown, now, glass until).  Worlds hold what a directory
 * should never hold as well: trees with rings, parents and tenants that there are not, removed principals. */

#include <stdio.h>
#include <stdlib.h>

#include "base/attr.h"
#include "policy/authz.h"

enum { TENANTS = 14, PRINCIPALS = 5, BINDINGS = 18, GIDS = 4, STEP_UPS = 12, QUESTIONS = 40, TEXT = 256 };

struct world {
    uint64_t random;
    struct bh_dir_tenant tenants[TENANTS];
    struct bh_dir_principal principals[PRINCIPALS];
    struct bh_dir_binding bindings[BINDINGS];
    struct bh_directory dir;
    struct bh_dir_step_up step_ups[STEP_UPS];
    uint32_t gids[GIDS], groups[GIDS];
    char scopes[TEXT], given[TEXT];
};

static const char *const verbs[] = {
#define BH_GRANT(number, who, what) what,
#include "tables/roles.tbl"
#undef BH_GRANT
    "", "job.cance", "job.cancel.an", "JOB.VIEW", "job", "no.such.verb",
};

static uint32_t
draw(struct world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % below);
}

static const char *
draw_verb(struct world *w)
{
    return verbs[draw(w, BH_COUNT(verbs))];
}

/* A tenant that there is, the site, or now and then one that there is not. */
static bh_tenant_id
draw_tenant(struct world *w)
{
    if (draw(w, 12) == 0)
        return (bh_tenant_id){ draw(w, 2) ? 40 : UINT32_MAX };
    return (bh_tenant_id){ draw(w, w->dir.tenant_count + 1) };
}

/* Parents come first, mostly, so that trees are deep; in one world of eight anything goes. */
static void
draw_tree(struct world *w)
{
    bool wild = draw(w, 8) == 0, sparse = draw(w, 4) == 0;

    w->dir.tenant_count = 1 + draw(w, TENANTS);
    for (uint32_t i = 0; i < w->dir.tenant_count; i++) {
        uint32_t id = sparse ? 2 * (w->dir.tenant_count - i) : i + 1;
        uint32_t parent = i == 0 ? 0 : draw(w, 3) ? w->tenants[i - 1].id.v : w->tenants[draw(w, i)].id.v;

        w->tenants[i] = (struct bh_dir_tenant){ .id = { id },
                                                .parent = { wild ? draw(w, 2 * TENANTS) : parent },
                                                .path = "" };
        printf("t\t%u\t%u\n", id, w->tenants[i].parent.v);
    }
}

static void
draw_people(struct world *w)
{
    w->dir.principal_count = 1 + draw(w, PRINCIPALS);
    for (uint32_t i = 0; i < w->dir.principal_count; i++) {
        w->principals[i] = (struct bh_dir_principal){ .id = { i + 1 }, .name = "", .gone = draw(w, 8) == 0 };
        printf("p\t%u\t%d\n", i + 1, w->principals[i].gone);
    }
    w->dir.binding_count = draw(w, BINDINGS + 1);
    for (uint32_t i = 0; i < w->dir.binding_count; i++) {
        bool group = draw(w, 2) == 0, provider = group && draw(w, 2);
        struct bh_dir_binding *binding = &w->bindings[i];

        *binding = (struct bh_dir_binding){
            .role = (enum bh_role)(BH_ROLE_VIEWER + draw(w, BH_ROLES - BH_ROLE_VIEWER)),
            .principal = { group ? 0 : 1 + draw(w, PRINCIPALS) },
            .gid = group && !provider ? 100 + draw(w, 6) : 0,
            .group = provider ? 100 + 64 * draw(w, 3) : 0,
            .tenant = draw_tenant(w),
        };
        printf("b\t%s\t%u\t%u\t%u\t%u\n", bh_role_names[binding->role], binding->principal.v, binding->gid,
               binding->tenant.v, binding->group);
    }
}

static void
draw_step_ups(struct world *w)
{
    w->dir.step_up_count = draw(w, STEP_UPS + 1);
    for (uint32_t i = 0; i < w->dir.step_up_count; i++) {
        struct bh_dir_step_up *row = &w->step_ups[i];

        *row = (struct bh_dir_step_up){ draw_verb(w), (enum bh_level)draw(w, BH_LEVELS), draw(w, 20) };
        printf("s\t%s\t%d\t%u\n", row->verb, (int)row->level, (unsigned)row->within_ns);
    }
}

static void
draw_world(struct world *w)
{
    puts("w");
    w->dir = (struct bh_directory){
        .tenants = w->tenants, .principals = w->principals, .bindings = w->bindings, .step_ups = w->step_ups
    };
    draw_tree(w);
    draw_people(w);
    draw_step_ups(w);
}

/* A few words, some of them nonsense, with a blank too many now and then. */
static void
draw_words(struct world *w, const char *wanted, char *ret_words)
{
    uint32_t words = draw(w, 4);
    size_t length = 0;

    ret_words[0] = '\0';
    for (uint32_t i = 0; i < words; i++)
        length += (size_t)snprintf(ret_words + length, TEXT - length, "%s%s",
                                   draw(w, 2) ? wanted : draw_verb(w), draw(w, 6) ? " " : "  ");
}

static struct bh_presence
draw_presence(struct world *w)
{
    struct bh_presence presence = {
        .kind = (enum bh_presence_kind)draw(w, 3),
        .level = (enum bh_level)draw(w, BH_LEVELS),
        .shown_ns = draw(w, 30),
        .now_ns = draw(w, 30),
        .break_glass_until_ns = draw(w, 4) == 0 ? draw(w, 40) : 0,
    };

    printf("\t%d,%d,%u,%u,%u", (int)presence.kind, (int)presence.level, (unsigned)presence.shown_ns,
           (unsigned)presence.now_ns, (unsigned)presence.break_glass_until_ns);
    return presence;
}

/* Draw a principal, and print which. */
static struct bh_subject
draw_subject(struct world *w, const char *wanted)
{
    struct bh_subject subject = { .principal = { draw(w, PRINCIPALS + 2) },
                                  .uid = UINT32_MAX,
                                  .gids = w->gids,
                                  .gid_count = draw(w, GIDS + 1),
                                  .root = draw(w, 16) == 0 };

    printf("\t%u\t%d\t", subject.principal.v, subject.root);
    for (uint32_t i = 0; i < subject.gid_count; i++) {
        w->gids[i] = 100 + draw(w, 6);
        printf("%s%u", i ? "," : "", w->gids[i]);
    }
    if (draw(w, 4) == 0) {
        draw_words(w, wanted, w->scopes);
        subject.scopes = w->scopes;
    }
    printf("\t%s%s\t", subject.scopes ? "=" : "-", subject.scopes ? w->scopes : "");
    subject.groups = w->groups;
    subject.group_count = draw(w, GIDS + 1);
    for (uint32_t i = 0; i < subject.group_count; i++) {
        w->groups[i] = 100 + 64 * draw(w, 3);
        printf("%s%u", i ? "," : "", w->groups[i]);
    }
    subject.presence = draw_presence(w);
    return subject;
}

static void
ask_visible(struct world *w, const struct bh_subject *subject, const char *verb)
{
    uint32_t ids[TENANTS], count;
    bool all;

    count = bh_authz_visible(&w->dir, subject, verb, ids, &all);
    printf("\t%s\t%d\t", verb, all);
    for (uint32_t i = 0; i < count; i++)
        printf("%s%u", i ? "," : "", ids[i]);
    putchar('\n');
}

static void
ask_grant(struct world *w, const struct bh_subject *subject)
{
    enum bh_role role = (enum bh_role)(BH_ROLE_VIEWER + draw(w, BH_ROLES - BH_ROLE_VIEWER));
    bh_tenant_id tenant = draw_tenant(w);
    const char *verb;

    w->given[0] = '\0';
    if (draw(w, 2))
        draw_words(w, draw_verb(w), w->given);
    verb = bh_authz_not_held(&w->dir, subject, role, w->given[0] ? w->given : NULL, tenant);
    printf("\t%s\t%u\t%s\t%s\n", bh_role_names[role], tenant.v, w->given, verb ? verb : "");
}

static void
ask(struct world *w)
{
    static const char kinds[] = "cccccccccccccaavg";
    char kind = kinds[draw(w, sizeof kinds - 1)];
    const char *verb = draw_verb(w);
    struct bh_subject subject;
    struct bh_verdict verdict;
    bh_tenant_id tenant;

    putchar(kind);
    subject = draw_subject(w, verb);
    if (kind == 'v') {
        ask_visible(w, &subject, verb);
    } else if (kind == 'g') {
        ask_grant(w, &subject);
    } else if (kind == 'a') {
        verdict = bh_authz_check_anywhere(&w->dir, &subject, verb);
        printf("\t%s\t%d\t%u\n", verb, verdict.allow, verdict.rule);
    } else {
        tenant = draw_tenant(w);
        verdict = bh_authz_check(&w->dir, &subject, verb, tenant);
        printf("\t%s\t%u\t%d\t%u\n", verb, tenant.v, verdict.allow, verdict.rule);
    }
}

int
main(int argc, char **argv)
{
    struct world world = { .random = argc > 2 ? strtoull(argv[2], NULL, 10) : 1 };
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;

    if (count == 0) {
        fputs("usage: authz_cases COUNT SEED\n", stderr);
        return 2;
    }
    for (unsigned long i = 0; i < count; i++) {
        if (i % QUESTIONS == 0)
            draw_world(&world);
        ask(&world);
    }
    return ferror(stdout) ? 1 : 0;
}
