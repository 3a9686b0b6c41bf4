#ifndef BH_CONTRACT_STORE_CONTRACT_H
#define BH_CONTRACT_STORE_CONTRACT_H

#include "base/test.h"
#include "ports/store.h"

/* What the parts of the store's contract suite share. */

struct fixture {
    struct bh_store store;
    struct bh_arena *arena;
    struct bh_err err;
    char folder[32];
};

/* A call of the store with the fixture's error, such as CALL(f, last_record, &seq). */
#define CALL(f, slot, ...) ((f)->store.ops->slot((f)->store.self, __VA_ARGS__, &(f)->err))
#define MUST(f, slot, ...) must(f, CALL(f, slot, __VA_ARGS__))

static inline void
must(const struct fixture *f, bh_rc rc)
{
    if (rc != BH_OK)
        fail_msg("%s: %s", bh_rc_name(rc), f->err.msg);
}

static inline void
begin(struct fixture *f)
{
    must(f, f->store.ops->begin(f->store.self, &f->err));
}

static inline void
commit(struct fixture *f)
{
    must(f, f->store.ops->commit(f->store.self, &f->err));
}

/* Job number `job` of the suite: tenant, principal and state follow from the number. */
enum { BH_CONTRACT_TENANTS = 7, BH_CONTRACT_PRINCIPALS = 5 };
struct bh_job_row bh_contract_job_row(uint64_t job);

/* The tests about jobs. */
void bh_contract_keeps_a_whole_job(void **state);
void bh_contract_changes_a_job(void **state);
void bh_contract_lists_jobs(void **state);
void bh_contract_lists_newest_jobs(void **state);
void bh_contract_counts_reasons(void **state);
void bh_contract_pages_of_100_unless_told(void **state);

/* The tests about keys. */
void bh_contract_keeps_keys(void **state);
void bh_contract_erases_jobs(void **state);
void bh_contract_erases_sealed_texts(void **state);
void bh_contract_erases_names(void **state);

#endif
