#include "daemon/journal/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"

enum { FILE_BYTES_MAX = 128, PATH_SIZE = 4096 };
#define STORE_INTERVAL ((int64_t)BH_NS_PER_S)
#define LOG_PAUSE (10 * BH_NS_PER_S)

static void
clock_read_boot_id(char ret_id[BH_CLOCK_BOOT_MAX])
{
    char id[BH_PROC_BOOT_ID_MAX] = "";
    struct bh_err ignored;

    (void)!bh_proc_boot_id(id, &ignored);
    snprintf(ret_id, BH_CLOCK_BOOT_MAX, "%s", id);
}

/* ---- the file: "BOOT_ID BASE\n" ---- */

static void
clock_path_of(const struct bh_clock *clock, char ret_path[PATH_SIZE])
{
    snprintf(ret_path, PATH_SIZE, "%s/clock", clock->folder);
}

/* The text of a file here; "" where there is none or it cannot be read.
 *   BH_INVALID  the name is not a file's: a person put that there */
static bh_rc
clock_read(const char *path, char ret_text[FILE_BYTES_MAX], struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, ret_text, FILE_BYTES_MAX);
    rc = bh_file_read(path, FILE_BYTES_MAX - 1, &text, err);
    ret_text[rc == BH_OK ? text.length : 0] = '\0';
    return rc == BH_INVALID ? rc : BH_OK;
}

static bh_rc
clock_load(struct bh_clock *clock, bool *ret_fits, struct bh_err *err)
{
    char path[PATH_SIZE], text[FILE_BYTES_MAX], boot_id[BH_CLOCK_BOOT_MAX] = "";
    int64_t base;
    bh_rc rc;

    clock_path_of(clock, path);
    rc = clock_read(path, text, err);
    if (rc != BH_OK)
        return rc;
    *ret_fits = *clock->source.boot_id && sscanf(text, "%39s %" SCNd64, boot_id, &base) == 2
                && strcmp(boot_id, clock->source.boot_id) == 0;
    if (*ret_fits)
        clock->base_ns = clock->stored_ns = base;
    return BH_OK;
}

static void
clock_store(struct bh_clock *clock)
{
    char path[PATH_SIZE], text[FILE_BYTES_MAX];
    struct bh_err err;
    int length = snprintf(text, sizeof text, "%s %" PRId64 "\n", clock->source.boot_id, clock->base_ns);

    clock_path_of(clock, path);
    clock->stored_ns = clock->base_ns; /* also where the disk is full: again when it has moved */
    if (bh_file_replace(path, text, (size_t)length, 0600, &err) != BH_OK)
        bh_log(CLOCK_NOT_KEPT, BH_ERRLOG(&err));
}

/* ---- the file `heard`: "ENGINE_TIME\n" ----
 *
 * Not synced: what ends the daemon alone leaves it, and where the machine went too it may be older
 * or lost, which makes less of what was heard. */

static bh_rc
clock_load_saved(struct bh_clock *clock, struct bh_err *err)
{
    char path[PATH_SIZE], text[FILE_BYTES_MAX];
    bh_rc rc;

    snprintf(path, sizeof path, "%s/heard", clock->folder);
    rc = clock_read(path, text, err);
    if (rc != BH_OK)
        return rc;
    if (sscanf(text, "%" SCNu64, &clock->saved_ns) != 1)
        clock->saved_ns = 0;
    return BH_OK;
}

/* Over what it was, which is as long. */
static void
clock_save_time(struct bh_clock *clock, bh_ns boot)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    char path[PATH_SIZE], text[FILE_BYTES_MAX];
    struct bh_err ignored; /* older, then */
    int length = snprintf(text, sizeof text, "%020" PRIu64 "\n", bh_clock_now(clock));

    clock->save_from = boot + BH_CLOCK_SAVE_INTERVAL;
    snprintf(path, sizeof path, "%s/heard", clock->folder);
    if (bh_file_open(path, O_WRONLY | O_CREAT, 0600, &fd, &ignored) == BH_OK)
        (void)!bh_fd_write_all(fd, text, (size_t)length, &ignored);
}

/* ---- time ---- */

static int64_t
clock_wall_lead(const struct bh_clock *clock, bh_ns boot)
{
    return (int64_t)clock->source.wall() - clock->base_ns - (int64_t)boot;
}

bh_rc
bh_clock_open(struct bh_clock *clock, const char *folder, struct bh_err *err)
{
    bool fits = false;
    bh_rc rc;

    clock->folder = folder;
    if (!clock->source.boot) {
        clock->source.boot = bh_time_boot;
        clock->source.wall = bh_time_now;
        clock_read_boot_id(clock->source.boot_id);
    }
    clock->ticked_at = clock->source.boot();
    clock->offset_ns = 0;
    clock->log_from = clock->save_from = 0;
    rc = clock_load_saved(clock, err);
    if (rc == BH_OK)
        rc = clock_load(clock, &fits, err);
    if (rc != BH_OK || fits)
        return rc;
    clock->base_ns = (int64_t)clock->source.wall() - (int64_t)clock->ticked_at;
    clock_store(clock);
    return BH_OK;
}

bh_ns
bh_clock_now(const struct bh_clock *clock)
{
    return (bh_ns)(clock->base_ns + (int64_t)clock->source.boot());
}

void
bh_clock_raise(struct bh_clock *clock, bh_ns at)
{
    bh_ns now = bh_clock_now(clock);

    if (now >= at)
        return;
    clock->base_ns += (int64_t)(at - now);
    clock_store(clock);
}

bh_ns
bh_clock_last_saved(const struct bh_clock *clock)
{
    bh_ns now = bh_clock_now(clock), saved = clock->saved_ns + BH_CLOCK_SAVE_INTERVAL;

    return saved < now ? saved : now;
}

static int64_t
clock_within(int64_t value, int64_t most)
{
    return value > most ? most : value < -most ? -most : value;
}

static void
clock_log_step(int64_t step, int64_t lead)
{
    char by[32], ahead[32];

    snprintf(by, sizeof by, "%+" PRId64 " ms", step / (int64_t)BH_NS_PER_MS);
    snprintf(ahead, sizeof ahead, "%+" PRId64 " ms", lead / (int64_t)BH_NS_PER_MS);
    bh_log(CLOCK_STEPPED, BH_STR("by", by), BH_STR("ahead", ahead));
}

void
bh_clock_tick(struct bh_clock *clock)
{
    bh_ns boot = clock->source.boot();
    int64_t passed = (int64_t)(boot - clock->ticked_at), lead = clock_wall_lead(clock, boot);
    int64_t step = lead - clock->offset_ns;

    if (llabs(step) > (int64_t)BH_CLOCK_STEP && boot >= clock->log_from) {
        clock_log_step(step, lead);
        clock->log_from = boot + LOG_PAUSE;
    }
    clock->base_ns += clock_within(lead, passed / BH_CLOCK_SLEW);
    clock->offset_ns = clock_wall_lead(clock, boot);
    clock->ticked_at = boot;
    if (llabs(clock->base_ns - clock->stored_ns) >= STORE_INTERVAL)
        clock_store(clock);
    if (boot >= clock->save_from)
        clock_save_time(clock, boot);
}
