#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/folder.h"
#include "base/assert.h"
#include "base/fd.h"
#include "cli/verify.h"
#include "ports/crypto.h"

static bh_rc
read_file(void *self, const char *path, struct bh_buf *out, struct bh_err *err)
{
    const char *folder = self;
    char full[PATH_MAX];

    if ((size_t)snprintf(full, sizeof full, "%s/%s", folder, path) >= sizeof full)
        return bh_err_set(err, BH_INVALID, "the folder's name is too long");
    return bh_file_read(full, BH_FOLDER_FILE_MAX, out, err);
}

static bh_rc
open_kept(const struct bh_verify_args *args, const struct bh_note_key *key,
          struct bh_checkpoint *ret_kept, struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc = BH_OK;

    bh_buf_init(&text, BH_NOTE_BYTES_MAX + 1);
    for (uint32_t i = 0; rc == BH_OK && i < args->kept_count; i++) {
        rc = bh_verify_read(args->kept[i], BH_NOTE_BYTES_MAX, &text, err);
        if (rc == BH_OK)
            rc = bh_checkpoint_open(&bh_crypto_openssl, key, text.bytes, &ret_kept[i], err);
        if (rc != BH_OK)
            bh_err_wrap(err, "kept checkpoint %s", args->kept[i]);
    }
    bh_buf_fini(&text);
    return rc;
}

static void
put_whole(struct bh_verdict_text *verdict, const struct bh_audit_verifier *records,
          uint32_t kept)
{
    bh_buf_printf(&verdict->sentence,
                  "exported log is whole: %" PRIu64 " records, signed by %s",
                  records->frontier.size, records->key.name);
    if (kept)
        bh_buf_printf(&verdict->sentence, "; it continues %" PRIu32 " kept checkpoint%s", kept,
                      kept == 1 ? "" : "s");
    bh_verify_put_orders(verdict, &records->orders);
    bh_buf_printf(&verdict->members, ",\"kept\":%" PRIu32 ",\"records\":%" PRIu64, kept,
                  records->frontier.size);
}

bh_rc
bh_verify_export(const struct bh_verify_args *args, const struct bh_note_key *key,
                 struct bh_verdict_text *verdict, struct bh_err *err)
{
    struct bh_folder_verifier *verifier = calloc(1, sizeof *verifier);
    struct bh_checkpoint *kept = calloc(BH_VERIFY_KEPT_MAX, sizeof *kept);
    struct bh_buf bundle, tile;
    const struct bh_folder folder = { read_file, (void *)(uintptr_t)args->folder, &bundle,
                                      &tile };
    const struct bh_kept keeps = { kept, args->kept_count };
    bh_rc rc;

    BH_ASSERT(verifier && kept);
    bh_buf_init(&bundle, BH_FOLDER_FILE_MAX + 1);
    bh_buf_init(&tile, BH_FOLDER_FILE_MAX + 1);
    bh_audit_verifier_init(&verifier->records, &bh_crypto_openssl, key);
    rc = open_kept(args, key, kept, err);
    if (rc == BH_OK)
        rc = bh_folder_verify(&folder, &keeps, verifier, err);
    if (rc == BH_OK)
        put_whole(verdict, &verifier->records, args->kept_count);
    bh_buf_fini(&bundle);
    bh_buf_fini(&tile);
    free(kept);
    free(verifier);
    return rc;
}
