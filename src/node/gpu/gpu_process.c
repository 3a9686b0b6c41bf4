#include "node/gpu/gpu_process.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/process.h"

static void
gpu_child_assert(const struct bh_gpu_child *child)
{
    BH_ASSERT(child->pid >= 0 && (child->pid > 0) == (child->link != NULL));
}

void
bh_gpu_client_assert(const struct bh_gpu_client *client)
{
    BH_ASSERT(client->watcher_count <= BH_COUNT(client->watchers));
    BH_ASSERT(client->abandoned_count <= BH_COUNT(client->abandoned));
    BH_ASSERT(client->hidden_count <= BH_COUNT(client->hidden));
    BH_ASSERT(client->read_deadline > 0 && client->change_deadline > 0);
    BH_ASSERT(!client->asked || (client->asked_until && client->asked_call <= client->call));
    gpu_child_assert(&client->answering);
    gpu_child_assert(&client->surveying);
}

uint32_t
bh_gpu_client_reap(struct bh_gpu_client *client)
{
    uint32_t left = 0;

    bh_gpu_client_assert(client);
    for (uint32_t i = 0; i < client->abandoned_count; i++) {
        BH_ASSERT(client->abandoned[i] > 0);
        if (waitpid(client->abandoned[i], NULL, WNOHANG) == 0)
            client->abandoned[left++] = client->abandoned[i];
    }
    client->abandoned_count = left;
    return left;
}

void
bh_gpu_abandon(struct bh_gpu_client *client, struct bh_gpu_child *child)
{
    pid_t pid = child->pid;

    gpu_child_assert(child);
    if (pid == 0)
        return;
    bh_link_free(bh_steal(&child->link));
    child->pid = 0;
    kill(pid, SIGKILL);
    bh_gpu_client_reap(client);
    BH_ASSERT(client->abandoned_count < BH_COUNT(client->abandoned));
    client->abandoned[client->abandoned_count++] = pid;
}

/* Whether there is room for another child.  One that was just killed takes a moment to
 * go; one that hangs in the driver does not go in any. */
static bool
process_has_child_slot(struct bh_gpu_client *client)
{
    for (int turn = 0; turn < 20 && bh_gpu_client_reap(client) >= BH_GPU_ABANDONED_MAX; turn++)
        bh_time_sleep(5 * BH_NS_PER_MS);
    return client->abandoned_count < BH_GPU_ABANDONED_MAX;
}

/* The command line of a child, and its memory. */
struct process_words {
    const char *argv[BH_GPU_HIDDEN_MAX + 8];
    char hide[BH_GPU_HIDDEN_MAX][32], only[32];
};

static void
process_write_words(const struct bh_gpu_client *client, const struct bh_gpu_watcher *watcher,
                    struct process_words *words)
{
    const char *const fixed[] = { client->program, "--library", client->library, "--proc-root",
                                  client->proc_root };
    uint32_t count = BH_COUNT(fixed);

    memcpy(words->argv, fixed, sizeof fixed);
    for (uint32_t i = 0; i < client->hidden_count && !watcher; i++) {
        snprintf(words->hide[i], sizeof words->hide[i], "--hide=/dev/nvidia%u", client->hidden[i]);
        words->argv[count++] = words->hide[i];
    }
    if (watcher) {
        snprintf(words->only, sizeof words->only, "--only=/dev/nvidia%u", watcher->minor);
        words->argv[count++] = words->only;
        words->argv[count++] = "--events";
        words->argv[count++] = watcher->gpu;
    }
    words->argv[count] = NULL;
}

/* Only the socket, as descriptor 3, and standard error reach the child; the terminal's signals do
 * not reach it. */
static bh_rc
gpu_process_spawn(const struct bh_gpu_client *client, int socket, const struct bh_gpu_watcher *watcher,
                  pid_t *ret_pid, struct bh_err *err)
{
    struct process_words words;
    struct bh_process_options options = {
        .program = client->program,
        .argv = words.argv,
        .envp = (const char *const *)client->env,
        .fds = { { STDOUT_FILENO, STDERR_FILENO }, { STDERR_FILENO, STDERR_FILENO }, { 3, socket } },
        .fd_count = 3,
        .new_group = true,
    };

    process_write_words(client, watcher, &words);
    if (bh_process_start(&options, ret_pid, NULL, err) != BH_OK)
        return err->rc = BH_UNAVAILABLE;
    return BH_OK;
}

bh_rc
bh_gpu_start(struct bh_gpu_client *client, struct bh_gpu_child *child, const struct bh_gpu_watcher *watcher,
             struct bh_err *err)
{
    int pair[2];
    bh_rc rc;

    BH_ASSERT(child->pid == 0 && !child->link);
    if (!process_has_child_slot(client)) {
        bh_err_set(err, BH_UNAVAILABLE, "%u gpu children hang in the driver", client->abandoned_count);
        return bh_err_hint(err, "a driver that hangs needs a GPU reset or a reboot; see dmesg");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return bh_err_errno(err, "cannot make a socket pair for the gpu child");
    rc = gpu_process_spawn(client, pair[1], watcher, &child->pid, err);
    bh_fd_close(pair[1]);
    if (rc != BH_OK) {
        bh_fd_close(pair[0]);
        child->pid = 0;
        return rc;
    }
    child->link = bh_link_new(pair[0]);
    return BH_OK;
}

bool
bh_gpu_is_hidden(const struct bh_gpu_client *client, uint32_t minor)
{
    for (uint32_t i = 0; i < client->hidden_count; i++)
        if (client->hidden[i] == minor)
            return true;
    return false;
}
