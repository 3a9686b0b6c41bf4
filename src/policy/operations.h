#ifndef BH_POLICY_OPERATIONS_H
#define BH_POLICY_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>

/* tables/operations.tbl as data: what the router, the authorisation, the OpenAPI
 * document and the records derive from. */

enum bh_method { BH_GET, BH_POST, BH_PUT, BH_DELETE, BH_METHODS };
extern const char *const bh_method_names[BH_METHODS];

enum bh_operation {
#define BH_OPERATION(id, method, path, verb, scope, kind, request, query, handler, runner, reply, summary)   \
    BH_OP_##id,
#include "tables/operations.tbl"
#undef BH_OPERATION
    BH_OPERATIONS
};

/* Whose tenant the permission is asked on. */
enum bh_operation_scope {
    BH_SCOPE_NOBODY, /* open to all */
    BH_SCOPE_SELF,   /* any known principal that holds the verb anywhere */
    BH_SCOPE_OWN,    /* any known principal, about its own: bh_authz_own */
    BH_SCOPE_SITE,
    BH_SCOPE_TENANT,  /* named in the request */
    BH_SCOPE_JOB,     /* the job's */
    BH_SCOPE_VISIBLE, /* the answer is cut down to tenants where the verb is held */
    BH_SCOPES
};

enum bh_operation_kind { BH_OPERATION_READ, BH_OPERATION_MUTATE, BH_OPERATION_STREAM };

struct bh_operation_row {
    enum bh_operation id;
    const char *name; /* "JOB_SUBMIT" */
    enum bh_method method;
    const char *path; /* "/v1/jobs/{id}" */
    const char *verb; /* "" is open */
    enum bh_operation_scope scope;
    enum bh_operation_kind kind;
    const char *query; /* accepted parameters, separated by blanks */
    const char *summary;
    bool has_body;
};

/* The operation's row of the table. */
const struct bh_operation_row *bh_operation_get(enum bh_operation op);

/* The verb of all its records, whatever comes of it (tables/recorded_verbs.tbl): its permission, or what that
 * allows besides others.  Of operations that are open to all and leave no record: their name. */
const char *bh_operation_recorded_verb(enum bh_operation op);

/* Whether it is one of src/accounts: signing in, sessions, accounts. */
bool bh_operation_of_accounts(enum bh_operation op);

/* Whether the operation takes a query parameter of that name. */
bool bh_operation_has_parameter(const struct bh_operation_row *op, const char *parameter);

/* What `{id}`, a segment, or `{rest}`, all that follows, stands for when `path` (with or
 * without parameters) is matched. */
struct bh_path_match {
    const char *id; /* points into the path; NULL: the pattern has none */
    size_t id_length;
};

/* Whether `path` is one of `pattern`'s. */
bool bh_path_matches(const char *pattern, const char *path, struct bh_path_match *ret_match);

/* Whether a list of words separated by blanks contains `word`. */
bool bh_words_contain(const char *words, const char *word);

#endif
