#ifndef BH_NODE_SESSION_NODE_FIXTURE_TEST_H
#define BH_NODE_SESSION_NODE_FIXTURE_TEST_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/arena.h"
#include "base/test.h"
#include "wire/frame_io.h"
#include "wire/message.h"

/* A bulkhead-node of its own for a test: in a temporary folder, on the simulated driver,
 * driven over its socket.  Tests only: what does not work fails the running test. */

enum { TEST_PATH = 256, TEST_INBOX_MAX = 64, TEST_TIMEOUT_MS = 30000 };

struct test_message {
    uint32_t number;
    union {
        struct bh_msg_outcome outcome;
        struct bh_msg_ended ended;
        struct bh_msg_inventory inventory;
        struct bh_msg_samples samples;
        struct bh_msg_health health;
        struct bh_msg_traffic traffic;
        struct bh_msg_receipt receipt;
        struct bh_msg_verdict verdict;
        struct bh_msg_notice notice;
        struct bh_msg_marks marks;
    };
};

struct test_node {
    const char *program, *simctl, *library; /* from the command line */
    char folder[TEST_PATH], socket[TEST_PATH], cgroup[64];
    char gpus[8][BH_UUID_MAX];
    pid_t pid;
    struct bh_link *link;
    struct bh_arena *arena;
    struct test_message inbox[TEST_INBOX_MAX]; /* read and not yet taken */
    uint32_t inbox_count;
    uint32_t well;  /* so often a GPU was said to answer, wanting nothing */
    uint64_t marks; /* said last */
    uint64_t order; /* last one used */
};

extern struct test_node the_node;

/* cmocka's set-up and tear-down.  Tear-down ends all jobs and wants a clean log of the
 * node: no sanitizer's complaint. */
int bh_test_set_up(void **state);
int bh_test_tear_down(void **state);
#define BH_NODE_TEST(name) cmocka_unit_test_setup_teardown(name, bh_test_set_up, bh_test_tear_down)

/* The body of main: PROGRAM NODE SIMCTL LIBRARY [FILTER].  The exit status; everything
 * is skipped where sandboxes cannot be made. */
int bh_test_main(int argc, char **argv, const struct CMUnitTest *tests, size_t count);

/* Run a program to its end, which must be well; replace a file. */
void bh_test_run(const char *const *argv);
void bh_test_write(const char *path, const char *text);

/* The text of a file below the test's folder, or of a job's log; "" without one.  Valid
 * until the next call. */
const char *bh_test_read(const char *name);
const char *bh_test_log(uint64_t lease);

/* Write node.conf with `more` behind the usual lines; start; end by a signal. */
void bh_test_write_conf(const struct test_node *node, const char *more);
void bh_test_node_start(struct test_node *node);
void bh_test_node_end(struct test_node *node, int number);

/* End it, and start it with `more` in its node.conf; greeted. */
void bh_test_restart(const char *more);

/* The same, with the simulated libcuda.so.1 and the memory behind it. */
void bh_test_restart_with_cuda(const char *more);

/* What stands before a Python of a job that loads it: one with AddressSanitizer in it must have
 * the sanitizer from the beginning. */
const char *bh_test_python_prelude(void);

/* bulkhead-simctl on the node's simulated server; `word` may be NULL. */
void bh_test_simctl(const char *command, const char *rule, const char *word);

/* Join a lease of shares as one of its processes would, and want its turn; the connection.  Then
 * whether it comes to have its turn, or none; of that it says that it is drained. */
int bh_test_share_join(uint64_t lease);
bool bh_test_share_slice_is(int connection, uint64_t lease, bool shut);

/* Make the file /run/bulkhead-sim/view/go, which jobs and helpers on the GPU of that number wait
 * for. */
void bh_test_release(uint32_t gpu);

/* Make <folder>/libexec, for libexec_dir of node.conf: the node's programs, and that shell script
 * in place of one of them, or of bulkhead-scrub. */
void bh_test_put_program(const char *name, const char *script);
void bh_test_put_helper(const char *script);

/* Connect, say HELLO and take the inventory; hang up. */
struct bh_msg_inventory bh_test_hello(struct test_node *node);
void bh_test_disconnect(struct test_node *node);

/* A GPU of an inventory, which must have it. */
const struct bh_msg_gpu *bh_test_gpu(const struct bh_msg_inventory *inventory, uint32_t index);

void bh_test_send(uint32_t number, const void *message);

/* Take the message of that kind, and about that order or lease; other messages are kept.
 * `within`: false when it does not come. */
struct test_message bh_test_receive(uint32_t number, uint64_t id);
bool bh_test_receive_within(uint32_t number, uint64_t id, int timeout_ms, struct test_message *ret);

/* Give an order and take its outcome. */
#define bh_test_order(kind, order_message)                                                                   \
    ({                                                                                                       \
        (order_message)->order = ++the_node.order;                                                           \
        bh_test_send(kind, order_message);                                                                   \
        bh_test_receive(BH_MSG_OUTCOME, the_node.order).outcome;                                             \
    })

struct test_job {
    uint64_t lease, partition; /* partition 0: none */
    const char *script, *cwd, *image;
    const char *env[4];
    uint64_t memory_bytes;
    uint32_t pids, uid, tenant;
};

/* Carve a partition of GPU number `gpu`, for that tenant. */
struct bh_msg_outcome bh_test_carve_for(uint32_t tenant, const struct bh_msg_carve *partition, uint32_t gpu);

/* Carve a partition of GPU number `gpu`. */
struct bh_msg_outcome bh_test_carve(uint64_t partition, uint32_t gpu, const char *profile, uint32_t start);

/* The START of a job that runs its script with /bin/sh; `args` has room for 3. */
struct bh_msg_start bh_test_start_message(const struct test_job *job, const char **args,
                                          struct bh_msg_mount *mounts);
struct bh_msg_outcome bh_test_start_job(const struct test_job *job);

/* Acknowledge, and wait until the node has read it: a connection that is cut may still have it unread, and
 * then the node reports again. */
void bh_test_acknowledge(const struct bh_msg_ack *ack);

/* Run to the end; the log is bh_test_log(lease). */
struct bh_msg_ended bh_test_run_job(const struct test_job *job);

/* Whether the job's log comes to hold that text. */
bool bh_test_wait_for_log(uint64_t lease, const char *text);

/* Wait until a condition holds, for what must come: false when it does not in half a minute (of
 * patience). */
#define bh_test_await(condition)                                                                             \
    ({                                                                                                       \
        int tries_ = bh_test_scaled(TEST_TIMEOUT_MS / 5);                                                    \
                                                                                                             \
        while (tries_ > 0 && !(condition)) {                                                                 \
            tries_--;                                                                                        \
            bh_time_sleep(5 * BH_NS_PER_MS);                                                                 \
        }                                                                                                    \
        tries_ > 0;                                                                                          \
    })

#endif
