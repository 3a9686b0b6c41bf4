#include "daemon/owner/crash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/state/codec.h"
#include "base/assert.h"
#include "base/disk_space.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/time.h"
#include "daemon/state/quarantine.h"

enum { FILE_NAME_BYTES = 32, BLOCK_BYTES_MAX = 64 << 20 };

/* All that a failed assert needs, set aside before. */
static struct {
    const struct bh_core *core;
    struct bh_quarantine quarantine;
    int state_fd, folder_fd;
    char version[32];
    char json_name[FILE_NAME_BYTES], block_name[FILE_NAME_BYTES], new_name[FILE_NAME_BYTES];
    struct bh_crash crash;
    char json[BH_CRASH_JSON_MAX];
} crash;

static void
crash_copy_text(char *ret_text, size_t size, const char *text)
{
    size_t length = text ? strnlen(text, size - 1) : 0;

    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
}

/* The file appears whole, or not at all. */
static void
crash_write_file(const char *name, const void *bytes, size_t length)
{
    struct bh_err ignored;
    bool written;
    int fd;

    unlinkat(crash.folder_fd, crash.new_name, 0); /* left by a crash; O_EXCL keeps anything else out */
    fd = openat(crash.folder_fd, crash.new_name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    written = bh_fd_write_all(fd, bytes, length, &ignored) == BH_OK && fsync(fd) == 0;
    close(fd);
    if (written && renameat(crash.folder_fd, crash.new_name, crash.folder_fd, name) == 0)
        fsync(crash.folder_fd);
    else
        unlinkat(crash.folder_fd, crash.new_name, 0);
}

static void
crash_describe_event(struct bh_crash *to)
{
    struct bh_buf json;

    bh_buf_init_fixed(&json, to->event, sizeof to->event);
    bh_codec_put_event(&json, crash.core->stepping);
    if (!bh_buf_text(&json))
        to->event[0] = '\0';
}

static void
crash_describe(const struct bh_work *work, const struct bh_assert_failure *failure, struct bh_crash *to)
{
    struct bh_buf place;

    to->at_ns = bh_time_now();
    to->kind = work->kind;
    crash_copy_text(to->version, sizeof to->version, crash.version);
    crash_copy_text(to->assertion, sizeof to->assertion, failure->condition);
    bh_buf_init_fixed(&place, to->place, sizeof to->place);
    bh_buf_puts(&place, failure->file);
    bh_buf_putc(&place, ':');
    bh_buf_put_u64(&place, (uint64_t)failure->line);
    if (!bh_buf_text(&place))
        to->place[0] = '\0';
    crash_copy_text(to->operation, sizeof to->operation, work->operation);
    crash_copy_text(to->socket, sizeof to->socket, work->socket);
    to->principal = work->principal;
    to->uid = work->uid;
    to->tenant_id = work->tenant;
    to->message = work->message;
    to->record = work->kind == BH_WORK_REPLAY ? work->record : crash.core->journal.next_seq;
    if (work->kind == BH_WORK_REQUEST)
        to->keys = bh_work_keys_of(work, crash.core->crypto);
    if (work->owner && crash.core->stepping)
        crash_describe_event(to);
}

/* The block is whole only where no other thread steps the engine now. */
static void
crash_write_block(void)
{
    const struct bh_state *state = &crash.core->state;
    struct bh_disk_space space = bh_disk_space_of(crash.folder_fd);

    if (state->block && state->bytes <= BLOCK_BYTES_MAX
        && bh_disk_space_is_left(&space, bh_disk_space_reserved(&space), state->bytes))
        crash_write_file(crash.block_name, state->block, state->bytes);
}

static bool
crash_open_folder(void)
{
    mkdirat(crash.state_fd, "crash", 0700);
    crash.folder_fd = openat(crash.state_fd, "crash", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return crash.folder_fd >= 0 && fsync(crash.state_fd) == 0;
}

/* The description first: without it the work is done again. */
static void
crash_write(const struct bh_assert_failure *failure)
{
    const struct bh_work *work = bh_work_get();
    struct bh_buf json;

    if (!crash_open_folder())
        return;
    crash_describe(work, failure, &crash.crash);
    bh_buf_init_fixed(&json, crash.json, sizeof crash.json);
    bh_json_encode(&json, &bh_crash_fields, &crash.crash);
    crash_write_file(crash.json_name, json.bytes, json.length);
    if (work->owner)
        crash_write_block();
}

bh_rc
bh_crash_open(struct bh_core *core, const char *version, struct bh_err *err)
{
    const struct bh_quarantine *quarantine = &crash.quarantine;
    char folder[4096];

    snprintf(folder, sizeof folder, "%s/crash", core->config->state_dir);
    crash.state_fd = open(core->config->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (crash.state_fd < 0)
        return bh_err_errno(err, "open %s", core->config->state_dir);
    bh_quarantine_load(&crash.quarantine, folder, version, core->crypto, bh_time_now());
    crash.core = core;
    crash_copy_text(crash.version, sizeof crash.version, version);
    snprintf(crash.json_name, sizeof crash.json_name, "assert-%02u.json", quarantine->next);
    snprintf(crash.block_name, sizeof crash.block_name, "assert-%02u.block", quarantine->next);
    snprintf(crash.new_name, sizeof crash.new_name, "assert-%02u.new", quarantine->next);
    core->quarantine = quarantine;
    if (quarantine->count > 0)
        bh_log(ASSERT_FAILED, BH_STR("where", quarantine->crashes[quarantine->count - 1].place),
               BH_STR("work", bh_work_kind_names[quarantine->crashes[quarantine->count - 1].kind]),
               BH_STR("folder", folder), BH_U64("count", quarantine->count));
    bh_assert_on_failure(crash_write);
    return bh_quarantine_check_replay(quarantine, err);
}
