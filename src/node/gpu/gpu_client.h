#ifndef BH_NODE_GPU_GPU_CLIENT_H
#define BH_NODE_GPU_GPU_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/time.h"
#include "ports/device.h"

/* The node's side of the gpu children: programs (bulkhead-gpu) that hold the driver, so that a driver call
 * that never returns costs a child and not the node.
 *
 * One child answers requests, and for each GPU another one waits for its events and opens no other GPU: when
 * one GPU is reset or changes its mode, no event of the others is lost.  Calls block the caller, the node's
 * only thread, until the child answered or the deadline passed.  A child that misses its deadline is killed
 * and abandoned.  It may sit in the kernel where SIGKILL does nothing, so the node does not wait for it, and
 * reaps it whenever it ends.  The next call starts a fresh one, while at most BH_GPU_ABANDONED_MAX abandoned
 * ones are left. */
struct bh_gpu_client;

enum { BH_GPU_ABANDONED_MAX = 4, BH_GPU_HIDDEN_MAX = 64, BH_GPU_WATCHED_MAX = 64 };

#define BH_GPU_READ_DEADLINE (5 * BH_NS_PER_S)
#define BH_GPU_CHANGE_DEADLINE (10 * BH_NS_PER_S)

/* All texts are copied. */
struct bh_gpu_client_options {
    const char *program;    /* the bulkhead-gpu program */
    const char *library;    /* path of libnvidia-ml.so.1, the vendor's or the simulated one */
    const char *proc_root;  /* "/proc", or the simulated driver's; NULL: "/proc" */
    const char *const *env; /* the child's whole environment, ends with NULL; NULL: empty */
    bh_ns read_deadline;    /* scan, processes; 0: bh_gpu_read_deadline of the other */
    bh_ns change_deadline;  /* set_mig, carve, destroy; 0: BH_GPU_CHANGE_DEADLINE */
};

/* How long reads may take where changes may take `change`: half of it, since the node's loop
 * waits, and never less than BH_GPU_READ_DEADLINE: a driver wakes its GPUs one by one when it is
 * first asked, however soon a hang in a change shall be noticed. */
bh_ns bh_gpu_read_deadline(bh_ns change);

/* A client without children: they are started when first needed.  Owned by the caller. */
BH_MUST_USE struct bh_gpu_client *bh_gpu_client_new(const struct bh_gpu_client_options *options);

/* Ends the children (SIGKILL), waits at most half a second for them to go, and frees the
 * client; abandoned children stay init's. */
void bh_gpu_client_free(struct bh_gpu_client *client);
BH_AUTO_DEFINE(struct bh_gpu_client *, bh_gpu_client_free)

/* The GPUs behind the request child as a device port; valid as long as the client.  Its results are those of
 * ports/device.h, and
 *   BH_UNCERTAIN    the child missed its deadline or died in the middle of the call:
 *                   scan to learn what became of it.  bh_gpu_child_died says which
 *   BH_UNAVAILABLE  no driver, or too many abandoned children
 * Lists live in the arena given.  next_event reads from the event children; with `wait` 0 it answers
 * BH_TIMEOUT at once when there is none.  close does nothing: the client is freed with bh_gpu_client_free. */
struct bh_device bh_gpu_client_device(struct bh_gpu_client *client);

/* Whether `err` says that a child died in the middle of a call, or missed its deadline for want of
 * CPU time (node/gpu/cpu_wait.h), which says nothing about the GPU; else a missed deadline, or the
 * driver's own, is a GPU that hangs. */
bool bh_gpu_child_died(const struct bh_err *err);

/* A scan with sensors (`gpu` ""), or the health of a GPU, asked without waiting, by a child of its own; one
 * question at a time.  BH_UNAVAILABLE: no child can be started; BH_NOT_FOUND: no GPU's name. */
struct bh_gpu_found {
    struct bh_inventory inventory;
    struct bh_device_health health;
};
BH_MUST_USE bh_rc bh_gpu_client_request(struct bh_gpu_client *client, const char *gpu, struct bh_err *err);

/* Its answer: `ret_waits`, it has not come and is still waited for; else as the port's call.
 * Lists live in the arena. */
BH_MUST_USE bh_rc bh_gpu_client_receive(struct bh_gpu_client *client, struct bh_arena *arena,
                                        struct bh_gpu_found *ret_found, bool *ret_waits, struct bh_err *err);

/* For poll: readable when there is something to take, -1 when nothing is asked; and until when
 * (monotonic) the answer is waited for. */
int bh_gpu_client_response_fd(const struct bh_gpu_client *client);
bh_ns bh_gpu_client_response_until(const struct bh_gpu_client *client);

/* From now on wait for events of that GPU, by the minor of its device node; more than
 * BH_GPU_WATCHED_MAX are not watched.  A scan does this for each GPU that it finds. */
void bh_gpu_client_watch(struct bh_gpu_client *client, const char *gpu, uint32_t minor);

/* Descriptors to poll for reading (POLLIN), and how many; when one is readable, call next_event of the port
 * with `wait` 0 until it fails (BH_TIMEOUT: none left; BH_UNAVAILABLE: a child ended, or none runs).  Starts
 * the children of watched GPUs that do not run, each at most once in BH_GPU_EVENTS_RESTART.  Ask before every
 * poll: the numbers change when a child was replaced. */
#define BH_GPU_EVENTS_RESTART (5 * BH_NS_PER_S)
uint32_t bh_gpu_client_event_fds(struct bh_gpu_client *client, int ret_fds[BH_GPU_WATCHED_MAX]);

/* End the children that have these GPUs open (by their minors, /dev/nvidiaN), and wait a moment until they
 * have ended.  From now on none opens these GPUs, so that no program of the node holds one while it is reset;
 * the others stay in use and watched.  `count` 0: all are read and watched again. */
void bh_gpu_client_hide(struct bh_gpu_client *client, const uint32_t *minors, uint32_t count);

/* Reap abandoned children that have gone; cheap, call it at every turn of the loop (the
 * node must not wait for any pid it did not start itself).  How many still have not. */
uint32_t bh_gpu_client_reap(struct bh_gpu_client *client);

#endif
