#include "cli/verifier/verify_export.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/folder.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/num.h"
#include "cli/verifier/verify_rows.h"
#include "cli/verifier/verify_saved.h"
#include "ports/crypto.h"

static bh_rc
verify_export_read_file(void *self, const char *path, struct bh_buf *out, struct bh_err *err)
{
    const char *folder = self;
    char full[PATH_MAX];

    if ((size_t)snprintf(full, sizeof full, "%s/%s", folder, path) >= sizeof full)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long");
    return bh_file_read(full, BH_FOLDER_FILE_MAX, out, err);
}

/* ---- the log ---- */

static void
put_whole(struct bh_verdict_text *verdict, const struct bh_audit_verifier *records)
{
    bh_buf_printf(&verdict->sentence, "exported log is whole: %" PRIu64 " records, signed by %s",
                  records->frontier.size, records->key.name);
    if (records->hashes_to)
        bh_buf_printf(&verdict->sentence, ", the first %" PRIu64 " of them by their hashes alone",
                      records->hashes_to);
    bh_verify_put_saved(verdict, records->kept.count);
    bh_verify_put_orders(verdict, &records->orders);
    bh_buf_printf(&verdict->members, ",\"pruned\":%" PRIu64 ",\"records\":%" PRIu64, records->hashes_to,
                  records->frontier.size);
}

bh_rc
bh_verify_export(const struct bh_verify_args *args, const struct bh_note_key *key,
                 struct bh_verdict_text *verdict, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf bundle = { .max = BH_FOLDER_FILE_MAX + 1 };
    BH_AUTO(bh_buf_fini) struct bh_buf tile = { .max = BH_FOLDER_FILE_MAX + 1 };
    struct bh_folder_verifier *verifier = calloc(1, sizeof *verifier);
    struct bh_verify_saved *saved;
    char own[PATH_MAX];
    const struct bh_folder folder = { verify_export_read_file, (void *)(uintptr_t)args->folder, &bundle,
                                      &tile };
    struct bh_verify_rows *rows = bh_verify_rows_new();
    bh_rc rc;

    BH_ASSERT(verifier);
    bh_audit_verifier_init(&verifier->records, &bh_crypto_openssl, key);
    verifier->records.claims = bh_verify_rows_claims(rows);
    rc = bh_verify_saved_open(args, key, &saved, err);
    verifier->records.kept = bh_verify_saved_checkpoints(saved);
    if (rc == BH_OK && (size_t)snprintf(own, sizeof own, "%s/checkpoint", args->folder) >= sizeof own)
        rc = bh_err_set(err, BH_INVALID, "the folder's name is too long");
    if (rc == BH_OK)
        rc = bh_folder_verify(&folder, verifier, err);
    if (rc == BH_OK)
        rc = bh_verify_saved_check_own(saved, own, err);
    if (rc == BH_OK)
        put_whole(verdict, &verifier->records);
    if (rc == BH_OK)
        rc = bh_verify_rows_folder(rows, args->folder, verdict, err);
    bh_verify_rows_free(rows);
    bh_verify_saved_free(saved);
    free(verifier);
    return rc;
}
