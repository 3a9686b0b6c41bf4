#ifndef BH_API_FIXTURE_TEST_H
#define BH_API_FIXTURE_TEST_H

/* The API with a real engine, the memory store and an owner that carries out its orders; for the tests of
 * this folder and the fuzz target of requests.
 *
 * The site: acme(1), acme/vision(2), acme/speech(3), other(4); SKUs small(1), large(2); alice develops in
 * acme/vision, bob in other, carol administers the site, dave views acme.  Two H100s. */

#include "api/api.h"
#include "api/documents/tally.h"

enum { ALICE = 1001, BOB = 1002, CAROL = 1003, DAVE = 1004, STRANGER = 4242, NOW_S = 1000000 };

struct fixture {
    struct bh_api *api;
    struct bh_store store;
    struct bh_keys *keys;
    struct bh_engine *engine;
    uint64_t seq;
    uint32_t slots; /* that forecasts look back on */
    struct bh_directory dir;
    struct bh_dataset datasets[1];
    const char *inventory, *inventory_of_second; /* of the connected nodes, or NULL */
    char logs[64];                               /* folder of the jobs' logs, "" none */
    /* what the owner was asked last, and what it shall answer */
    bool commanded;
    struct bh_command command;
    char *command_text;
    struct bh_ev_move moved; /* of the command, if it was one */
    char command_name[64], command_tenant[130];
    struct bh_answer answer;
    bh_rc rc;
    const char *says;
    bool quarantined;  /* every request failed an assert before */
    uint32_t refusals; /* requests reported as refused */
    bh_rc refused_rc;
    struct bh_refused_request tried[2]; /* the first of them; the target's text is `target` */
    char target[64];
    struct bh_caller refused;       /* who it was */
    uint32_t unauthenticated;       /* requests with credentials of no known user */
    uint64_t unauthenticated_token; /* of the last of them */
    struct bh_change changes[8];
    uint32_t change_count;
    uint64_t tally[BH_TALLIES];
    uint64_t asks, ask_ns, ask_most_ns; /* questions to the engine, and what they took */
    int held;                           /* directories not given back */
    char series_of[64];                 /* what series were read of last: "job 7 of 2" */
};

/* What a client sends; `query` as in "a=1&b=2", not escaped. */
struct sent {
    enum bh_method method;
    const char *path, *query, *body, *type, *token, *key, *upgrade, *accept;
    uint32_t uid;
    bool tcp;
};

struct received {
    uint32_t status;
    char text[1 << 19];
    char content_type[80];
    char header[200];
};

/* The ticket that every stream gets; bob has none. */
#define TICKET "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* Give the engine an event, which it must take. */
void bh_fixture_step(struct fixture *f, struct bh_event event);

/* Node 1 has carried out all orders to carve and start. */
void bh_fixture_answer_orders(struct fixture *f);

/* The engine takes a job of one partition. */
void bh_fixture_submit(struct fixture *f, uint64_t job, uint32_t tenant, uint32_t principal, uint32_t sku);

/* The store has such a row, and its specification sealed; an ended one left with status 3. */
void bh_fixture_put_job(struct fixture *f, uint64_t job, uint32_t tenant, uint32_t principal,
                        const char *state);

/* The store has what is given, committed. */
void bh_fixture_put_token(struct fixture *f, const struct bh_token_row *row);
void bh_fixture_put_meta(struct fixture *f, const char *key, const char *value);
void bh_fixture_put_node(struct fixture *f, uint32_t id, const char *name);
void bh_fixture_put_record(struct fixture *f, uint64_t seq, const char *leaf);

/* Seal a tenant's text and append the item to `out`; the first sealing makes key 1, which is
 * the tenant's, and key 2 below it.  Or destroy a key. */
void bh_fixture_seal(struct fixture *f, uint32_t tenant, const char *plain, struct bh_buf *out);
void bh_fixture_shred(struct fixture *f, uint64_t key);

/* The job's row, of that tenant, gets a name as the daemon keeps it. */
void bh_fixture_put_sealed_name(struct fixture *f, uint64_t job, uint32_t tenant, const char *name);

/* A fixture on the heap; close it. */
struct fixture *bh_fixture_open(void);
void bh_fixture_close(struct fixture *f);

/* From now on so many requests a second of a caller (policy/rate.h); all 0: any. */
void bh_fixture_limit(struct fixture *f, const uint32_t rates[BH_RATE_CLASSES]);

/* The samples over time that a fixture has: what was asked for is in its `series_of`. */
extern const struct bh_series_store_ops bh_fixture_series;

/* From now on no series are kept. */
void bh_fixture_keep_no_series(struct fixture *f);

/* One request through the API and its whole reply; of a stream a few parts. */
void bh_fixture_send(struct fixture *f, const struct sent *sent, struct received *ret);

#endif
