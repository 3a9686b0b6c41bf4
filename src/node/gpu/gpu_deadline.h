#ifndef BH_NODE_GPU_GPU_DEADLINE_H
#define BH_NODE_GPU_GPU_DEADLINE_H

#include "node/gpu/gpu_internal.h"
#include "node/gpu/gpu_message.h"

/* A driver call that hangs costs its child: it is asked with a deadline, killed and abandoned. */

/* A call on its way: the request, and where the answer goes. */
struct bh_gpu_call {
    enum bh_gpu_message_kind kind;
    struct bh_gpu_request ask;
    struct bh_gpu_response answer;
    struct bh_arena *arena; /* where the answer's lists live */
};

/* Ask the child that answers, within the deadline of that kind of call; one that misses it is killed
 * and abandoned.  As bh_gpu_client_device says. */
BH_MUST_USE bh_rc bh_gpu_ask(struct bh_gpu_client *client, struct bh_gpu_call *request, struct bh_err *err);

/* The answer to the question that the surveying child has; as bh_gpu_client_receive. */
BH_MUST_USE bh_rc bh_gpu_take_answer(struct bh_gpu_client *client, struct bh_arena *arena,
                                     struct bh_gpu_response *ret_answer, bool *ret_waits, struct bh_err *err);

/* Wait until a frame came.  BH_TIMEOUT, BH_UNAVAILABLE (closed), BH_INVALID, BH_IO. */
BH_MUST_USE bh_rc bh_gpu_await_frame(struct bh_link *link, bh_ns deadline, struct bh_frame *ret_frame,
                                     struct bh_err *err);

int bh_gpu_ms_left(bh_ns deadline);

#endif
