#ifndef BH_DAEMON_FIXTURE_TEST_H
#define BH_DAEMON_FIXTURE_TEST_H

/* A core on a store in a private folder, without HTTP and without a node, and commands
 * as the API would send them.  Tests only. */

#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/test.h"
#include "base/yaml.h"
#include "daemon/batch.h"
#include "daemon/command.h"
#include "daemon/core.h"
#include "daemon/dispatch.h"
#include "daemon/salts_test.h"
#include "signer/signer.h"
#include "store/sqlite.h"

__attribute__((unused)) static const char site_yaml[] =
    "tenants:\n"
    "  - {name: acme, kind: organization}\n"
    "  - {name: acme/vision, kind: department}\n"
    "  - {name: acme/vision/train, kind: project, quotas: [{sku: small, limit: 2}]}\n"
    "skus:\n"
    "  - {name: small, grade: C, models: [{model: H100-80GB, profile: 1g.10gb}]}\n"
    "principals:\n"
    "  - {name: alice, uid: 2001}\n"
    "bindings:\n"
    "  - {role: developer, principal: alice, tenant: acme/vision/train}\n"
    "gpus: [{uuid: all, managed: true}]\n";

struct fixture {
    char folder[64];
    struct bh_daemon_config config;
    struct bh_core core;
    struct bh_signer signer;     /* in this process: it answers at once */
    struct bh_signer_reply signed_answer;
    bool signer_answers, signer_gone;
    bool prune;                  /* apply also removes what has something */
    struct bh_arena *arena;
    struct bh_answer answer;
    struct bh_err err;
};

static bool
local_connected(void *self)
{
    struct fixture *f = self;

    return !f->signer_gone;
}

static bool
local_ask(void *self, const struct bh_signer_request *question)
{
    struct fixture *f = self;

    if (f->signer_gone)
        return false;
    bh_signer_reply(&f->signer, question, &f->signed_answer);
    f->signer_answers = true;
    return true;
}

static bh_rc
local_receive(void *self, uint64_t wait_ns, struct bh_signer_reply *ret_answer, struct bh_err *err)
{
    struct fixture *f = self;

    if (f->signer_gone || !f->signer_answers)
        return bh_err_set(err, f->signer_gone ? BH_UNAVAILABLE : BH_NOT_FOUND, "no answer");
    f->signer_answers = false;
    *ret_answer = f->signed_answer;
    return BH_OK;
}

static void
local_drop(void *self)
{
    struct fixture *f = self;

    f->signer_answers = false;
}

static int
local_fd(const void *self)
{
    return -1;
}

/* A core without anything in it, and a signer for it in the same folder. */
static inline bh_rc
prepare_core(struct fixture *f)
{
    static const struct bh_signing_ops local = { local_connected, local_ask, local_receive,
                                                 local_drop, local_fd };

    f->config.grace_max = 600 * BH_NS_PER_S;
    f->core = (struct bh_core){ .config = &f->config, .crypto = &bh_crypto_openssl };
    f->core.journal.checkpoints.signing = (struct bh_signing){ &local, f };
    f->signer_answers = false;
    return bh_signer_open(&f->signer, f->core.crypto, f->folder, &f->err);
}

static inline bh_rc
open_core(struct fixture *f)
{
    char path[128];
    bh_rc rc = prepare_core(f);

    assert_int_equal(rc, BH_OK);
    f->core.hub = bh_hub_new();
    snprintf(path, sizeof path, "%s/bulkhead.db", f->folder);
    rc = bh_store_sqlite_open(path, BH_STORE_WRITE, f->core.crypto, &f->core.store, &f->err);
    assert_int_equal(rc, BH_OK);
    return bh_core_open(&f->core, &f->err);
}

static inline void
close_core(struct fixture *f)
{
    check_salts(&f->core.store);
    f->core.store.ops->close(f->core.store.self);
    bh_hub_free(f->core.hub);
    f->core.hub = NULL;
    bh_core_close(&f->core);
}

static inline void
fixture_setup(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/bh-core-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    f->arena = bh_arena_new(8 << 20);
    assert_int_equal(bh_params_parse(&bh_daemon_params, "", &f->config, f->arena, &f->err), BH_OK);
    f->config.state_dir = f->folder;
    f->config.check_every = 1;
    assert_int_equal(open_core(f), BH_OK);
}

static inline void
fixture_teardown(struct fixture *f)
{
    struct dirent *entry;
    DIR *folder;

    close_core(f);
    bh_arena_free(f->arena);
    folder = opendir(f->folder);
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        unlinkat(dirfd(folder), entry->d_name, 0);
    closedir(folder);
    assert_int_equal(rmdir(f->folder), 0);
}

static inline struct bh_caller
caller_named(struct fixture *f, const char *name)
{
    struct bh_caller caller = { .name = name, .via = BH_VIA_PEER,
                                .subject = { .uid = 0, .root = strcmp(name, "root") == 0 } };

    caller.subject.principal.v = bh_catalog_find(f->core.catalog, BH_NAME_PRINCIPAL, name);
    return caller;
}

static inline bh_rc
fixture_run(struct fixture *f, struct bh_command *command)
{
    bh_rc rc = bh_dispatch_run(&f->core, command, f->arena, &f->answer, &f->err);

    if (!bh_core_is_fatal(rc))
        assert_int_equal(bh_core_commit(&f->core, &f->err), BH_OK);
    return rc;
}

static inline struct bh_command
apply_command(struct fixture *f, const char *yaml)
{
    struct bh_site *site = bh_arena_alloc(f->arena, sizeof *site);
    struct bh_command command = { .op = BH_OP_SITE_APPLY, .caller = caller_named(f, "root"),
                                  .site = site, .prune = f->prune };
    struct bh_buf json;

    bh_buf_init(&json, 1 << 20);
    assert_int_equal(bh_yaml_to_json(yaml, strlen(yaml), &json, &f->err), BH_OK);
    assert_int_equal(bh_json_decode(json.bytes, json.length, &bh_site_fields, site, f->arena,
                                    &f->err),
                     BH_OK);
    assert_int_equal(bh_site_check(site, &f->err), BH_OK);
    command.text = bh_arena_strdup(f->arena, bh_buf_text(&json));
    command.text_length = strlen(command.text);
    bh_buf_fini(&json);
    return command;
}

static inline bh_rc
fixture_apply(struct fixture *f, const char *yaml)
{
    struct bh_command command = apply_command(f, yaml);

    return fixture_run(f, &command);
}

struct submission {
    const char *who, *tenant, *sku, *key;
    enum bh_priority priority;
    uint32_t count, gang;
};

static inline struct bh_command
submit_command(struct fixture *f, struct submission s)
{
    const char **args = bh_arena_alloc(f->arena, sizeof *args);
    struct bh_job_spec *spec = bh_arena_alloc(f->arena, sizeof *spec);
    struct bh_command command = { .op = BH_OP_JOB_SUBMIT, .caller = caller_named(f, s.who),
                                  .spec = spec };
    struct bh_buf text;

    args[0] = "true";
    *spec = (struct bh_job_spec){ .args = { args, 1 }, .tenant = s.tenant, .sku = s.sku,
                                  .priority = s.priority, .count = s.count, .gang = s.gang };
    assert_int_equal(bh_spec_check(spec, &command.numbers, &f->err), BH_OK);
    bh_buf_init(&text, 1 << 16);
    bh_json_encode(&text, &bh_job_spec_fields, spec);
    command.text = bh_arena_strdup(f->arena, bh_buf_text(&text));
    command.text_length = strlen(command.text);
    command.caller.idempotency_key = s.key;
    bh_buf_fini(&text);
    return command;
}

static inline bh_rc
fixture_submit(struct fixture *f, struct submission s)
{
    struct bh_command command = submit_command(f, s);

    return fixture_run(f, &command);
}

__attribute__((unused)) static const struct submission alice_small = { "alice", "acme/vision/train", "small", NULL, 0, 1 };

#endif
