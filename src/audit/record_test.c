#include "audit/record.h"

#include "base/test.h"

#define SEALED                                                                                               \
    "[{\"c\":\"QUJD\",\"h\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\",\"k\":\"7\","                   \
    "\"n\":\"BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB\"}]"

#define JOBS "[{\"job\":7,\"state\":\"starting\"}]"
#define NAMES                                                                                                \
    "[{\"c\":\"8b07a7df69a2d40e30b5a53cc1be4be01eac88c0a4bb87b3f0aeeb6f1c1aa31a\",\"id\":7,"                 \
    "\"kind\":\"tenant\"}]"

static const struct bh_record full = {
    .actor = { 3, BH_VIA_TOKEN, 1000, "t-abc" },
    .boot = 2,
    .dec = { true, 5 },
    .do_json = "[{\"place\":{\"job\":7}}]",
    .ev_json = "{\"submit\":{\"count\":1,\"job\":7}}",
    .jobs_json = JOBS,
    .names_json = NAMES,
    .obj = { "job", 7 },
    .order = (UINT64_C(1) << 60) + 1,
    .orders = "-c-s",
    .phase = BH_PHASE_OUTCOME,
    .req = { 0xab, [15] = 1 },
    .res = "ok",
    .salt = { 0xcd, [15] = 2 },
    .sealed_json = SEALED,
    .seq = 9,
    .tenant = 4,
    .text = { 0xff, [31] = 2 },
    .ts_ns = UINT64_C(1795170000000000001),
    .verb = "job.submit",
};

#define FULL                                                                                                 \
    "{\"actor\":{\"id\":3,\"token\":\"t-abc\",\"uid\":1000,\"via\":\"token\"},\"boot\":2,"                   \
    "\"dec\":{\"allow\":true,\"rule\":5},\"do\":[{\"place\":{\"job\":7}}],"                                  \
    "\"ev\":{\"submit\":{\"count\":1,\"job\":7}},\"jobs\":" JOBS ",\"names\":" NAMES                         \
    ",\"obj\":{\"id\":7,\"type\":\"job\"},"                                                                  \
    "\"order\":\"1152921504606846977\",\"orders\":\"-c-s\",\"phase\":\"outcome\","                           \
    "\"req\":\"ab000000000000000000000000000001\",\"res\":\"ok\","                                           \
    "\"salt\":\"cd000000000000000000000000000002\",\"sealed\":" SEALED ",\"seq\":9,\"tenant\":4,"            \
    "\"text\":\"ff00000000000000000000000000000000000000000000000000000000000002\","                         \
    "\"ts\":\"1795170000000000001\",\"v\":4,\"verb\":\"job.submit\"}"
#define ROW "8b07a7df69a2d40e30b5a53cc1be4be01eac88c0a4bb87b3f0aeeb6f1c1aa31a"
#define EMPTY "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":4}"
#define COUNTED                                                                                              \
    "{\"boot\":1,\"count\":12,\"phase\":\"event\",\"res\":\"denied\",\"seq\":0,\"ts\":\"0\",\"v\":3}"
#define BEFORE "{\"orders\":\"c\",\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":2}"
#define OLD "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":1}"

static void
writes(void **state)
{
    static const struct bh_record empty = { .seq = 0 };
    char leaf[1024];
    struct bh_buf out;

    bh_buf_init_fixed(&out, leaf, sizeof leaf);
    bh_record_encode(&out, &full);
    BH_CHECK_STR("full", bh_buf_text(&out), FULL);
    bh_buf_clear(&out);
    bh_record_encode(&out, &empty);
    BH_CHECK_STR("empty", bh_buf_text(&out), EMPTY);
    bh_buf_init_fixed(&out, leaf, 40);
    bh_record_encode(&out, &full);
    BH_CHECK("too small", out.overflow);
    BH_CHECK_DONE();
}

static void
reads_back(void **state)
{
    char scratch[sizeof FULL + 64];
    struct bh_record record;
    struct bh_err err;

    assert_int_equal(bh_record_decode(FULL, strlen(FULL), scratch, &record, &err), BH_OK);
    BH_CHECK_EQ("actor", record.actor.id, 3);
    BH_CHECK_EQ("via", record.actor.via, BH_VIA_TOKEN);
    BH_CHECK_EQ("uid", record.actor.uid, 1000);
    BH_CHECK_STR("token", record.actor.token, "t-abc");
    BH_CHECK_EQ("boot", record.boot, 2);
    BH_CHECK_EQ("allow", record.dec.allow, true);
    BH_CHECK_EQ("rule", record.dec.rule, 5);
    BH_CHECK_STR("do", record.do_json, full.do_json);
    BH_CHECK_STR("ev", record.ev_json, full.ev_json);
    BH_CHECK_STR("jobs", record.jobs_json, JOBS);
    BH_CHECK_STR("names", record.names_json, NAMES);
    BH_CHECK_STR("sealed", record.sealed_json, full.sealed_json);
    BH_CHECK_STR("type", record.obj.type, "job");
    BH_CHECK_EQ("object", record.obj.id, 7);
    BH_CHECK("order", record.order == full.order);
    BH_CHECK_STR("orders", record.orders, "-c-s");
    BH_CHECK_EQ("version", record.version, 4);
    BH_CHECK("no count", record.count == 0);
    BH_CHECK_EQ("phase", record.phase, BH_PHASE_OUTCOME);
    BH_CHECK("req", memcmp(record.req, full.req, sizeof full.req) == 0);
    BH_CHECK_STR("res", record.res, "ok");
    BH_CHECK("salt", memcmp(record.salt, full.salt, sizeof full.salt) == 0);
    BH_CHECK_EQ("seq", record.seq, 9);
    BH_CHECK_EQ("tenant", record.tenant, 4);
    BH_CHECK("text", memcmp(record.text, full.text, sizeof full.text) == 0);
    BH_CHECK("ts", record.ts_ns == full.ts_ns);
    BH_CHECK_STR("verb", record.verb, "job.submit");
    assert_int_equal(bh_record_decode(EMPTY, strlen(EMPTY), scratch, &record, &err), BH_OK);
    BH_CHECK("nothing", !record.do_json && !record.ev_json && !record.res && !record.verb);
    BH_CHECK("no orders", !record.orders);
    BH_CHECK("no salt", memcmp(record.salt, (uint8_t[16]){ 0 }, sizeof record.salt) == 0);
    assert_int_equal(bh_record_decode(OLD, strlen(OLD), scratch, &record, &err), BH_OK);
    BH_CHECK_EQ("older", record.version, 1);
    assert_int_equal(bh_record_decode(BEFORE, strlen(BEFORE), scratch, &record, &err), BH_OK);
    BH_CHECK_EQ("of version 2", record.version, 2);
    assert_int_equal(bh_record_decode(COUNTED, strlen(COUNTED), scratch, &record, &err), BH_OK);
    BH_CHECK("counted", record.count == 12);
    BH_CHECK_DONE();
}

#define SALT "\"salt\":\"cd000000000000000000000000000002\""
#define TAIL "\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":1}"
static const struct {
    const char *name, *leaf;
} refused[] = {
    { "nothing", "" },
    { "a count of its own", "{\"count\":1,\"phase\":\"event\",\"seq\":0,\"ts\":\"0\",\"v\":3}" },
    { "a count before its time", "{\"count\":2,\"phase\":\"event\",\"seq\":0,\"ts\":\"0\",\"v\":2}" },
    { "no object", "[]" },
    { "empty object", "{}" },
    { "cut", "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":1" },
    { "junk behind", EMPTY "x" },
    { "blank", "{ " TAIL },
    { "blank behind colon", "{\"phase\": \"intent\",\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "unknown key", "{\"aktor\":1," TAIL },
    { "unknown last key", "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":1,\"x\":1}" },
    { "unknown inner key", "{\"actor\":{\"id\":1,\"ip\":2,\"via\":\"system\"}," TAIL },
    { "twice", "{\"boot\":1,\"boot\":1," TAIL },
    { "wrong order", "{\"dec\":{\"allow\":true},\"boot\":1," TAIL },
    { "wrong inner order", "{\"obj\":{\"type\":\"job\",\"id\":1}," TAIL },
    { "zero written", "{\"boot\":0," TAIL },
    { "empty text written", "{\"phase\":\"intent\",\"res\":\"\",\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "empty object written", "{\"obj\":{}," TAIL },
    { "dec without allow", "{\"dec\":{\"rule\":1}," TAIL },
    { "small number quoted", "{\"order\":\"5\"," TAIL },
    { "large number bare", "{\"order\":1152921504606846977," TAIL },
    { "time bare", "{\"phase\":\"intent\",\"seq\":0,\"ts\":0,\"v\":1}" },
    { "version 0", "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":0}" },
    { "version 5", "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":5}" },
    { "rows of version 3", "{\"jobs\":[{\"job\":7,\"row\":\"" ROW "\",\"state\":\"a\"}],\"phase\":\"intent\","
                           "\"seq\":0,\"ts\":\"0\",\"v\":3}" },
    { "a salt of version 3", "{\"phase\":\"intent\"," SALT ",\"seq\":0,\"ts\":\"0\",\"v\":3}" },
    { "a salt behind what is sealed",
      "{\"phase\":\"intent\",\"sealed\":" SEALED "," SALT ",\"seq\":0,\"ts\":\"0\",\"v\":4}" },
    { "a salt that is none", "{\"phase\":\"intent\",\"salt\":\"\",\"seq\":0,\"ts\":\"0\",\"v\":4}" },
    { "jobs of version 2", "{\"jobs\":" JOBS ",\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":2}" },
    { "names of version 2", "{\"names\":" NAMES ",\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":2}" },
    { "names that are none", "{\"names\":[{}],\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":3}" },
    { "jobs that are none", "{\"jobs\":[7],\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":3}" },
    { "orders of version 1", "{\"orders\":\"-c\"," TAIL },
    { "no version", "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\"}" },
    { "unknown phase", "{\"phase\":\"guess\",\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "boot too large", "{\"boot\":4294967296," TAIL },
    { "fraction", "{\"boot\":1.5," TAIL },
    { "ev with blanks", "{\"ev\":{\"tick\": {}}," TAIL },
    { "ev unsorted", "{\"ev\":{\"b\":1,\"a\":1}," TAIL },
    { "ev unclosed", "{\"ev\":{\"b\":1," TAIL },
    { "needless escape", "{\"phase\":\"intent\",\"res\":\"\\u006fk\",\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "upper case hex", "{\"phase\":\"intent\",\"req\":\"AB000000000000000000000000000001\","
                        "\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "sealed without items", "{\"phase\":\"intent\",\"sealed\":[],\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "sealed in plain", "{\"phase\":\"intent\",\"sealed\":[\"why\"],\"seq\":0,\"ts\":\"0\",\"v\":1}" },
    { "sealed behind seq", "{\"phase\":\"intent\",\"seq\":0,\"sealed\":" SEALED ",\"ts\":\"0\",\"v\":1}" },
    { "comma before end", "{\"phase\":\"intent\",\"seq\":0,\"ts\":\"0\",\"v\":1,}" },
    { "token too long", "{\"actor\":{\"token\":\"0123456789abcdef\",\"via\":\"token\"}," TAIL },
};

static void
record_refuses(void **state)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        char scratch[512];
        struct bh_record record = { .boot = 77 };
        struct bh_err err;

        BH_CHECK_EQ(refused[i].name,
                    bh_record_decode(refused[i].leaf, strlen(refused[i].leaf), scratch, &record, &err),
                    BH_INVALID);
        BH_CHECK_EQ(refused[i].name, record.boot, 77);
    }
    BH_CHECK_DONE();
}

/* Every flipped bit either is refused or makes another record; none is read as the
 * same one. */
static void
record_every_bit(void **state)
{
    static const char good[] = FULL;
    char leaf[sizeof good], scratch[sizeof good + 64], again[sizeof good + 64];

    for (size_t bit = 0; bit < 8 * (sizeof good - 1); bit++) {
        struct bh_record record;
        struct bh_err err;
        struct bh_buf out;

        memcpy(leaf, good, sizeof good);
        leaf[bit / 8] = (char)(leaf[bit / 8] ^ (1 << bit % 8));
        if (bh_record_decode(leaf, sizeof good - 1, scratch, &record, &err) != BH_OK)
            continue;
        bh_buf_init_fixed(&out, again, sizeof again);
        bh_record_encode(&out, &record);
        assert_int_equal(out.length, sizeof good - 1);
        assert_memory_equal(again, leaf, sizeof good - 1);
    }
}

static void
texts_that_need_escapes(void **state)
{
    struct bh_record record = { .res = "a\"\\\n\x01\xc3\xbc", .verb = "\xf0\x9f\x90\x84" }, read;
    char leaf[256], scratch[320];
    struct bh_buf out;
    struct bh_err err;

    bh_buf_init_fixed(&out, leaf, sizeof leaf);
    bh_record_encode(&out, &record);
    assert_int_equal(bh_record_decode(leaf, out.length, scratch, &read, &err), BH_OK);
    assert_string_equal(read.res, record.res);
    assert_string_equal(read.verb, record.verb);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(writes),
    cmocka_unit_test(reads_back),
    cmocka_unit_test(record_refuses),
    cmocka_unit_test(record_every_bit),
    cmocka_unit_test(texts_that_need_escapes),
};
BH_TEST_MAIN(tests)
