#ifndef BH_API_REQUEST_OWNER_H
#define BH_API_REQUEST_OWNER_H

#include "api/documents/site_changes.h"
#include "api/documents/tally.h"
#include "api/request/work.h"
#include "audit/record.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "engine/read/view.h"
#include "model/site.h"
#include "model/spec.h"
#include "policy/authz.h"
#include "policy/operations.h"
#include "ports/store.h"

/* What the API asks of the owner thread.  All calls block until the answer is
 * durable, and may be made by any worker. */

/* The caller and the request id; goes into the record. */
struct bh_caller {
    struct bh_subject subject;
    const char *name;  /* for messages and rows */
    uint32_t via;      /* enum bh_via */
    uint32_t uid, gid; /* Unix ids of the submitter, for its working directory */
    const char *token; /* public id of the token, or NULL */
    uint8_t request_id[16];
    const char *idempotency_key; /* NULL: none */
    struct bh_digest request;    /* of method, path and body, when there is a key */
};

struct bh_token_request {
    const char *note;
    const char *scopes;    /* verbs separated by blanks; NULL: all the owner's */
    const char *lifetime;  /* "30d"; NULL: 90 days, which is the most */
    const char *principal; /* whose; NULL: the caller's; others need token.any */
};

/* A document to write, if it is as it was when that was decided. */
struct bh_document_put {
    struct bh_document_row row; /* `version` is the one it must have: 0, there is none yet */
    bool blind;                 /* whichever it has */
};

/* A change of what is known about people, prepared by a worker (src/accounts): the owner asks
 * whether the caller may, and whether what it was decided on still is so, writes the record
 * and the documents. */
struct bh_accounts_change {
    const char *verb; /* of the record: "session.open" */
    struct bh_record_object object;
    bh_rc res;          /* of the record: what came of an attempt */
    const char *person; /* a principal's name to make or find: the owner of the puts
                           that have no principal, and of the record */
    const char *note;   /* a text of a person's for the record, sealed; NULL: none */
    const struct bh_document_put *puts;
    uint32_t put_count;
    const struct bh_token_use *uses;
    uint32_t use_count;
};

/* When a token was last used. */
struct bh_token_use {
    char id[16];
    uint64_t at_ns;
};

/* Destroying what a tenant's texts are sealed with; the texts live with the command. */
struct bh_shred_request {
    const char *tenant; /* path, also of one that was removed; "*" is the site */
    const char *month;  /* "2026-11", or "all" */
    const char *reason;
    const char *token; /* of what another asked for; NULL: ask */
    const char *name;  /* "principal:bob", that is not in use: it alone is erased, and
                          tenant and month are NULL; else NULL */
};

/* What an interactive stream is to be (api/jobs/streams.h); the texts live with the command. */
struct bh_stream_request {
    struct bh_texts args; /* JOB_EXEC: the command */
    uint32_t member, rows, columns;
    bool tty, input;
};

/* How one ended. */
struct bh_stream_end {
    uint64_t seq; /* record that it began with */
    bh_job_id job;
    uint32_t tenant_id, principal_id;
    bh_rc res;      /* BH_OK: by itself */
    int32_t status; /* of the command; -1: none is known */
    uint64_t in_bytes, out_bytes, connections;
};

/* What one that was recorded may reach. */
struct bh_stream_grant {
    uint64_t seq;
    uint64_t lease;
    bh_tenant_id tenant;
    const char *verb;   /* the permission it was let in by */
    const char *socket; /* of its node, in the caller's arena */
};

/* What is said of new work on a GPU or a node. */
struct bh_cordon_request {
    const char *target; /* a node's name, a GPU's UUID or its beginning */
    const char *reason; /* NULL: none */
    bool now;           /* DRAIN: what runs ends, by its contract */
    bool clear_fault;   /* UNCORDON: its health, too */
};

struct bh_command {
    enum bh_operation op;
    struct bh_caller caller;
    bool dry_run, admission_only; /* decide and answer, change nothing; of a job, without the queue */
    /* JOB_SUBMIT: parsed, checked, and its canonical text. */
    const struct bh_job_spec *spec;
    struct bh_job_numbers numbers;
    bool image_away; /* no node has images where it asks for one */
    /* SITE_APPLY */
    const struct bh_site *site;
    uint64_t revision;   /* the present one must be this, where `guarded` */
    bool guarded, prune; /* `prune`: also what has usage, jobs, tokens or accounts */
    const char *text;    /* canonical JSON of spec or site */
    size_t text_length;
    bh_tenant_id tenant; /* as the API knows: for what fails before the owner does */
    bh_job_id job;       /* JOB_CANCEL, JOB_RELEASE, JOB_VERIFY */
    bool at_once;        /* JOB_CANCEL: without its grace */
    const struct bh_token_request *token;
    const char *token_id;                  /* TOKEN_REVOKE */
    const struct bh_ev_move *move;         /* DEFRAG_APPLY */
    const struct bh_ev_layout *gpu_layout; /* LAYOUT_APPLY; their numbers are the owner's */
    uint32_t standing_count;
    const struct bh_accounts_change *accounts;
    const struct bh_shred_request *shred;   /* KEY_SHRED */
    const struct bh_cordon_request *cordon; /* CORDON, UNCORDON, DRAIN */
    const char *checkpoint;                 /* AUDIT_PRUNE: of the export that the caller has */
    const struct bh_stream_request *stream; /* JOB_EXEC, JOB_ATTACH, JOB_FORWARD; or, by the */
    const struct bh_stream_end *stream_end; /* system, its end */
    bool system;                            /* the daemon itself asks for it, as the site file says */
};

/* What came of it; texts in the caller's arena. */
struct bh_answer {
    bh_job_id job;
    enum bh_job_state state;
    struct bh_reason reason; /* why it waits, or why it was refused */
    const char *secret;      /* TOKEN_CREATE: shown once */
    const char *token_id;
    uint32_t principal;             /* a change about people: whose it is */
    struct bh_site_changes changes; /* SITE_APPLY */
    const char *removes;            /* one line for each name that is removed and has something */
    const char *warnings;           /* one line for each thing that has no effect as things are */
    uint64_t revision;              /* the present one, after it */
    const struct bh_event *events;  /* SITE_APPLY, a dry run: the events that the engine would receive */
    uint32_t event_count;
    uint32_t keys;            /* KEY_SHRED: destroyed, or to be; KEY_ROTATE: wrapped anew */
    uint32_t change, gpus;    /* LAYOUT_APPLY, _ROLLBACK: its number, GPUs that it is for */
    const char *shred_token;  /* KEY_SHRED, asked: what another confirms with; "": done */
    uint64_t expires_ns;      /* until then */
    enum bh_held held;        /* CORDON, UNCORDON, DRAIN: how it stands now */
    uint64_t verify_request;  /* JOB_VERIFY, NODE_VERIFY: what verdicts will name */
    uint32_t verify_count;    /* of so many that were asked */
    uint64_t minimum, pruned; /* AUDIT_PRUNE: records below `minimum` are pruned, now so many */
    bool more;                /* and more could be */
    struct bh_stream_grant stream;
    const char *replayed; /* the remembered body of an idempotent repeat, or NULL */
    uint32_t replayed_status;
};

/* What was tried and turned away.  Of what it names the record has the number, if there is one. */
struct bh_refused_request {
    enum bh_operation op;
    struct bh_verdict verdict;
    bh_job_id job;                  /* 0: none */
    const char *verb;               /* the deed that was asked about, of a table; NULL: the op's own */
    const char *target;             /* a name that the owner resolves: of a GPU, node, token or account */
    bh_tenant_id tenant;            /* whose business it is, where the caller may know; else 0 */
    struct bh_record_object object; /* in place of job and target, where it has a type */
};

/* A question to the engine, run on the owner thread between batches. */
typedef void (*bh_question)(void *self, const struct bh_engine *engine, uint64_t now_ns);

/* A question to what is forecast, run the same way (engine/foresight.h). */
struct bh_forecast_series;
typedef void (*bh_forecast_question)(void *self, const struct bh_forecast_series *foresight,
                                     const struct bh_engine *engine, uint64_t now_ns);

/* A change of a job's state, for watchers. */
struct bh_change {
    uint64_t number; /* ascending, starts anew with the daemon */
    uint64_t job;
    uint32_t tenant_id, principal_id;
    char state[16], reason[24];
    uint64_t at_ns;
};

/* The newest checkpoint of the audit log that was signed since the daemon started. */
struct bh_signed {
    uint64_t records; /* that it covers */
    uint64_t at_ns;   /* 0: none was */
};

struct bh_owner_ops {
    /* Authorise, step, journal, commit, answer.  Any bh_rc; `err` says why, with a
     * hint.  A denial is recorded too. */
    bh_rc (*command)(void *self, const struct bh_command *command, struct bh_arena *arena,
                     struct bh_answer *ret_answer, struct bh_err *err);
    /* BH_UNAVAILABLE while the owner is stopping. */
    bh_rc (*ask)(void *self, bh_question question, void *question_self, struct bh_err *err);
    bh_rc (*ask_forecast)(void *self, bh_forecast_question question, void *question_self, struct bh_err *err);
    /* Queue a record of a request that the API itself refused, without waiting: a denied read (BH_DENIED,
     * with the verdict's rule) or a malformed body, from a known principal; or any request of an unknown Unix
     * user on the socket (BH_UNAUTHENTICATED; principal 0, the uid in the subject). */
    void (*refused)(void *self, const struct bh_caller *caller, const struct bh_refused_request *attempt,
                    const struct bh_err *err);
    /* Count credentials that are unknown, of the token whose id they have, or 0.  Does not wait. */
    void (*unauthenticated)(void *self, uint64_t token);
    /* The present picture of the site; give each one back. */
    const struct bh_directory *(*directory_get)(void *self);
    void (*directory_put)(void *self, const struct bh_directory *dir);
    uint64_t (*change_number)(void *self); /* of the newest: where a watcher begins */
    /* Wait until a change with a number above `after` exists or `wait_ns` is over;
     * copies at most `max` of them and returns how many. */
    uint32_t (*changes)(void *self, uint64_t after, uint64_t wait_ns, struct bh_change *ret_changes,
                        uint32_t max);
    /* Append the next connected node's last inventory and samples as one JSON object
     * (wire/message.h names); false at the end.  Start with *cursor = 0. */
    bool (*inventory)(void *self, uint32_t *cursor, struct bh_buf *ret_json);
    /* Append the next verdict of a node on that request (wire/message.h, with the node's name),
     * behind a comma when the buffer holds one; false when there are no more (yet). */
    bool (*verdict)(void *self, uint64_t request, uint32_t *cursor, struct bh_buf *ret_json);
    /* Durable transactions since the daemon started. */
    uint64_t (*commits)(void *self);
    /* What was counted since then (api/documents/tally.h). */
    void (*tally)(void *self, uint64_t ret_tally[BH_TALLIES]);
    struct bh_signed (*last_signed)(void *self);
    /* Whether a request may be tried.  BH_BUG: it, or others like it, failed an assert lately. */
    bh_rc (*admit)(void *self, const struct bh_work *work, struct bh_err *err);
    /* Path of the log file of a job's member, in the arena; the file may not exist (yet). */
    const char *(*log_path)(void *self, bh_job_id job, uint32_t member, struct bh_arena *arena);
};

struct bh_owner {
    const struct bh_owner_ops *ops;
    void *self;
};

#endif
