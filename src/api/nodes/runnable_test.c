/* What a submission needs of a node is asked when it comes: one node that gives it all is enough. */
#include "api/nodes/runnable.h"

#include <string.h>

#include "api/fixture_test.h"
#include "base/test.h"

#define NODE(name, more) "{\"cpus\":8,\"gpus\":[],\"memory_mib\":64000,\"node\":\"" name "\"" more "}"
#define H100(name, more)                                                                                           \
    "{\"gpus\":[{\"product\":\"NVIDIA H100 80GB HBM3\",\"uuid\":\"GPU-a\"}],\"memory_mib\":64000,\"node\":\"" name \
    "\"" more "}"
#define JOB(more) "{\"args\":[\"true\"],\"sku\":\"small\",\"tenant\":\"acme/vision\"" more "}"
#define FOLDER JOB(",\"mounts\":[{\"source\":\"/work/data/a\",\"target\":\"/a\"}]")

#define LARGE "{\"args\":[\"true\"],\"network\":\"egress\",\"sku\":\"large\",\"tenant\":\"acme/vision\"}"

#define DATASET JOB(",\"mounts\":[{\"dataset\":\"imagenet\"}]")

static const struct {
    const char *name, *job, *node, *second;
    const char *says; /* NULL: it is taken */
} rows[] = {
    { "nothing special", JOB(""), NODE("n1", ""), NULL, NULL },
    { "no node has connected", FOLDER, NULL, NULL, NULL },
    { "a folder", FOLDER, NODE("n1", ""), NULL, "n1 mounts nothing at /work/data/a (mount_roots)" },
    { "above it", FOLDER, NODE("n1", ",\"mount_roots\":[\"/work\"]"), NULL, NULL },
    { "on the second", FOLDER, NODE("n1", ""), NODE("n2", ",\"mount_roots\":[\"/work\"]"), NULL },
    { "on neither", FOLDER, NODE("n1", ""), NODE("n2", ",\"mount_roots\":[\"/srv\"]"),
      "; n1 lacks least: it mounts nothing at /work/data/a (mount_roots)" },
    { "a dataset", DATASET, NODE("n1", ""), NULL,
      "n1 mounts nothing where dataset imagenet lies (mount_roots)" },
    { "above the dataset", DATASET, NODE("n1", ",\"mount_roots\":[\"/data\"]"), NULL, NULL },
    { "the dataset on the second", DATASET, NODE("n1", ""), NODE("n2", ",\"mount_roots\":[\"/data\"]"),
      NULL },
    { "a working directory that each has", JOB(",\"cwd\":\"/tmp\""), NODE("n1", ""), NULL, NULL },
    { "the root", JOB(",\"cwd\":\"/\""), NODE("n1", ""), NULL, NULL },
    { "a network", JOB(",\"network\":\"egress\""), NODE("n1", ",\"networks\":[\"none\"]"), NULL,
      "n1 has no network egress (networks)" },
    { "a network that is there", JOB(",\"network\":\"egress\""), NODE("n1", ",\"networks\":[\"egress\"]"),
      NULL, NULL },
    { "an image", JOB(",\"image\":\"dir:/images/a\""), NODE("n1", ",\"image_roots\":[\"/srv\"]"), NULL,
      "n1 has no images at /images/a (image_roots)" },
    { "nothing unpacks", JOB(",\"image\":\"oci:/images/a:b\""), NODE("n1", ",\"image_roots\":[\"/images\"]"),
      NULL, "n1 has no umoci" },
    { "a registry", JOB(",\"image\":\"docker://reg.example/a:1\""),
      NODE("n1", ",\"unpacks\":true,\"fetches\":true,\"registries\":[\"other.example\"]"), NULL,
      "n1 fetches nothing from reg.example (registries)" },
    { "a registry that is listed", JOB(",\"image\":\"docker://reg.example/a:1\""),
      NODE("n1", ",\"unpacks\":true,\"fetches\":true,\"registries\":[\"reg.example\"]"), NULL, NULL },
    { "memory", JOB(",\"memory\":\"48Gi\""), NODE("n1", ",\"job_memory_mib\":32000"), NULL,
      "n1 gives a job 32000 MiB of memory at most (memory_max_mib)" },
    { "more than there is", JOB(",\"memory\":\"96Gi\""), NODE("n1", ",\"job_memory_mib\":32000"), NULL,
      NULL },
    { "memory on the second", JOB(",\"memory\":\"48Gi\""), NODE("n1", ",\"job_memory_mib\":32000"),
      NODE("n2", ",\"job_memory_mib\":65536"), NULL },
    { "the one that lacks least, of two", JOB(",\"memory\":\"48Gi\",\"network\":\"egress\""),
      NODE("n1", ",\"networks\":[\"egress\"],\"job_memory_mib\":32000"),
      NODE("n2", ",\"job_memory_mib\":100"),
      "; n1 lacks least: it gives a job 32000 MiB of memory at most (memory_max_mib)" },
    { "and in either order", JOB(",\"memory\":\"48Gi\",\"network\":\"egress\""),
      NODE("n1", ",\"job_memory_mib\":100"),
      NODE("n2", ",\"networks\":[\"egress\"],\"job_memory_mib\":32000"),
      "; n2 lacks least: it gives a job 32000 MiB of memory at most (memory_max_mib)" },
    { "a machine that is too small is no candidate", JOB(",\"memory\":\"48Gi\",\"network\":\"egress\""),
      "{\"gpus\":[],\"memory_mib\":1000,\"networks\":[\"egress\"],\"node\":\"n1\"}", NODE("n2", ""),
      "; n2 lacks least: it has no network egress (networks)" },
    { "nor is one without a GPU of its models", LARGE, NODE("n1", ",\"networks\":[\"egress\"]"),
      H100("n2", ""), "; n2 lacks least: it has no network egress (networks)" },
    { "one with such a GPU", LARGE, NODE("n1", ""), H100("n2", ",\"networks\":[\"egress\"]"), NULL },
    { "memory beside it", JOB(",\"memory\":\"48Gi\",\"network\":\"egress\""),
      NODE("n1", ",\"networks\":[\"egress\"],\"job_memory_mib\":32000"), NULL,
      "n1 gives a job 32000 MiB of memory at most (memory_max_mib)" },
};

static void
a_node_is_asked_before_a_job_is_taken(void **state)
{
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct fixture *f = bh_fixture_open();
        struct received got = { 0 };

        f->inventory = rows[i].node;
        f->inventory_of_second = rows[i].second;
        bh_fixture_send(f,
                        &(struct sent){ .method = BH_POST,
                                        .path = "/v1/jobs",
                                        .body = rows[i].job,
                                        .uid = ALICE,
                                        .query = "dry_run=true" },
                        &got);
        BH_CHECK_EQ(rows[i].name, got.status, rows[i].says ? 400 : 200);
        if (rows[i].says)
            BH_CHECK(got.text, strstr(got.text, rows[i].says) != NULL);
        bh_fixture_close(f);
    }
    BH_CHECK_DONE();
}

/* A submission that was taken when a node could run it is answered as it was then. */
static void
what_was_taken_before_is_no_new_job(void **state)
{
    struct fixture *f = bh_fixture_open();
    struct received got = { 0 };

    f->inventory = NODE("n1", "");
    f->answer.replayed = "{\"dry_run\":false,\"id\":7,\"reason\":\"none\",\"state\":\"running\"}";
    f->answer.replayed_status = 201;
    bh_fixture_send(
        f, &(struct sent){ .method = BH_POST, .path = "/v1/jobs", .body = FOLDER, .uid = ALICE, .key = "k" },
        &got);
    BH_CHECK_EQ("as then", got.status, 201);
    BH_CHECK_STR("the answer", got.text, f->answer.replayed);
    bh_fixture_send(f,
                    &(struct sent){ .method = BH_POST,
                                    .path = "/v1/jobs",
                                    .body = JOB(""),
                                    .uid = ALICE,
                                    .query = "dry_run=true",
                                    .key = "k" },
                    &got);
    BH_CHECK("a dry run has no key", f->command.dry_run && !f->command.caller.idempotency_key);
    bh_fixture_close(f);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_is_asked_before_a_job_is_taken),
    cmocka_unit_test(what_was_taken_before_is_no_new_job),
};
BH_TEST_MAIN(tests)
