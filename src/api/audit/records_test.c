#include "api/audit/records.h"

#include "api/fixture_test.h"
#include "base/json.h"
#include "base/test.h"

static struct fixture *f;
static struct received got;

#define SEND(...) bh_fixture_send(f, &(struct sent){ __VA_ARGS__ }, &got)

#define LEAF(seq, tenant)                                                                                    \
    "{\"actor\":{\"id\":1,\"uid\":1001,\"via\":\"peer\"},\"dec\":{\"allow\":true,"                           \
    "\"rule\":6},\"obj\":{\"id\":7,\"type\":\"job\"},\"phase\":\"intent\",\"res\":\"ok\","                   \
    "\"seq\":" #seq ",\"tenant\":" #tenant ",\"ts\":\"1000\",\"v\":1,\"verb\":\"job.submit\"}"

static int
open_records(void **state)
{
    static const char *const leaves[] = { LEAF(0, 2), LEAF(1, 4), LEAF(2, 0), LEAF(3, 2) };

    f = bh_fixture_open();
    for (uint64_t i = 0; i < BH_COUNT(leaves); i++)
        bh_fixture_put_record(f, i, leaves[i]);
    return 0;
}

static int
close_records(void **state)
{
    bh_fixture_close(f);
    return 0;
}

static uint32_t
count_in(const char *text, const char *what)
{
    uint32_t count = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

static void
records_are_cut_down_to_what_may_be_seen(void **state)
{
    SEND(BH_GET, "/v1/records", .uid = CAROL);
    BH_CHECK_EQ("all", count_in(got.text, "\"seq\":"), 4);
    BH_CHECK("names", strstr(got.text, "\"name\":\"alice\""));
    BH_CHECK("tenants", strstr(got.text, "\"tenant\":\"other\""));
    BH_CHECK("total", strstr(got.text, "\"total\":4}"));
    SEND(BH_GET, "/v1/records", .uid = ALICE);
    BH_CHECK_EQ("alice's", count_in(got.text, "\"seq\":"), 2);
    BH_CHECK("no other", !strstr(got.text, "other"));
    BH_CHECK_DONE();
}

static void
pages_follow_each_other(void **state)
{
    SEND(BH_GET, "/v1/records", .query = "limit=3", .uid = CAROL);
    BH_CHECK("next", strstr(got.text, "\"next\":\"2\",\"total\":4}"));
    SEND(BH_GET, "/v1/records", .query = "limit=3&after=2", .uid = CAROL);
    BH_CHECK_EQ("last", count_in(got.text, "\"seq\":"), 1);
    BH_CHECK("no next", !strstr(got.text, "\"next\""));
    SEND(BH_GET, "/v1/records", .query = "after=3", .uid = CAROL);
    BH_CHECK_STR("past the end", got.text, "{\"items\":[],\"minimum\":0,\"total\":4}");
    BH_CHECK_DONE();
}

static void
pages_go_back_from_the_newest(void **state)
{
    static const struct {
        const char *name, *query;
        uint32_t uid;
        const char *seqs, *next; /* in this order; NULL: there is no next page */
    } rows[] = {
        { "all", "order=newest", CAROL, "3210", NULL },
        { "a page", "order=newest&limit=3", CAROL, "321", "1" },
        { "the one before it", "order=newest&limit=3&before=1", CAROL, "0", NULL },
        { "one's own", "order=newest&limit=1", ALICE, "3", "3" },
        { "of a tenant", "order=newest&tenant=acme/vision", CAROL, "30", NULL },
        { "between two", "order=newest&after=0&before=3", CAROL, "21", NULL },
        { "from the beginning", "before=2", CAROL, "01", NULL },
        { "a part of that", "before=3&limit=2", CAROL, "01", "1" },
        { "before the first", "order=newest&before=0", CAROL, "", NULL },
        { "after the last", "order=newest&after=3", CAROL, "", NULL },
        { "before a moment", "order=newest&until=1970-01-01T00:00:00Z", CAROL, "", NULL },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char seqs[8] = "", next[32] = "";
        size_t count = 0;

        SEND(BH_GET, "/v1/records", .query = rows[i].query, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].name, got.status, 200);
        for (const char *at = got.text; (at = strstr(at, "\"seq\":")) && count < 7; at++)
            seqs[count++] = at[6];
        BH_CHECK_STR(rows[i].name, seqs, rows[i].seqs);
        snprintf(next, sizeof next, "\"next\":%s%s%s", rows[i].next ? "\"" : "",
                 rows[i].next ? rows[i].next : "", rows[i].next ? "\"" : "");
        BH_CHECK(rows[i].name, !strstr(got.text, next) == !rows[i].next);
    }
    SEND(BH_GET, "/v1/records", .query = "order=up", .uid = CAROL);
    BH_CHECK_EQ("no order", got.status, 400);
    SEND(BH_GET, "/v1/records", .query = "order=newest&raw=true", .uid = CAROL);
    BH_CHECK_EQ("leaves", got.status, 400);
    BH_CHECK_DONE();
}

static void
one_record(void **state)
{
    static const struct {
        const char *name, *path;
        uint32_t uid, status;
    } rows[] = {
        { "one's own", "/v1/records/3", ALICE, 200 },
        { "another's", "/v1/records/1", ALICE, 404 },
        { "the site's", "/v1/records/2", ALICE, 404 },
        { "an auditor's", "/v1/records/2", CAROL, 200 },
        { "not there", "/v1/records/4", CAROL, 404 },
        { "no number", "/v1/records/x", CAROL, 404 },
        { "too large", "/v1/records/18446744073709551615", CAROL, 404 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, rows[i].path, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].name, got.status, rows[i].status);
    }
    SEND(BH_GET, "/v1/records/3", .uid = ALICE);
    BH_CHECK("it alone", strncmp(got.text, "{\"actor\":", 9) == 0);
    BH_CHECK_DONE();
}

/* The tree can be computed from what any caller gets: a leaf, or its hash. */
static void
raw_gives_leaves_or_their_hash(void **state)
{
    uint8_t digest[32];
    char hash[65];
    struct bh_buf hex;

    bh_crypto_openssl.sha256("", 1, LEAF(1, 4), strlen(LEAF(1, 4)), digest);
    bh_buf_init_fixed(&hex, hash, sizeof hash);
    bh_buf_put_hex(&hex, digest, 32);
    SEND(BH_GET, "/v1/records", .query = "raw=true", .uid = ALICE);
    BH_CHECK_EQ("every number", count_in(got.text, "\"seq\":"), 4);
    BH_CHECK_EQ("leaves", count_in(got.text, "\"leaf\":"), 2);
    BH_CHECK_EQ("hashes", count_in(got.text, "\"hash\":"), 2);
    BH_CHECK("that of the leaf", strstr(got.text, bh_buf_text(&hex)));
    BH_CHECK("not its text", !strstr(got.text, "\\\"tenant\\\":4"));
    BH_CHECK_DONE();
}

/* Who sees a record whole sees what is sealed in it, while the key is there. */
static void
sealed_texts_are_opened(void **state)
{
    char leaf[900], memory[400];
    struct bh_buf item;

    bh_buf_init_fixed(&item, memory, sizeof memory);
    bh_fixture_seal(f, 2, "why \"I\" did it", &item);
    for (uint64_t seq = 4; seq < 6; seq++) {
        snprintf(leaf, sizeof leaf,
                 "{\"actor\":{\"id\":1,\"via\":\"peer\"},%s\"phase\":\"intent\",\"sealed\":[%s],"
                 "\"seq\":%d,\"tenant\":2,\"ts\":\"1000\",\"v\":1,\"verb\":\"x\"}",
                 seq == 5 ? "\"do\":[]," : "", bh_buf_text(&item), (int)seq);
        bh_fixture_put_record(f, seq, leaf);
    }
    SEND(BH_GET, "/v1/records", .uid = CAROL);
    BH_CHECK_EQ("all of them", count_in(got.text, "\"note\":\"why \\\"I\\\" did it\""), 2);
    SEND(BH_GET, "/v1/records", .uid = ALICE);
    BH_CHECK_EQ("whole ones", count_in(got.text, "\"note\":"), 1);
    SEND(BH_GET, "/v1/records", .uid = BOB);
    BH_CHECK("not another's", !strstr(got.text, "\"note\":"));
    SEND(BH_GET, "/v1/records", .query = "raw=true", .uid = CAROL);
    BH_CHECK("sealed in the leaf", !strstr(got.text, "did it") && strstr(got.text, "\\\"k\\\":"));
    bh_fixture_shred(f, 2);
    SEND(BH_GET, "/v1/records", .uid = CAROL);
    BH_CHECK_EQ("erased", count_in(got.text, "\"note\":\"(erased)\""), 2);
    BH_CHECK_DONE();
}

/* Who came by a token has no Unix user, and 0 would be root's. */
static void
only_a_socket_has_a_user(void **state)
{
    static const struct {
        const char *name, *actor, *tells;
    } rows[] = {
        { "a token", "\"id\":1,\"token\":\"TTTTTTTTTTTT\",\"via\":\"token\"", NULL },
        { "a session", "\"id\":1,\"token\":\"SSSSSSSSSSSS\",\"via\":\"session\"", NULL },
        { "a socket", "\"id\":1,\"uid\":1001,\"via\":\"peer\"", "\"uid\":1001" },
        { "root at it", "\"id\":1,\"via\":\"peer\"", "\"uid\":0" },
    };
    char leaf[400];

    for (uint64_t i = 0; i < BH_COUNT(rows); i++) {
        snprintf(leaf, sizeof leaf,
                 "{\"actor\":{%s},\"phase\":\"intent\",\"seq\":%d,\"tenant\":2,\"ts\":\"1000\","
                 "\"v\":1,\"verb\":\"x\"}",
                 rows[i].actor, (int)(4 + i));
        bh_fixture_put_record(f, 4 + i, leaf);
        snprintf(leaf, sizeof leaf, "after=%d", (int)(3 + i));
        SEND(BH_GET, "/v1/records", .query = leaf, .uid = CAROL);
        BH_CHECK(rows[i].name,
                 rows[i].tells ? strstr(got.text, rows[i].tells) != NULL : !strstr(got.text, "\"uid\""));
    }
    BH_CHECK_DONE();
}

/* A search finds what it asks for among what the caller may see. */
static void
searches_find_what_they_ask_for(void **state)
{
    static const struct {
        const char *query;
        uint32_t uid, status, count;
    } rows[] = {
        { "verb=job.submit", CAROL, 200, 4 },
        { "verb=job.submit", ALICE, 200, 2 },
        { "verb=job", CAROL, 400, 0 },
        { "verb=", CAROL, 400, 0 },
        { "verb=job.sumbit", ALICE, 400, 0 },
        { "verb=node.hello", CAROL, 200, 0 },
        { "object=jobs/23", CAROL, 400, 0 },
        { "actor=alice", CAROL, 200, 4 },
        { "actor=1", CAROL, 200, 4 },
        { "actor=2", CAROL, 200, 0 },
        { "actor=nobody", CAROL, 404, 0 },
        { "tenant=acme", CAROL, 200, 2 },
        { "tenant=other", CAROL, 200, 1 },
        { "tenant=other", ALICE, 404, 0 },
        { "object=job", CAROL, 200, 4 },
        { "object=job/7", CAROL, 200, 4 },
        { "object=job/8", CAROL, 200, 0 },
        { "object=gpu", CAROL, 200, 0 },
        { "object=job/", CAROL, 400, 0 },
        { "decision=allow", CAROL, 200, 4 },
        { "decision=deny", CAROL, 200, 0 },
        { "decision=maybe", CAROL, 400, 0 },
        { "until=1970-01-01T00:00:01Z", CAROL, 200, 4 },
        { "since=1970-01-01T00:00:01Z", CAROL, 200, 0 },
        { "since=1h", CAROL, 200, 0 },
        { "since=yesterday", CAROL, 400, 0 },
        { "text=abc", CAROL, 400, 0 },
        { "text=abcd", CAROL, 200, 0 },
        { "raw=true&verb=job.submit", ALICE, 200, 2 },
        { "verb=job.submit&limit=1", ALICE, 200, 1 },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, "/v1/records", .query = rows[i].query, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].query, got.status, rows[i].status);
        BH_CHECK_EQ(rows[i].query, count_in(got.text, "\"seq\":"), rows[i].count);
    }
    SEND(BH_GET, "/v1/records", .query = "verb=job.sumbit", .uid = CAROL);
    BH_CHECK("a verb like it", strstr(got.text, "did you mean job.submit?"));
    SEND(BH_GET, "/v1/records", .query = "object=jobs/23", .uid = CAROL);
    BH_CHECK("a type like it", strstr(got.text, "did you mean job?"));
    SEND(BH_GET, "/v1/records", .query = "verb=job.submit&limit=1", .uid = CAROL);
    BH_CHECK("there is more", strstr(got.text, "\"next\""));
    BH_CHECK("of which nobody knows how much", !strstr(got.text, "\"total\""));
    SEND(BH_GET, "/v1/records", .query = "limit=1", .uid = ALICE);
    BH_CHECK("nor of others'", strstr(got.text, "\"next\"") && !strstr(got.text, "\"total\""));
    BH_CHECK_DONE();
}

#define LATER(seq, ts, more)                                                                                 \
    "{" more "\"phase\":\"event\",\"req\":\"c0ffee00000000000000000000000000\",\"seq\":" #seq                \
    ",\"ts\":\"" #ts "\",\"v\":1,\"verb\":\"token_use\"}"

#define NO_RULE                                                                                              \
    "{\"actor\":{\"id\":1},\"phase\":\"intent\",\"res\":\"denied\",\"seq\":6,\"ts\":\"3000000000\","         \
    "\"v\":1,\"verb\":\"job.cancel\"}"
/* As versions of before wrote it. */
#define ALLOWED_AND_DENIED                                                                                   \
    "{\"actor\":{\"id\":1},\"dec\":{\"allow\":true,\"rule\":41},\"phase\":\"event\",\"res\":"                \
    "\"denied\",\"seq\":7,\"ts\":\"3000000000\",\"v\":4,\"verb\":\"key.shred\"}"
#define DENIED "\"actor\":{\"token\":\"bhk12345\",\"via\":\"token\"},\"dec\":{\"allow\":false},"

static void
searches_know_times_and_ids(void **state)
{
    bh_fixture_put_record(f, 4, LATER(4, 2000000000, ""));
    bh_fixture_put_record(f, 5, LATER(5, 3000000000, DENIED));
    SEND(BH_GET, "/v1/records", .query = "since=1970-01-01T00:00:02Z", .uid = CAROL);
    BH_CHECK_EQ("since", count_in(got.text, "\"seq\":"), 2);
    SEND(BH_GET, "/v1/records", .query = "since=1970-01-01T00:00:02Z&until=1970-01-01T00:00:03Z",
         .uid = CAROL);
    BH_CHECK_EQ("between", count_in(got.text, "\"seq\":"), 1);
    SEND(BH_GET, "/v1/records", .query = "text=c0ffee", .uid = CAROL);
    BH_CHECK_EQ("request", count_in(got.text, "\"seq\":"), 2);
    SEND(BH_GET, "/v1/records", .query = "text=bhk1", .uid = CAROL);
    BH_CHECK_EQ("token", count_in(got.text, "\"seq\":"), 1);
    SEND(BH_GET, "/v1/records", .query = "decision=deny", .uid = CAROL);
    BH_CHECK_EQ("denied", count_in(got.text, "\"seq\":"), 1);
    bh_fixture_put_record(f, 6, NO_RULE);
    SEND(BH_GET, "/v1/records", .query = "decision=deny", .uid = CAROL);
    BH_CHECK_EQ("also for want of a rule", count_in(got.text, "\"seq\":"), 2);
    BH_CHECK_EQ("which is said", count_in(got.text, "\"decision\":{\"allow\":false}"), 2);
    bh_fixture_put_record(f, 7, ALLOWED_AND_DENIED);
    SEND(BH_GET, "/v1/records", .query = "decision=deny", .uid = CAROL);
    BH_CHECK_EQ("also one of before", count_in(got.text, "\"seq\":"), 3);
    SEND(BH_GET, "/v1/records", .query = "verb=key.shred&decision=allow", .uid = CAROL);
    BH_CHECK_EQ("which was not allowed", count_in(got.text, "\"seq\":"), 0);
    SEND(BH_GET, "/v1/records", .query = "text=c0ffee", .uid = ALICE);
    BH_CHECK_EQ("not a tenant's", count_in(got.text, "\"seq\":"), 0);
    BH_CHECK_DONE();
}

#define HELD(seq, tenant, more)                                                                              \
    "{\"dec\":{\"allow\":true}," more "\"ev\":{\"cordon\":{\"gpu\":1,\"held\":\"drain\"}},"                  \
    "\"phase\":\"intent\",\"res\":\"ok\",\"seq\":" #seq ",\"tenant\":" #tenant ",\"text\":\""                \
    "00000000000000000000000000000000000000000000000000000000000000ab\",\"ts\":\"2000\","                    \
    "\"v\":4,\"verb\":\"gpu.cordon\"}"

/* A caller that sees the leaf gets its event as the leaf has it, and the digest of its text. */
static void
events_are_shown(void **state)
{
    static const char event[] = "\"event\":{\"cordon\":{\"gpu\":1,\"held\":\"drain\"}},";
    static const char text[] =
        "\"text\":\"00000000000000000000000000000000000000000000000000000000000000ab\",";

    bh_fixture_put_record(f, 4, HELD(4, 2, ""));
    bh_fixture_put_record(f, 5, HELD(5, 2, "\"do\":[],"));
    SEND(BH_GET, "/v1/records", .query = "verb=gpu.cordon", .uid = CAROL);
    BH_CHECK_EQ("all of them", count_in(got.text, event), 2);
    BH_CHECK_EQ("digests", count_in(got.text, text), 2);
    SEND(BH_GET, "/v1/records", .query = "verb=gpu.cordon", .uid = ALICE);
    BH_CHECK_EQ("both are hers", count_in(got.text, "\"seq\":"), 2);
    BH_CHECK_EQ("of whole ones", count_in(got.text, event), 1);
    SEND(BH_GET, "/v1/records", .query = "verb=gpu.cordon", .uid = BOB);
    BH_CHECK_EQ("not another's", count_in(got.text, event), 0);
    BH_CHECK_DONE();
}

#define CHANGED(seq, more)                                                                                   \
    "{\"boot\":3,\"dec\":{\"allow\":true}," more "\"jobs\":[{\"cause\":\"cancelled\",\"ended\":\"1900\","    \
    "\"job\":23,\"state\":\"cancelled\"}],\"names\":[{\"c\":"                                                \
    "\"00000000000000000000000000000000000000000000000000000000000000cd\",\"id\":4,\"kind\":\"node\"}],"     \
    "\"obj\":{\"id\":2,\"type\":\"tenant\"},\"orders\":\"-t\",\"phase\":\"intent\","                         \
    "\"req\":\"c0ffee00000000000000000000000000\",\"res\":\"ok\","                                           \
    "\"salt\":\"5a170000000000000000000000000000\",\"seq\":" #seq                                            \
    ",\"tenant\":2,\"ts\":\"2000\",\"v\":4,\"verb\":\"site.apply\"}"

/* What ended a job is found under the job, whatever it was done to; all of it is shown to callers that see
 * the record whole. */
static void
what_changed_a_job_is_shown_whole(void **state)
{
    static const struct {
        const char *member;
        uint32_t all, tenants; /* in how many of the two records */
    } rows[] = {
        { "\"boot\":3,", 2, 2 },
        { "\"decided\":[],", 1, 0 },
        { "\"jobs\":[{\"cause\":\"cancelled\",", 2, 1 },
        { "\"names\":[{\"c\":\"00000000", 2, 1 },
        { "\"orders\":\"-t\",", 2, 1 },
        { "\"request\":\"c0ffee00000000000000000000000000\",", 2, 2 },
        { "\"salt\":\"5a170000000000000000000000000000\",", 2, 1 },
        { "\"version\":4}", 2, 2 },
    };
    static const struct {
        const char *query;
        uint32_t uid, count;
        /* clang-format off */
    } searches[] = {
        { "object=job/23", CAROL, 2 }, { "object=job/23", ALICE, 1 }, { "object=job/23", BOB, 0 },
        { "object=job/24", CAROL, 0 }, { "object=gpu/23", CAROL, 0 }, { "object=tenant/2", ALICE, 2 },
    };
    /* clang-format on */

    bh_fixture_put_record(f, 4, CHANGED(4, ""));
    bh_fixture_put_record(f, 5, CHANGED(5, "\"do\":[],"));
    for (size_t i = 0; i < BH_COUNT(searches); i++) {
        SEND(BH_GET, "/v1/records", .query = searches[i].query, .uid = searches[i].uid);
        BH_CHECK_EQ(searches[i].query, count_in(got.text, "\"seq\":"), searches[i].count);
    }
    bh_fixture_put_job(f, 23, 4, 2, "completed"); /* another tenant's: what changed it is not shown */
    SEND(BH_GET, "/v1/records", .query = "object=job/23", .uid = ALICE);
    BH_CHECK_EQ("of another's job", count_in(got.text, "\"seq\":"), 1);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, "/v1/records", .query = "verb=site.apply", .uid = CAROL);
        BH_CHECK_EQ(rows[i].member, count_in(got.text, rows[i].member), rows[i].all);
        SEND(BH_GET, "/v1/records", .query = "verb=site.apply", .uid = ALICE);
        BH_CHECK_EQ(rows[i].member, count_in(got.text, rows[i].member), rows[i].tenants);
    }
    BH_CHECK_DONE();
}

#define MOUNTED                                                                                              \
    "{\"actor\":{\"id\":1},\"dec\":{\"allow\":true,\"rule\":3100},\"obj\":{\"id\":1,\"type\":"               \
    "\"dataset\"},\"order\":8193,\"phase\":\"event\",\"res\":\"ok\",\"seq\":4,\"tenant\":2,"                 \
    "\"ts\":\"2000\",\"v\":1,\"verb\":\"dataset.read\"}"

static void
searches_know_datasets_by_name(void **state)
{
    static const struct {
        const char *query;
        uint32_t uid, count;
        /* clang-format off */
    } rows[] = {
        { "object=dataset/imagenet", CAROL, 1 }, { "object=dataset/1", CAROL, 1 },
        { "object=dataset/imagenet", ALICE, 1 }, { "object=dataset/imagenet", BOB, 0 },
        { "object=dataset/nothing", CAROL, 0 },  { "object=dataset/nothing", BOB, 0 },
    };
    /* clang-format on */

    bh_fixture_put_record(f, 4, MOUNTED);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, "/v1/records", .query = rows[i].query, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].query, got.status, 200); /* also of one that there is not */
        BH_CHECK_EQ(rows[i].query, count_in(got.text, "\"seq\":"), rows[i].count);
        BH_CHECK_EQ(rows[i].query, count_in(got.text, "\"order\":8193,"), rows[i].count);
    }
    BH_CHECK_DONE();
}

#define CORDONED                                                                                             \
    "{\"actor\":{\"id\":1},\"dec\":{\"allow\":true,\"rule\":90},\"obj\":{\"id\":1,\"type\":\"gpu\"},"        \
    "\"phase\":\"done\",\"res\":\"ok\",\"seq\":4,\"ts\":\"2000\",\"v\":1,\"verb\":\"gpu.cordon\"}"

static void
searches_know_gpus_by_uuid(void **state)
{
    static const struct {
        const char *query;
        uint32_t uid, count;
    } rows[] = {
        { "object=gpu/GPU-a", CAROL, 1 },       { "object=gpu/1", CAROL, 1 },
        { "object=gpu/GPU-b", CAROL, 0 },       { "object=gpu/GPU-a", BOB, 0 },
        { "object=gpu/GPU-nothing", CAROL, 0 }, { "object=gpu/GPU-nothing", BOB, 0 },
    };

    bh_fixture_put_record(f, 4, CORDONED);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, "/v1/records", .query = rows[i].query, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].query, got.status, 200); /* also of one that there is not */
        BH_CHECK_EQ(rows[i].query, count_in(got.text, "\"gpu.cordon\""), rows[i].count);
    }
    BH_CHECK_DONE();
}

#define DOWN                                                                                                 \
    "{\"dec\":{\"allow\":true},\"obj\":{\"id\":1,\"type\":\"node\"},\"phase\":\"event\",\"res\":\"ok\","     \
    "\"seq\":4,\"ts\":\"2000\",\"v\":4,\"verb\":\"node.down\"}"

static void
searches_know_nodes_by_name(void **state)
{
    static const struct {
        const char *query;
        uint32_t uid, count;
    } rows[] = {
        { "object=node/n1", CAROL, 1 },      { "object=node/1", CAROL, 1 },
        { "object=node/nothing", CAROL, 0 }, { "object=node/n1", BOB, 0 },
        { "object=node/nothing", BOB, 0 },
    };

    bh_fixture_put_record(f, 4, DOWN);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        SEND(BH_GET, "/v1/records", .query = rows[i].query, .uid = rows[i].uid);
        BH_CHECK_EQ(rows[i].query, got.status, 200); /* also of one that there is not */
        BH_CHECK_EQ(rows[i].query, count_in(got.text, "\"node.down\""), rows[i].count);
    }
    BH_CHECK_DONE();
}

#define ANSWER(seq, verb, ev)                                                                                \
    "{\"dec\":{\"allow\":true},\"ev\":" ev ",\"obj\":{\"id\":1,\"type\":\"lease\"},"                         \
    "\"phase\":\"outcome\",\"res\":\"ok\",\"seq\":" #seq ",\"tenant\":2,\"ts\":\"2000\",\"v\":4,"            \
    "\"verb\":\"" verb "\"}"

/* Also by a record that changed others' jobs beside it. */
static void
who_sees_a_job_finds_what_changed_it(void **state)
{
    bh_fixture_put_record(f, 4, CHANGED(4, "\"do\":[],"));
    bh_fixture_put_job(f, 23, 2, 1, "completed");
    SEND(BH_GET, "/v1/records", .query = "object=job/23", .uid = ALICE);
    BH_CHECK_EQ("its own", count_in(got.text, "\"seq\":"), 1);
    BH_CHECK("not the decisions", !strstr(got.text, "\"decided\""));
    SEND(BH_GET, "/v1/records", .query = "object=job/23", .uid = BOB);
    BH_CHECK_EQ("of another tenant", count_in(got.text, "\"seq\":"), 0);
    BH_CHECK_DONE();
}

/* The result says that the answer was taken, the outcome what it was. */
static void
outcomes_are_shown(void **state)
{
    static const struct {
        const char *leaf, *says;
    } rows[] = {
        { ANSWER(4, "node.started", "{\"started\":{\"lease\":1}}"), "\"outcome\":\"ok\"," },
        { ANSWER(5, "node.started", "{\"started\":{\"lease\":1,\"outcome\":\"failed\",\"rc\":1}}"),
          "\"outcome\":\"failed: " },
        { ANSWER(6, "node.ended", "{\"ended\":{\"cause\":\"start_failed\",\"lease\":1}}"),
          "\"outcome\":\"start_failed\"," },
        { ANSWER(7, "node.ended", "{\"ended\":{\"cause\":\"exited\",\"exit_status\":127,\"lease\":1}}"),
          "\"outcome\":\"exited, status 127\"," },
        { ANSWER(8, "node.suspended", "{\"suspended\":{\"lease\":1,\"outcome\":\"context_held\"}}"),
          "\"outcome\":\"context_held\"," },
        { ANSWER(9, "job.cancel", "{\"cancel\":{\"cause\":\"drained\",\"job\":1}}"), NULL },
    };

    for (size_t i = 0; i < BH_COUNT(rows); i++)
        bh_fixture_put_record(f, 4 + i, rows[i].leaf);
    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        char query[40];

        snprintf(query, sizeof query, "limit=1&after=%zu", 3 + i);
        SEND(BH_GET, "/v1/records", .query = query, .uid = ALICE);
        BH_CHECK_EQ(rows[i].leaf, count_in(got.text, "\"seq\":"), 1);
        BH_CHECK(rows[i].leaf,
                 !!strstr(got.text, rows[i].says ? rows[i].says : "\"outcome\":") == !!rows[i].says);
    }
    BH_CHECK_DONE();
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_records, close_records)
    const struct CMUnitTest tests[] = { TEST(records_are_cut_down_to_what_may_be_seen),
                                        TEST(pages_follow_each_other),
                                        TEST(pages_go_back_from_the_newest),
                                        TEST(one_record),
                                        TEST(raw_gives_leaves_or_their_hash),
                                        TEST(sealed_texts_are_opened),
                                        TEST(only_a_socket_has_a_user),
                                        TEST(searches_find_what_they_ask_for),
                                        TEST(searches_know_times_and_ids),
                                        TEST(searches_know_datasets_by_name),
                                        TEST(searches_know_gpus_by_uuid),
                                        TEST(searches_know_nodes_by_name),
                                        TEST(outcomes_are_shown),
                                        TEST(events_are_shown),
                                        TEST(what_changed_a_job_is_shown_whole),
                                        TEST(who_sees_a_job_finds_what_changed_it) };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
