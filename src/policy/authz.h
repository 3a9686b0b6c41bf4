#ifndef BH_POLICY_AUTHZ_H
#define BH_POLICY_AUTHZ_H

#include "base/err.h"
#include "policy/directory.h"

/* How the caller authenticated, as far as it decides what the caller may do. */
enum bh_presence_kind {
    BH_PRESENCE_LOCAL,  /* on the machine: nothing more is asked */
    BH_PRESENCE_TOKEN,  /* a program's */
    BH_PRESENCE_SESSION /* signed in some time ago */
};

struct bh_presence {
    enum bh_presence_kind kind;
    enum bh_level level;           /* of a session: the best that was shown, */
    uint64_t shown_ns;             /* when that was, */
    uint64_t now_ns;               /* and the moment of the question */
    uint64_t break_glass_until_ns; /* break-glass: admin of the whole site until then */
};

/* The caller. */
struct bh_subject {
    bh_principal_id principal; /* 0: unknown; holds nothing */
    uint32_t uid;              /* UINT32_MAX when not from a Unix socket */
    const uint32_t *gids;      /* the peer's groups, primary one included */
    uint32_t gid_count;
    const uint32_t *groups; /* of the provider, by their ids */
    uint32_t group_count;
    struct bh_presence presence;
    const char *scopes; /* a token's verbs separated by blanks; NULL: all */
    bool root;          /* local uid 0: holds every verb on the site (rule 1000) */
};

enum {
    BH_RULE_DEFAULT_DENY = 0,
    BH_RULE_LOCAL_ROOT = 1000,
    BH_RULE_OPEN = 1001,
    BH_RULE_TOKEN_SCOPE = 1002,
    BH_RULE_OWN_OBJECT = 1003,
    BH_RULE_NOT_HELD = 1004, /* the caller would grant what it does not hold */
    BH_RULE_STEP_UP = 1005,  /* the caller holds it, and must show a factor again */
    BH_RULE_BREAK_GLASS = 1006,
    BH_RULE_NOT_SHOWN = 1007 /* the sign-in failed */
};

struct bh_verdict {
    bool allow;
    uint32_t rule; /* tables/roles.tbl, or one of the above */
};

/* Whether `subject` may do `verb` on an object of `tenant` (0: the site as a whole).
 *
 * Pure and total: roles are bound at a tenant and hold for everything below it, they
 * add up, and what no rule grants is denied.  A binding at a tenant never grants
 * anything on the site as a whole.  A tenant that the directory does not have is below
 * the site only.  The rule is the lowest that grants the verb, whatever the order of
 * bindings.  "" is open to all (rule BH_RULE_OPEN).
 *
 * What a role grants is denied by BH_RULE_STEP_UP where the verb asks for a person who has
 * just shown a factor (dir->step_ups): of a session, less than the level or longer ago
 * than that; of a token, scopes that do not name the verb.  A level shown at a moment that
 * has yet to come was not shown.  With break-glass a known principal's session holds
 * what admin holds on the site, by BH_RULE_BREAK_GLASS; that asks for a presence as well. */
struct bh_verdict bh_authz_check(const struct bh_directory *dir, const struct bh_subject *subject,
                                 const char *verb, bh_tenant_id tenant);

/* As above for an object anywhere: by the lowest rule of any binding.  For operations
 * whose scope is SELF. */
struct bh_verdict bh_authz_check_anywhere(const struct bh_directory *dir, const struct bh_subject *subject,
                                          const char *verb);

/* As bh_authz_check for the subject's own account and sessions: a known principal has that right without a
 * role, by BH_RULE_OWN_OBJECT.  A token has it only when its scopes name the verb. */
struct bh_verdict bh_authz_own(const struct bh_directory *dir, const struct bh_subject *subject,
                               const char *verb);

/* A principal grants only what it holds: the first verb of `role` (of those in `scopes`, when that is not
 * NULL) that `subject` does not hold on `tenant` (0: the site), or NULL when it holds all and may give the
 * role. */
const char *bh_authz_not_held(const struct bh_directory *dir, const struct bh_subject *subject,
                              enum bh_role role, const char *scopes, bh_tenant_id tenant);

/* The tenants on which `subject` holds `verb`, into `ret_ids` (room for
 * dir->tenant_count); `ret_all` when it holds it on the whole site.  Returns how many. */
uint32_t bh_authz_visible(const struct bh_directory *dir, const struct bh_subject *subject, const char *verb,
                          uint32_t *ret_ids, bool *ret_all);

/* Bindings that name the subject, for `whoami`: the next at or after *cursor, or NULL. */
const struct bh_dir_binding *bh_authz_next_binding(const struct bh_directory *dir,
                                                   const struct bh_subject *subject, uint32_t *cursor);

/* Where a verb was asked for: at an object, of a tenant or the site's; at any object there may
 * be; or at the caller's own account and sessions. */
enum bh_reach { BH_REACH_OBJECT, BH_REACH_ANYWHERE, BH_REACH_OWN };

/* What was denied. */
struct bh_denial {
    const char *verb;
    struct bh_verdict verdict;
    enum bh_reach reach;
};

/* Fill `err` for a denial to `caller`, who is `subject`: what is denied, and the role that would
 * allow it with the place where it would have to be bound.  `path` is the object's tenant; NULL: it
 * is the site's; looked at only where the reach is an object.  Returns BH_DENIED, or
 * BH_UNAUTHENTICATED of BH_RULE_STEP_UP. */
bh_rc bh_authz_explain(const struct bh_denial *denial, const char *caller, const struct bh_subject *subject,
                       const char *path, struct bh_err *err);

/* Fill `err` for a denial by BH_RULE_STEP_UP; returns BH_UNAUTHENTICATED. */
bh_rc bh_authz_refuse_step_up(const char *verb, struct bh_err *err);

/* The lowest role that would grant the verb, for the denial's hint: "operator". */
const char *bh_authz_role_for(const char *verb);

/* The one to ask for where it is the whole site's (tables/site_roles.tbl). */
const char *bh_authz_site_role_for(const char *verb);

/* A hint for a verb that no role allows: the nearest one that some role does, where there is one, and
 * those of a developer. */
void bh_authz_hint_verb(const char *verb, struct bh_err *err);

/* Whether a holder of the role, where the verb is asked for, has the verb. */
bool bh_authz_role_grants(enum bh_role role, const char *verb);

#endif
