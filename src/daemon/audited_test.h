#ifndef BH_DAEMON_AUDITED_TEST_H
#define BH_DAEMON_AUDITED_TEST_H

/* The auditor over a fixture's store.  Tests only. */

#include "audit/claims.h"
#include "audit/verify.h"
#include "daemon/fixture_test.h"
#include "store/audit.h"
#include "store/compare.h"

/* What the auditor says of the whole store; the texts live in the fixture's arena. */
static inline struct bh_claims_result
audit(struct fixture *f)
{
    struct bh_audit_verifier *verifier = calloc(1, sizeof *verifier);
    struct bh_claims_result result = { .differences = 1 };
    bh_rc rc;

    assert_non_null(verifier);
    bh_audit_verifier_init(verifier, f->core.crypto, &f->core.journal.key);
    verifier->claims = bh_claims_new(f->arena, f->core.crypto);
    rc = bh_store_audit(&f->core.store, verifier, &f->err);
    if (rc == BH_OK)
        rc = bh_store_compare(&f->core.store, f->core.crypto, verifier->claims, &result, &f->err);
    free(verifier);
    if (rc != BH_OK)
        print_error("%s\n", f->err.msg);
    assert_int_equal(rc, BH_OK);
    return result;
}

#endif
