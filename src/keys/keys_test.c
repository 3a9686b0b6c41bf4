#include "keys/keys.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/test.h"
#include "tests/fakes/store.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

/* 2026-11-20, 2026-11-30 23:59:59.999999999 and the nanosecond after it. */
#define NOV UINT64_C(1795170000000000000)
#define DEC UINT64_C(1796083200000000000)

struct fixture {
    struct bh_store store;
    struct bh_keys *keys;
    struct bh_arena *arena;
    struct bh_err err;
};

static bh_rc
open_keys(struct fixture *f, uint8_t root)
{
    const struct bh_keys_options options = { f->store, crypto, { root, [31] = 1 } };

    bh_keys_close(f->keys);
    f->keys = NULL;
    return bh_keys_open(&options, &f->keys, &f->err);
}

static int
keys_set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    *state = f;
    bh_store_memory_open(crypto, &f->store);
    f->arena = bh_arena_new(4 << 20);
    return open_keys(f, 1);
}

static int
keys_tear_down(void **state)
{
    struct fixture *f = *state;

    bh_keys_close(f->keys);
    f->store.ops->close(f->store.self);
    bh_arena_free(f->arena);
    free(f);
    return 0;
}

static void
keys_begin(struct fixture *f)
{
    assert_int_equal(f->store.ops->begin(f->store.self, &f->err), BH_OK);
}

static void
keys_commit(struct fixture *f)
{
    assert_int_equal(f->store.ops->commit(f->store.self, &f->err), BH_OK);
}

static struct bh_slice
slice_of(const char *text)
{
    return (struct bh_slice){ text, strlen(text) };
}

/* The sealed text, in the arena. */
static const char *
keys_seal(struct fixture *f, struct bh_key_use use, const char *plain)
{
    struct bh_buf out;
    const char *item;

    bh_buf_init(&out, 1 << 20);
    keys_begin(f);
    if (bh_keys_seal(f->keys, &use, slice_of(plain), &out, &f->err) != BH_OK)
        fail_msg("%s", f->err.msg);
    keys_commit(f);
    item = bh_arena_strdup(f->arena, bh_buf_text(&out));
    bh_buf_fini(&out);
    return item;
}

/* The plaintext, or why there is none. */
static const char *
unseal(struct fixture *f, const char *item)
{
    struct bh_buf out;
    bh_rc rc;
    const char *plain;

    bh_buf_init(&out, 1 << 20);
    rc = bh_keys_unseal(f->keys, slice_of(item), &out, &f->err);
    plain = bh_arena_strdup(f->arena, rc == BH_OK ? bh_buf_text(&out) : f->err.msg);
    bh_buf_fini(&out);
    return plain;
}

static const struct bh_key_use audit_3 = { BH_KEY_AUDIT, { 3 }, NOV };

static bool
print_row(void *self, const struct bh_key_row *row)
{
    bh_buf_printf(self, "%u:%u/%u/%u<%s%s ", (unsigned)row->id, (unsigned)row->kind, (unsigned)row->tenant_id,
                  (unsigned)row->month, row->kind == BH_KEY_KIND_TENANT ? "root" : "tenant",
                  row->shredded_ns ? "!" : "");
    return true;
}

static const char *
tree(struct fixture *f)
{
    static char text[800];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_keys_each(f->keys, print_row, &out);
    return bh_buf_text(&out);
}

static void
seals_and_opens(void **state)
{
    static const char *const texts[] = { "", "x", "sixteen bytes!!!",
                                         "Gr\xc3\xbc\xc3\x9f"
                                         "e \"quoted\"\n" };
    static const struct bh_key_use uses[] = {
        { BH_KEY_AUDIT, { 3 }, NOV },
        { BH_KEY_AUDIT, { 0 }, NOV },
        { BH_KEY_IDENTITY, { 0 }, NOV },
    };
    struct fixture *f = *state;
    char *large = malloc(100001);

    for (size_t u = 0; u < BH_COUNT(uses); u++)
        for (size_t i = 0; i < BH_COUNT(texts); i++) {
            const char *item = keys_seal(f, uses[u], texts[i]);

            BH_CHECK("form", bh_keys_is_sealed(slice_of(item)));
            BH_CHECK("hidden", strlen(texts[i]) < 2 || !strstr(item, texts[i]));
            BH_CHECK_STR("opened", unseal(f, item), texts[i]);
            BH_CHECK("each is another", strcmp(item, keys_seal(f, uses[u], texts[i])) != 0);
        }
    memset(large, 'a', 100000);
    large[100000] = '\0';
    BH_CHECK_STR("large", unseal(f, keys_seal(f, audit_3, large)), large);
    assert_int_equal(open_keys(f, 1), BH_OK);
    free(large);
    BH_CHECK_DONE();
}

/* A tenant's key is made once, an audit key each month, the identity key once. */
static void
makes_keys_as_needed(void **state)
{
    struct fixture *f = *state;
    struct bh_key_row row;

    (void)keys_seal(f, audit_3, "a");
    (void)keys_seal(f, audit_3, "b");
    BH_CHECK_STR("first", tree(f), "1:0/3/0<root 2:1/3/202611<tenant ");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 3 }, DEC - 1 }, "c");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 3 }, DEC }, "d");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 4 }, NOV }, "e");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_IDENTITY, { 4 }, NOV }, "f");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_IDENTITY, { 5 }, DEC }, "g");
    BH_CHECK_STR("all", tree(f),
                 "1:0/3/0<root 2:1/3/202611<tenant 3:1/3/202612<tenant 4:0/4/0<root "
                 "5:1/4/202611<tenant 6:0/0/0<root 7:2/0/0<tenant ");
    for (uint64_t id = 1; id <= 7; id++)
        BH_CHECK("told once", bh_keys_made(f->keys, &row) && row.id == id);
    BH_CHECK("no more", !bh_keys_made(f->keys, &row));
    assert_int_equal(open_keys(f, 1), BH_OK);
    BH_CHECK("old ones are not new", !bh_keys_made(f->keys, &row));
    BH_CHECK_DONE();
}

/* Whatever is changed in an item, it does not open. */
static void
refuses_damaged_items(void **state)
{
    struct fixture *f = *state;
    const char *good = keys_seal(f, audit_3, "text"), *other = keys_seal(f, audit_3, "next");
    char item[400];
    struct bh_buf plain;

    bh_buf_init(&plain, 1000);
    for (size_t bit = 0; bit < strlen(good) * 8; bit++) {
        snprintf(item, sizeof item, "%s", good);
        item[bit / 8] = (char)(item[bit / 8] ^ (1 << bit % 8));
        BH_CHECK_EQ("flipped", bh_keys_unseal(f->keys, slice_of(item), &plain, &f->err), BH_INVALID);
    }
    snprintf(item, sizeof item, "%s", good);
    memcpy(strstr(item, "\"h\""), strstr(other, "\"h\""), 50);
    BH_CHECK_EQ("another text's commitment", bh_keys_unseal(f->keys, slice_of(item), &plain, &f->err),
                BH_INVALID);
    BH_CHECK_EQ("nothing came out", plain.length, 0);
    bh_buf_fini(&plain);
    BH_CHECK_DONE();
}

static void
a_destroyed_key_opens_nothing(void **state)
{
    struct fixture *f = *state;
    const char *november = keys_seal(f, audit_3, "november");
    const char *december = keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 3 }, DEC }, "december");

    keys_begin(f);
    BH_CHECK_EQ("shred", bh_keys_shred(f->keys, 2, DEC, &f->err), BH_OK);
    BH_CHECK_EQ("twice", bh_keys_shred(f->keys, 2, DEC, &f->err), BH_NOT_FOUND);
    BH_CHECK_EQ("none such", bh_keys_shred(f->keys, 99, DEC, &f->err), BH_NOT_FOUND);
    keys_commit(f);
    for (int i = 0; i < 2; i++) {
        BH_CHECK_STR("erased", unseal(f, november), "erased");
        BH_CHECK_STR("kept", unseal(f, december), "december");
        assert_int_equal(open_keys(f, 1), BH_OK);
    }
    BH_CHECK_STR("a new key for that month", unseal(f, keys_seal(f, audit_3, "again")), "again");
    BH_CHECK_STR("the tree", tree(f),
                 "1:0/3/0<root 2:1/3/202611<tenant! 3:1/3/202612<tenant 4:1/3/202611<tenant ");
    keys_begin(f);
    BH_CHECK_EQ("shred the tenant's", bh_keys_shred(f->keys, 1, DEC, &f->err), BH_OK);
    keys_commit(f);
    assert_int_equal(open_keys(f, 1), BH_OK);
    BH_CHECK_STR("all below", unseal(f, december), "erased");
    BH_CHECK_STR("a new tree", unseal(f, keys_seal(f, audit_3, "anew")), "anew");
    BH_CHECK_DONE();
}

static void
a_rolled_back_key_never_was(void **state)
{
    struct fixture *f = *state;
    const char *kept = keys_seal(f, audit_3, "kept");
    struct bh_buf out;
    char lost[400];

    bh_buf_init_fixed(&out, lost, sizeof lost);
    keys_begin(f);
    assert_int_equal(bh_keys_seal(f->keys, &(struct bh_key_use){ BH_KEY_AUDIT, { 9 }, NOV }, slice_of("lost"),
                                  &out, &f->err),
                     BH_OK);
    assert_int_equal(bh_keys_shred(f->keys, 2, DEC, &f->err), BH_OK);
    BH_CHECK_STR("gone within", unseal(f, kept), "erased");
    f->store.ops->rollback(f->store.self);
    BH_CHECK_EQ("reload", bh_keys_reload(f->keys, &f->err), BH_OK);
    BH_CHECK_STR("back", unseal(f, kept), "kept");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 8 }, NOV }, "x"); /* the same numbers */
    BH_CHECK_STR("not by another's key", unseal(f, bh_buf_text(&out)),
                 "a text sealed under key 4 is damaged");
    BH_CHECK_DONE();
}

static bool
take_second(void *self, const struct bh_key_row *row)
{
    if (row->id == 2)
        *(struct bh_key_row *)self = *row;
    return true;
}

/* Rotation wraps the tenants' keys anew and touches nothing else. */
static void
rotates(void **state)
{
    const uint8_t next[32] = { 2, [31] = 1 };
    struct fixture *f = *state;
    const char *item = keys_seal(f, audit_3, "text");
    struct bh_key_row before, after;
    uint64_t count = 0;

    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 4 }, NOV }, "x");
    bh_keys_each(f->keys, take_second, &before);
    keys_begin(f);
    BH_CHECK_EQ("rotate", bh_keys_rotate(f->keys, next, &count, &f->err), BH_OK);
    f->store.ops->rollback(f->store.self);
    BH_CHECK_EQ("reload", bh_keys_reload(f->keys, &f->err), BH_OK);
    BH_CHECK_STR("as before", unseal(f, item), "text");
    BH_CHECK_EQ("the new root is none", open_keys(f, 2), BH_CONFLICT);
    BH_CHECK_EQ("the old one", open_keys(f, 1), BH_OK);
    keys_begin(f);
    BH_CHECK_EQ("rotate", bh_keys_rotate(f->keys, next, &count, &f->err), BH_OK);
    keys_commit(f);
    bh_keys_rotated(f->keys);
    BH_CHECK_EQ("tenants' keys", count, 2);
    BH_CHECK_STR("opens", unseal(f, item), "text");
    (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { 5 }, NOV }, "y");
    BH_CHECK_EQ("the old root is none", open_keys(f, 1), BH_CONFLICT);
    BH_CHECK_EQ("the new one", open_keys(f, 2), BH_OK);
    BH_CHECK_STR("opens", unseal(f, item), "text");
    bh_keys_each(f->keys, take_second, &after);
    BH_CHECK("untouched", memcmp(&before, &after, sizeof before) == 0);
    keys_begin(f);
    BH_CHECK_EQ("the present one", bh_keys_rotate(f->keys, next, &count, &f->err), BH_CONFLICT);
    keys_commit(f);
    BH_CHECK_DONE();
}

/* An attacker with the store's file swaps keys: they do not fit. */
static void
refuses_moved_rows(void **state)
{
    struct fixture *f = *state;
    const char *item = keys_seal(f, audit_3, "text");
    struct bh_key_row row;

    bh_keys_each(f->keys, take_second, &row);
    row.month = 202612;
    keys_begin(f);
    assert_int_equal(f->store.ops->put_key(f->store.self, &row, &f->err), BH_OK);
    keys_commit(f);
    assert_int_equal(open_keys(f, 1), BH_OK);
    BH_CHECK_STR("moved", unseal(f, item), "key 2: was not sealed with this key, or was changed");
    row.parent = 77;
    keys_begin(f);
    assert_int_equal(f->store.ops->put_key(f->store.self, &row, &f->err), BH_OK);
    keys_commit(f);
    BH_CHECK_EQ("orphan", open_keys(f, 1), BH_INVALID);
    assert_int_equal(bh_keys_open(&(struct bh_keys_options){ f->store, crypto, { 1 } }, &f->keys, &f->err),
                     BH_CONFLICT);
    BH_CHECK_DONE();
}

static const char *
keys_text_of(struct fixture *f, const struct bh_digest *digest)
{
    const char *text;

    return bh_keys_get_text(f->keys, digest, f->arena, &text, &f->err) == BH_OK ? text : f->err.msg;
}

static void
keeps_texts(void **state)
{
    static const char old[] = "{\"args\":[\"true\"]}";
    struct fixture *f = *state;
    struct bh_digest sealed, plain, none = { { 9 } };
    const char *item = keys_seal(f, audit_3, old);

    crypto->sha256(old, strlen(old), "", 0, plain.bytes);
    keys_begin(f);
    assert_int_equal(f->store.ops->put_text(f->store.self,
                                            &(struct bh_text_row){ plain, 0, { old, strlen(old) } }, &f->err),
                     BH_OK);
    crypto->sha256(item, strlen(item), "", 0, sealed.bytes);
    assert_int_equal(f->store.ops->put_text(
                         f->store.self, &(struct bh_text_row){ sealed, 3, { item, strlen(item) } }, &f->err),
                     BH_OK);
    keys_commit(f);
    BH_CHECK_STR("sealed", keys_text_of(f, &sealed), old);
    BH_CHECK_STR("of before", keys_text_of(f, &plain), old);
    BH_CHECK_STR("gone", keys_text_of(f, &none), "erased");
    keys_begin(f);
    assert_int_equal(bh_keys_shred(f->keys, 2, DEC, &f->err), BH_OK);
    keys_commit(f);
    BH_CHECK_EQ("it goes with its key",
                f->store.ops->get_text(f->store.self, &sealed, f->arena, &(const char *){ 0 }, &f->err),
                BH_NOT_FOUND);
    BH_CHECK_STR("destroyed", keys_text_of(f, &sealed), "erased");
    BH_CHECK_STR("of before", keys_text_of(f, &plain), old);
    BH_CHECK_EQ("and says so", bh_keys_get_text(f->keys, &sealed, f->arena, &(const char *){ 0 }, &f->err),
                BH_NOT_FOUND);
    BH_CHECK_DONE();
}

struct opening {
    struct fixture *f;
    const char *item;
    atomic_bool *stop;
    uint64_t opened, wrong;
};

static void *
open_on(void *self)
{
    struct opening *o = self;
    struct bh_err err;

    while (!atomic_load(o->stop)) {
        char memory[64];
        struct bh_buf plain;

        bh_buf_init_fixed(&plain, memory, sizeof memory);
        if (bh_keys_unseal(o->f->keys, slice_of(o->item), &plain, &err) != BH_OK || plain.length != 4
            || memcmp(memory, "text", 4) != 0)
            o->wrong++;
        o->opened++;
    }
    return NULL;
}

/* The tree grows, and more keys are in use than stand unwrapped, while others open. */
static void
opens_beside_the_owner(void **state)
{
    enum { THREADS = 3, TENANTS = 700 };
    struct fixture *f = *state;
    struct opening openings[THREADS];
    pthread_t threads[THREADS];
    atomic_bool stop = false;
    const char *item = keys_seal(f, audit_3, "text");

    for (int i = 0; i < THREADS; i++) {
        openings[i] = (struct opening){ f, item, &stop, 0, 0 };
        assert_int_equal(pthread_create(&threads[i], NULL, open_on, &openings[i]), 0);
    }
    for (uint32_t tenant = 10; tenant < 10 + TENANTS; tenant++)
        (void)keys_seal(f, (struct bh_key_use){ BH_KEY_AUDIT, { tenant }, NOV }, "other");
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        BH_CHECK_EQ("wrong", openings[i].wrong, 0);
    }
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, keys_set_up, keys_tear_down)
    TEST(seals_and_opens),
    TEST(makes_keys_as_needed),
    TEST(refuses_damaged_items),
    TEST(a_destroyed_key_opens_nothing),
    TEST(a_rolled_back_key_never_was),
    TEST(rotates),
    TEST(refuses_moved_rows),
    TEST(keeps_texts),
    TEST(opens_beside_the_owner),
};
BH_TEST_MAIN(tests)
