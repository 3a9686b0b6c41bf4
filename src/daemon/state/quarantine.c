#include "daemon/state/quarantine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/time.h"

#define MINUTE_NS (60 * BH_NS_PER_S)
#define HOUR_NS (60 * MINUTE_NS)
#define COUNTS_FOR_NS (24 * HOUR_NS)

enum { PATH_MAX_BYTES = 4096, REPLAY_MOST = 2 };

/* Failure number `from` begins a pause; each further one doubles it. */
struct pause {
    uint32_t from;
    uint64_t first_ns, longest_ns;
};

static const struct pause of_command = { 1, COUNTS_FOR_NS, COUNTS_FOR_NS };
static const struct pause of_caller = { 2, HOUR_NS, COUNTS_FOR_NS };
static const struct pause of_tenant = { 4, HOUR_NS, COUNTS_FOR_NS };
static const struct pause of_node = { 1, MINUTE_NS, HOUR_NS };
static const struct pause of_own = { 3, MINUTE_NS, HOUR_NS };

static const struct bh_field crash_fields[] = {
    BH_F(struct bh_crash, assertion, BH_FIELD_STR),
    BH_F(struct bh_crash, at_ns, BH_FIELD_NS),
    BH_F_AS(struct bh_crash, keys.caller, "caller", BH_FIELD_HEX),
    BH_F_AS(struct bh_crash, keys.command, "command", BH_FIELD_HEX),
    BH_F(struct bh_crash, event, BH_FIELD_STR),
    BH_F_ENUM(struct bh_crash, kind, bh_work_kind_names, .flags = BH_FIELD_REQUIRED),
    BH_F(struct bh_crash, message, BH_FIELD_U32),
    BH_F(struct bh_crash, operation, BH_FIELD_STR),
    BH_F(struct bh_crash, place, BH_FIELD_STR),
    BH_F(struct bh_crash, principal, BH_FIELD_U32),
    BH_F(struct bh_crash, record, BH_FIELD_U64),
    BH_F(struct bh_crash, socket, BH_FIELD_STR),
    BH_F_AS(struct bh_crash, keys.tenant, "tenant", BH_FIELD_HEX),
    BH_F(struct bh_crash, tenant_id, BH_FIELD_U32),
    BH_F(struct bh_crash, uid, BH_FIELD_U32),
    BH_F(struct bh_crash, version, BH_FIELD_STR),
};
const struct bh_fields bh_crash_fields = BH_FIELDS("crash", struct bh_crash, crash_fields);

/* ---- reading the folder ---- */

static void
quarantine_path(const char *folder, uint32_t number, const char *kind, char ret_path[PATH_MAX_BYTES])
{
    snprintf(ret_path, PATH_MAX_BYTES, "%s/assert-%02" PRIu32 ".%s", folder, number, kind);
}

/* False: there is no such file, or none that can be read. */
static bool
quarantine_read(const char *folder, uint32_t number, struct bh_crash *ret_crash)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    char path[PATH_MAX_BYTES];
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = BH_CRASH_JSON_MAX };
    struct bh_err ignored;

    quarantine_path(folder, number, "json", path);
    if (bh_file_read(path, BH_CRASH_JSON_MAX, &text, &ignored) != BH_OK)
        return false;
    return bh_json_decode(text.bytes, text.length, &bh_crash_fields, ret_crash, arena, &ignored) == BH_OK;
}

/* What the wall clock says is later than now counts as of now. */
static uint64_t
quarantine_age_ns(const struct bh_crash *crash, uint64_t now_ns)
{
    return now_ns > crash->at_ns ? now_ns - crash->at_ns : 0;
}

static int
quarantine_compare(const void *a, const void *b)
{
    const struct bh_crash *one = a, *other = b;

    return (one->at_ns > other->at_ns) - (one->at_ns < other->at_ns);
}

/* Blocks are large: few stay, and the next failure may add one. */
static void
quarantine_remove_blocks(const char *folder, const uint64_t at_ns[BH_CRASHES_MAX])
{
    char path[PATH_MAX_BYTES];

    for (uint32_t number = 0; number < BH_CRASHES_MAX; number++) {
        uint32_t newer = 0;

        for (uint32_t i = 0; i < BH_CRASHES_MAX; i++)
            newer += at_ns[i] > at_ns[number] || (at_ns[i] == at_ns[number] && i < number);
        quarantine_path(folder, number, "block", path);
        if (at_ns[number] == 0 || newer >= BH_CRASH_BLOCKS_MAX - 1)
            unlink(path);
    }
}

void
bh_quarantine_load(struct bh_quarantine *quarantine, const char *folder, const char *version,
                   const struct bh_crypto_ops *crypto, uint64_t now_ns)
{
    struct bh_crash *crashes = calloc(BH_CRASHES_MAX + 1, sizeof *crashes);
    uint64_t at_ns[BH_CRASHES_MAX] = { 0 };

    BH_ASSERT(crashes);
    *quarantine = (struct bh_quarantine){ .crypto = crypto, .crashes = crashes };
    for (uint32_t number = 0; number < BH_CRASHES_MAX; number++) {
        struct bh_crash *crash = &crashes[quarantine->count];

        if (!quarantine_read(folder, number, crash))
            continue;
        at_ns[number] = crash->at_ns;
        if (strcmp(crash->version, version) == 0 && quarantine_age_ns(crash, now_ns) < COUNTS_FOR_NS)
            quarantine->count++;
    }
    for (uint32_t number = 1; number < BH_CRASHES_MAX; number++)
        if (at_ns[number] < at_ns[quarantine->next])
            quarantine->next = number;
    qsort(crashes, quarantine->count, sizeof *crashes, quarantine_compare);
    quarantine_remove_blocks(folder, at_ns);
}

void
bh_quarantine_fini(struct bh_quarantine *quarantine)
{
    free(quarantine->crashes);
    *quarantine = (struct bh_quarantine){ .count = 0 };
}

/* ---- the rules ---- */

/* Failures of one kind: how many, and the newest. */
struct tally {
    uint32_t count;
    const struct bh_crash *newest;
};

static void
quarantine_add(struct tally *tally, const struct bh_crash *crash)
{
    tally->count++;
    tally->newest = crash;
}

/* What is left of the pause; 0: none. */
static uint64_t
quarantine_pause_ns(const struct tally *tally, const struct pause *pause, uint64_t now_ns)
{
    uint64_t pause_ns = pause->first_ns, age_ns;

    if (tally->count < pause->from)
        return 0;
    for (uint32_t n = pause->from; n < tally->count && pause_ns < pause->longest_ns; n++)
        pause_ns *= 2;
    if (pause_ns > pause->longest_ns)
        pause_ns = pause->longest_ns;
    age_ns = quarantine_age_ns(tally->newest, now_ns);
    return age_ns < pause_ns ? pause_ns - age_ns : 0;
}

static bool
quarantine_is_key(const uint8_t a[BH_WORK_KEY_BYTES], const uint8_t b[BH_WORK_KEY_BYTES])
{
    static const uint8_t none[BH_WORK_KEY_BYTES];

    return memcmp(a, b, BH_WORK_KEY_BYTES) == 0 && memcmp(a, none, BH_WORK_KEY_BYTES) != 0;
}

/* One line: what failed, how long this is refused, what to report. */
static bh_rc
quarantine_refuse(const char *what, const struct bh_crash *crash, uint64_t left_ns, struct bh_err *err)
{
    bh_err_set(err, BH_BUG,
               "%s made bulkheadd fail an internal check (%.80s): refused for %" PRIu64 " minutes", what,
               crash->place, left_ns / MINUTE_NS + 1);
    return bh_err_hint(err, "report it; the operator finds it in the folder crash of bulkheadd's state_dir, "
                            "and a different version tries again");
}

bh_rc
bh_quarantine_check(const struct bh_quarantine *quarantine, const struct bh_work *work, uint64_t now_ns,
                    struct bh_err *err)
{
    struct tally command = { 0 }, caller = { 0 }, tenant = { 0 };
    struct bh_work_keys keys;
    uint64_t left_ns;

    if (!quarantine || quarantine->count == 0 || work->kind != BH_WORK_REQUEST)
        return BH_OK;
    keys = bh_work_keys_of(work, quarantine->crypto);
    for (uint32_t i = 0; i < quarantine->count; i++) {
        const struct bh_crash *crash = &quarantine->crashes[i];

        if (quarantine_is_key(crash->keys.command, keys.command))
            quarantine_add(&command, crash);
        if (quarantine_is_key(crash->keys.caller, keys.caller))
            quarantine_add(&caller, crash);
        if (quarantine_is_key(crash->keys.tenant, keys.tenant))
            quarantine_add(&tenant, crash);
    }
    left_ns = quarantine_pause_ns(&command, &of_command, now_ns);
    if (left_ns)
        return quarantine_refuse("this very request", command.newest, left_ns, err);
    left_ns = quarantine_pause_ns(&caller, &of_caller, now_ns);
    if (left_ns)
        return quarantine_refuse("requests like this one of the same caller", caller.newest, left_ns, err);
    left_ns = quarantine_pause_ns(&tenant, &of_tenant, now_ns);
    if (left_ns)
        return quarantine_refuse("requests like this one of the same tenant", tenant.newest, left_ns, err);
    return BH_OK;
}

static struct tally
quarantine_count_kind(const struct bh_quarantine *quarantine, enum bh_work_kind kind)
{
    struct tally tally = { 0 };

    for (uint32_t i = 0; quarantine && i < quarantine->count; i++)
        if (quarantine->crashes[i].kind == kind)
            quarantine_add(&tally, &quarantine->crashes[i]);
    return tally;
}

bh_rc
bh_quarantine_check_replay(const struct bh_quarantine *quarantine, struct bh_err *err)
{
    struct tally replay = quarantine_count_kind(quarantine, BH_WORK_REPLAY);

    if (replay.count < REPLAY_MOST)
        return BH_OK;
    bh_err_set(err, BH_BUG, "record %" PRIu64 " fails an internal check when it is replayed: %.60s (%.60s)",
               replay.newest->record, replay.newest->assertion, replay.newest->place);
    return bh_err_hint(err,
                       "install the version that wrote the record, or a later one; to try this one again, "
                       "remove the folder crash of state_dir");
}

uint64_t
bh_quarantine_node_ns(const struct bh_quarantine *quarantine, const char *socket, uint64_t now_ns)
{
    struct tally node = { 0 };

    for (uint32_t i = 0; quarantine && i < quarantine->count; i++)
        if (quarantine->crashes[i].kind == BH_WORK_NODE && strcmp(quarantine->crashes[i].socket, socket) == 0)
            quarantine_add(&node, &quarantine->crashes[i]);
    return quarantine_pause_ns(&node, &of_node, now_ns);
}

uint64_t
bh_quarantine_own_ns(const struct bh_quarantine *quarantine, uint64_t now_ns)
{
    struct tally own = quarantine_count_kind(quarantine, BH_WORK_OWN);

    return quarantine_pause_ns(&own, &of_own, now_ns);
}
