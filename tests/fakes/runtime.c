#include "tests/fakes/runtime.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/proc.h"
#include "base/time.h"

enum { SANDBOXES_MAX = 64, PATH_SIZE = 512, SCRIPT_MAX = 1 << 20 };
#define TIMEOUT (2 * BH_NS_PER_S)

struct entry {
    char id[64], bundle[PATH_SIZE];
};

struct runtime_fake_fake {
    struct entry entries[SANDBOXES_MAX];
    char script[PATH_SIZE];
};

static struct entry *
fake_find(struct runtime_fake_fake *fake, const char *id)
{
    for (size_t i = 0; i < SANDBOXES_MAX; i++) {
        if (strcmp(fake->entries[i].id, id) == 0)
            return &fake->entries[i];
    }
    return NULL;
}

/* ---- preparing ---- */

static void
fake_put_quoted(struct bh_buf *out, const char *text)
{
    bh_buf_putc(out, '\'');
    for (; *text; text++) {
        if (*text == '\'')
            bh_buf_puts(out, "'\\''");
        else
            bh_buf_putc(out, *text);
    }
    bh_buf_puts(out, "' ");
}

/* The group is the shell's own, made by setsid, so that it can be signalled whole. */
static void
fake_put_script(struct bh_buf *out, const struct bh_sandbox *sandbox)
{
    char pid[PATH_SIZE];

    snprintf(pid, sizeof pid, "%s/pid", sandbox->bundle);
    bh_buf_puts(out, "echo $$ > ");
    fake_put_quoted(out, pid);
    bh_buf_puts(out, "; cd ");
    fake_put_quoted(out, sandbox->cwd);
    bh_buf_puts(out, "|| exit 127; exec env -i ");
    for (uint32_t i = 0; i < sandbox->env.count; i++)
        fake_put_quoted(out, sandbox->env.items[i]);
    for (uint32_t i = 0; i < sandbox->args.count; i++)
        fake_put_quoted(out, sandbox->args.items[i]);
    bh_buf_putc(out, '\n');
}

static bh_rc
fake_write_script(const struct bh_sandbox *sandbox, struct bh_err *err)
{
    char path[PATH_SIZE];
    struct bh_buf out;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/run", sandbox->bundle);
    bh_buf_init(&out, SCRIPT_MAX);
    fake_put_script(&out, sandbox);
    rc = out.overflow ? bh_err_set(err, BH_FULL, "the command is too long")
                      : bh_file_replace(path, out.bytes, out.length, 0700, err);
    bh_buf_fini(&out);
    return rc;
}

static bh_rc
fake_prepare(void *self, const struct bh_sandbox *sandbox, struct bh_err *err)
{
    struct runtime_fake_fake *fake = self;
    struct entry *entry = fake_find(fake, sandbox->id);
    bh_rc rc = fake_write_script(sandbox, err);

    if (rc != BH_OK)
        return rc;
    if (!entry)
        entry = fake_find(fake, "");
    if (!entry)
        return bh_err_set(err, BH_FULL, "more than %d sandboxes", SANDBOXES_MAX);
    snprintf(entry->id, sizeof entry->id, "%s", sandbox->id);
    snprintf(entry->bundle, sizeof entry->bundle, "%s", sandbox->bundle);
    return BH_OK;
}

static bh_rc
fake_command(void *self, const struct bh_sandbox *sandbox, const char *ret_argv[16], struct bh_err *err)
{
    struct runtime_fake_fake *fake = self;
    const char *words[] = { "setsid", "--wait", "/bin/sh", fake->script, NULL };

    if (snprintf(fake->script, sizeof fake->script, "%s/run", sandbox->bundle) >= PATH_SIZE)
        return bh_err_set(err, BH_INVALID, "path is too long: %.60s", sandbox->bundle);
    memcpy(ret_argv, words, sizeof words);
    return BH_OK;
}

/* ---- running ---- */

/* Dead but not yet waited for by its keeper, or gone. */
static bool
fake_is_zombie(pid_t pid)
{
    struct bh_proc_stat stat;
    struct bh_err ignored;

    return bh_proc_stat(pid, &stat, &ignored) != BH_OK || stat.state == 'Z' || stat.state == 'X';
}

/* The sandbox's process group, or 0 when it is gone. */
static pid_t
fake_group_of(struct runtime_fake_fake *fake, const char *id)
{
    const struct entry *entry = fake_find(fake, id);
    char path[PATH_SIZE + 8], memory[32];
    struct bh_buf text;
    struct bh_err ignored;
    pid_t group;

    if (!entry)
        return 0;
    snprintf(path, sizeof path, "%s/pid", entry->bundle);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    if (bh_file_read(path, sizeof memory - 1, &text, &ignored) != BH_OK)
        return 0;
    group = (pid_t)strtol(bh_buf_text(&text), NULL, 10);
    return group > 1 && kill(-group, 0) == 0 && !fake_is_zombie(group) ? group : 0;
}

static bh_rc
fake_processes(void *self, const char *id, pid_t *ret_pids, uint32_t max, uint32_t *ret_count,
               struct bh_err *err)
{
    pid_t group = fake_group_of(self, id);

    *ret_count = 0;
    if (group && max > 0)
        ret_pids[(*ret_count)++] = group;
    return BH_OK;
}

static bh_rc
fake_signal(void *self, const char *id, int number, struct bh_err *err)
{
    pid_t group = fake_group_of(self, id);

    if (group && kill(-group, number) != 0 && errno != ESRCH)
        return bh_err_errno(err, "signal sandbox %s", id);
    return BH_OK;
}

static bh_rc
fake_has(void *self, const char *id, pid_t pid, bool *ret_inside, struct bh_err *err)
{
    pid_t group = fake_group_of(self, id);

    *ret_inside = group > 0 && getpgid(pid) == group;
    return BH_OK;
}

static bh_rc
fake_freeze(void *self, const char *id, bool frozen, struct bh_err *err)
{
    if (!fake_group_of(self, id))
        return bh_err_set(err, BH_NOT_FOUND, "no sandbox %s", id);
    return fake_signal(self, id, frozen ? SIGSTOP : SIGCONT, err);
}

static bh_rc
fake_destroy(void *self, const char *id, struct bh_err *err)
{
    bh_ns deadline = bh_time_monotonic() + TIMEOUT;
    struct entry *entry = fake_find(self, id);

    while (fake_group_of(self, id)) {
        bh_rc rc = fake_signal(self, id, SIGKILL, err);

        if (rc != BH_OK)
            return rc;
        if (bh_time_monotonic() > deadline)
            return bh_err_set(err, BH_TIMEOUT, "sandbox %s does not end", id);
        bh_time_sleep(BH_NS_PER_MS);
    }
    if (entry)
        memset(entry, 0, sizeof *entry);
    return BH_OK;
}

/* Of the group's leader alone: enough for tests. */
static bh_rc
fake_usage(void *self, const char *id, struct bh_sandbox_usage *ret_usage, struct bh_err *err)
{
    struct bh_proc_stat stat;
    pid_t group = fake_group_of(self, id);
    bh_rc rc = group ? bh_proc_stat(group, &stat, err) : bh_err_set(err, BH_NOT_FOUND, "no sandbox %s", id);

    if (rc != BH_OK)
        return rc;
    *ret_usage = (struct bh_sandbox_usage){
        .cpu_ns = (stat.user_ticks + stat.system_ticks) * BH_NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK),
        .bytes = stat.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE),
        .peak_bytes = stat.resident_pages * (uint64_t)sysconf(_SC_PAGESIZE),
    };
    return BH_OK;
}

static const struct bh_runtime_ops fake_ops = {
    .name = "fake",
    .prepare = fake_prepare,
    .command = fake_command,
    .processes = fake_processes,
    .has = fake_has,
    .freeze = fake_freeze,
    .signal = fake_signal,
    .destroy = fake_destroy,
    .usage = fake_usage,
    .close = free,
};

bh_rc
bh_fake_open(struct bh_runtime *ret_runtime, struct bh_err *err)
{
    struct runtime_fake_fake *fake = calloc(1, sizeof *fake);

    if (!fake)
        return bh_err_set(err, BH_FULL, "out of memory");
    *ret_runtime = (struct bh_runtime){ &fake_ops, fake };
    return BH_OK;
}
