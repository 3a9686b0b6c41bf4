/* bulkhead-audit: verifies an audit log, from a store or from lines on standard input.
 * A program of its own so that `bulkhead` itself need not load the cryptography. */
#include <stdio.h>
#include <string.h>

#include "audit/note.h"
#include "base/fd.h"
#include "base/json.h"
#include "cli/verifier/verify_export.h"
#include "cli/verifier/verify_log.h"
#include "cli/verifier/verify_proof.h"
#include "ports/crypto.h"

enum { STATUS_BAD = 1, STATUS_USAGE = 2, KEY_FILE_MAX = 4096 };

static const char usage[] =
    "usage: bulkhead-audit --vkey FILE [--json] [WHAT]\n"
    "  --store FILE             verify a store\n"
    "  --export DIR             verify an exported log\n"
    "  --check PROOF [--record FILE]\n"
    "                           check a proof that a record is in the log\n"
    "  --consistency OLD NEW    check that one checkpoint continues another, by the hashes\n"
    "                           on standard input\n"
    "  (nothing)                verify lines as `bulkhead audit tail --raw --all` prints them\n"
    "A log, whatever it comes from, with [--kept FILE]... [--witness FILE [--quorum N]]: that it\n"
    "continues those checkpoints, and that witnesses cosigned them, or else an export's own.\n"
    "Status 0 when it is good, 1 when not; `bulkhead audit` calls it.\n";

static bh_rc
read_keys(const char *path, struct bh_note_key ret_keys[BH_NODE_RECORD_KEYS_MAX], struct bh_err *err)
{
    char memory[KEY_FILE_MAX];
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read_given(path, sizeof memory - 1, &text, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_putc(&text, '\0');
    rc = bh_note_keys_parse(&bh_crypto_openssl, memory, ret_keys, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", path);
}

/* ---- the command line ---- */

/* Where an option's value goes. */
static const char **
verify_target_of(struct bh_verify_args *args, const char *option)
{
    const struct {
        const char *name, **target;
        /* clang-format off */
    } options[] = {
        { "--vkey", &args->key },    { "--store", &args->store }, { "--export", &args->folder },
        { "--check", &args->proof }, { "--record", &args->record },
        { "--consistency", &args->old }, { "--witness", &args->witness },
        { "--quorum", &args->quorum_text },
    };
    /* clang-format on */

    for (size_t i = 0; i < BH_COUNT(options); i++)
        if (strcmp(options[i].name, option) == 0)
            return options[i].target;
    if (strcmp(option, "--kept") == 0 && args->kept_count < BH_VERIFY_SAVED_MAX)
        return &args->kept[args->kept_count++];
    return NULL;
}

static bool
verify_parse(int argc, char **argv, struct bh_verify_args *ret)
{
    for (int i = 1; i < argc; i++) {
        const char **target;

        if (strcmp(argv[i], "--json") == 0) {
            ret->json = true;
            continue;
        }
        target = verify_target_of(ret, argv[i]);
        if (!target || i + 1 == argc)
            return false;
        *target = argv[++i];
        if (target == &ret->old) {
            if (i + 1 == argc)
                return false;
            ret->new = argv[++i];
        }
    }
    return ret->key && !!ret->store + !!ret->folder + !!ret->proof + !!ret->old <= 1;
}

/* ---- the verdict ---- */

static int
verify_print(const struct bh_verify_args *args, const struct bh_verdict_text *verdict,
             const struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf quoted = { .max = 1 << 20 };
    bool bad = err->rc == BH_CONFLICT || err->rc == BH_DENIED;

    if (err->rc != BH_OK && !bad) {
        fprintf(stderr, "bulkhead: %s\n", err->msg);
        return bh_rc_exit(err->rc);
    }
    bh_json_put_str(&quoted, err->msg);
    if (args->json && bad)
        printf("{\"good\":false,\"message\":%s}\n", bh_buf_text(&quoted));
    else if (args->json)
        printf("{\"good\":%s%.*s}\n", verdict->differs ? "false" : "true", (int)verdict->members.length,
               verdict->members.bytes);
    else if (bad)
        printf("%s: %s\n", args->proof || args->old ? "NOT proved" : "audit log is NOT whole", err->msg);
    else
        printf("%.*s\n", (int)verdict->sentence.length, verdict->sentence.bytes);
    return bad || verdict->differs ? STATUS_BAD : 0;
}

int
main(int argc, char **argv)
{
    struct bh_verify_args args = { 0 };
    struct bh_verdict_text verdict = { .differs = false };
    struct bh_note_key keys[BH_NODE_RECORD_KEYS_MAX]; /* the newest leads to the others */
    struct bh_err err = { .rc = BH_OK };
    int status;
    bh_rc rc;

    if (!verify_parse(argc, argv, &args)) {
        fputs(usage, stderr);
        return STATUS_USAGE;
    }
    bh_buf_init(&verdict.sentence, 1 << 20);
    bh_buf_init(&verdict.members, 1 << 20);
    rc = read_keys(args.key, keys, &err);
    if (rc == BH_OK)
        rc = args.folder  ? bh_verify_export(&args, keys, &verdict, &err)
             : args.proof ? bh_verify_proof(&args, keys, &verdict, &err)
             : args.old   ? bh_verify_consistency(&args, keys, &verdict, &err)
                          : bh_verify_log(&args, keys, &verdict, &err);
    err.rc = rc;
    status = verify_print(&args, &verdict, &err);
    bh_buf_fini(&verdict.sentence);
    bh_buf_fini(&verdict.members);
    return status;
}
