#include "cli/command/pick.h"

#include "base/test.h"

static const char gpus[] = "{\"items\":[{\"index\":0,\"node\":\"gpu1\",\"uuid\":\"GPU-1bd7ab2e-68fb\"},"
                           "{\"index\":1,\"node\":\"gpu1\",\"uuid\":\"GPU-1bd7ffff-0000\"},"
                           "{\"index\":0,\"node\":\"gpu2\",\"uuid\":\"GPU-2a2a2a2a-0000\"}]}";

static const struct {
    const char *word;
    bh_rc rc;
    const char *output; /* the UUID, or what the message and its hint have */
} gpu_rows[] = {
    { "GPU-1bd7ab2e-68fb", BH_OK, "GPU-1bd7ab2e-68fb" },
    { "GPU-1bd7ab2e", BH_OK, "GPU-1bd7ab2e-68fb" },
    { "gpu1/GPU-1bd7ab2e", BH_OK, "GPU-1bd7ab2e-68fb" },
    { "gpu2/GPU-1bd7ab2e", BH_NOT_FOUND, "gpu1/0, gpu1/1, gpu2/0" },
    { "gpu1", BH_OK, "GPU-1bd7ffff-0000" },
    { "1", BH_OK, "GPU-1bd7ffff-0000" },
    { "gpu2/0", BH_OK, "GPU-2a2a2a2a-0000" },
    { "gpu2/gpu0", BH_OK, "GPU-2a2a2a2a-0000" },
    { "0", BH_INVALID, "say NODE/0" },
    { "GPU-1bd7", BH_INVALID, "several GPUs begin with" },
    { "GPU-1", BH_NOT_FOUND, "NODE/NUMBER" },
    { "gpu7", BH_NOT_FOUND, "gpu1/0, gpu1/1, gpu2/0" },
    { "GPU-2a2b2a2a-0000", BH_NOT_FOUND, "did you mean GPU-2a2a2a2a-0000?" },
    { "", BH_NOT_FOUND, "NODE/NUMBER" },
    { "/", BH_NOT_FOUND, "NODE/NUMBER" },
};

static struct bh_json *
pick_test_parse(const char *json_text)
{
    struct bh_json *json = NULL;
    struct bh_err err;

    if (bh_json_parse(json_text, strlen(json_text), &json, &err) != BH_OK)
        fail_msg("%s", err.msg);
    return json;
}

static void
test_gpus(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = pick_test_parse(gpus);

    for (size_t i = 0; i < BH_COUNT(gpu_rows); i++) {
        struct bh_err err = { .rc = BH_OK };
        bh_json_value gpu = NULL;
        char output[600];
        bh_rc rc = bh_pick_gpu(bh_json_root(json), gpu_rows[i].word, &gpu, &err);

        if (rc == BH_OK)
            snprintf(output, sizeof output, "%s", bh_json_text(bh_json_get(gpu, "uuid"), ""));
        else
            snprintf(output, sizeof output, "%s; %s", err.msg, err.hint);
        BH_CHECK_EQ(gpu_rows[i].word, rc, gpu_rows[i].rc);
        BH_CHECK(gpu_rows[i].word, strstr(output, gpu_rows[i].output));
    }
    BH_CHECK_DONE();
}

static void
test_named(void **state)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json =
        pick_test_parse("[{\"name\":\"acme/vision\",\"id\":4},{\"name\":\"acme/speech\",\"id\":7}]");
    static const struct {
        const char *word;
        bh_rc rc;
        const char *hint;
    } rows[] = {
        { "acme/vision", BH_OK, "" },
        { "7", BH_OK, "" },
        { "acme/vison", BH_NOT_FOUND, "did you mean acme/vision?" },
        { "zoo", BH_NOT_FOUND, "" },
    };

    const struct bh_pick_by by = { "tenant", "name", "id" };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct bh_err err = { .rc = BH_OK };
        bh_json_value object;

        BH_CHECK_EQ(rows[i].word, bh_pick_named(bh_json_root(json), &by, rows[i].word, &object, &err),
                    rows[i].rc);
        BH_CHECK_STR(rows[i].word, err.hint, rows[i].hint);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_gpus),
    cmocka_unit_test(test_named),
};
BH_TEST_MAIN(tests)
