#ifndef BH_AUDIT_RECORD_H
#define BH_AUDIT_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fields.h"

/* One journal record: the leaf of the audit log.
 *
 * Canonical JSON (RFC 8785 subset), at most BH_RECORD_BYTES_MAX, holding ids,
 * integers and digests only; texts stand in tables by their digest, or are sealed.  Field names
 * are short because there are many records; facts/security.md 2.2 is the source. */

enum { BH_RECORD_BYTES_MAX = 65535, BH_RECORD_VERSION = 4 };

/* The verb of an outcome that says: after a start, it is unknown (yet) what has become of
 * this order. */
#define BH_RECORD_ORDER_UNKNOWN "order.unknown"

/* The verb of an outcome that says: nothing waits for the answer to this order, since its lease was cancelled
 * or its GPU or node was lost.  The answer may come all the same. */
#define BH_RECORD_ORDER_ABANDONED "order.abandoned"

/* The verb of an intent that says: of the records below obj.id, of type BH_RECORD_LOG, the log
 * keeps the hashes alone from now on. */
#define BH_RECORD_PRUNE "audit.prune"
#define BH_RECORD_LOG "log"

/* Verbs that say of names: these stand in the table since before records bound them, or are
 * bound anew because the records that bound them were pruned; these were given by the record
 * after this one; and this one, obj, was erased. */
#define BH_RECORD_NAMES_BIND "names.bind"
#define BH_RECORD_UPGRADE "upgrade" /* type of the first's object; after a pruning BH_RECORD_LOG */
#define BH_RECORD_NAMES_GIVE "names.give"
#define BH_RECORD_NAME_ERASE "name.erase"

/* The verb of a refusal of Unix users that are no principal's: of one that asked for several things, or of
 * several together, who then have the number that no user has. */
#define BH_RECORD_CALLER_UNKNOWN "caller.unknown"
#define BH_RECORD_UID_SEVERAL UINT32_MAX

/* The verb of events that carry on what the records below obj.id, of type BH_RECORD_LOG, said of rows
 * (audit/bound.h): those are pruned by the record before. */
#define BH_RECORD_ROWS_BIND "rows.bind"

/* The verb of an event that holds nothing but "jobs": those that found no room in the record
 * before it. */
#define BH_RECORD_JOB_STATES "job.states"

enum bh_phase {
    BH_PHASE_INTENT,  /* a command, durable before its effects */
    BH_PHASE_OUTCOME, /* what became of an effect; `order` names it */
    BH_PHASE_EVENT,   /* a fact reported, a denied or audited read, a snapshot */
    BH_PHASES
};

enum bh_via { BH_VIA_SYSTEM, BH_VIA_PEER, BH_VIA_TOKEN, BH_VIA_SESSION, BH_VIA_CERTIFICATE, BH_VIAS };

extern const char *const bh_via_names[BH_VIAS];

struct bh_record_actor {
    uint32_t id; /* principal; 0: the system itself, or unknown */
    enum bh_via via;
    uint32_t uid;   /* Unix user behind a socket, when via is peer */
    char token[16]; /* public id of the token, when via is token */
};

struct bh_record_object {
    char type[16]; /* "job", "tenant", "gpu", ... */
    uint64_t id;
};

struct bh_record_decision {
    bool allow;
    uint32_t rule; /* id of the rule that allowed or denied; policy/roles.h */
};

struct bh_record {
    struct bh_record_actor actor;  /* "actor" */
    uint32_t boot;                 /* "boot": how often the daemon has started */
    uint64_t count;                /* "count": equal refusals that this one stands for, 2 or
                                      more; 0: it is about itself alone */
    struct bh_record_decision dec; /* "dec" */
    const char *do_json;           /* "do": decisions, canonical JSON, NULL for none */
    const char *ev_json;           /* "ev": the engine event, {"submit":{...}}, or what the
                                      deed says that is none (audit/token_facts.h), or NULL */
    const char *jobs_json;         /* "jobs": what became of jobs, as audit/job_status.h
                                      says, or NULL */
    const char *names_json;        /* "names": what ids were given to, as audit/binding.h
                                      says, or NULL */
    struct bh_record_object obj;   /* "obj" */
    uint64_t order;                /* "order": the effect an outcome answers, or the start
                                      that an event is about; 0 none */
    const char *orders;            /* "orders": what this record orders, a letter for each
                                      place: c carve, d destroy, s start, p suspend,
                                      r resume, t stop, z reset, q test, - nothing;
                                      NULL for none */
    enum bh_phase phase;           /* "phase" */
    uint8_t req[16];               /* "req": request id */
    const char *res;               /* "res": bh_rc_name of the result */
    uint8_t salt[16];              /* "salt": random, of this record alone: without it a reader of the leaf's
                                    * hash, which is public, could test guesses of the leaf; zero: none, in
                                    * older records */
    const char *sealed_json;       /* "sealed": personal texts, an array of sealed items
                                      as audit/sealed.h says, or NULL */
    uint64_t seq;                  /* "seq": number of the leaf */
    uint32_t tenant;               /* "tenant": whose business it is; 0 the site's */
    uint8_t text[32];              /* "text": digest of the command's text, zero none */
    uint64_t ts_ns;                /* "ts" */
    uint32_t version;              /* "v": 4; 3 of a record whose "jobs" have no "row", 2 of one
                                      without "count", "jobs" and "names", 1 of one without
                                      "orders", too; 0 is written as the present one */
    const char *verb;              /* "verb": operation or event name */
};

/* Append the leaf to `out` (check out->overflow). */
void bh_record_encode(struct bh_buf *out, const struct bh_record *record);

/* Read a leaf back.  Pointers in `ret_record` point into `scratch`, which holds at
 * least `length` + 64 bytes.
 *   BH_INVALID  not a record that this version wrote (malformed, unknown key, not
 *               canonical) */
BH_MUST_USE bh_rc bh_record_decode(const char *leaf, size_t length, char *scratch,
                                   struct bh_record *ret_record, struct bh_err *err);

#endif
