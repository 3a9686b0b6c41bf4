#ifndef BH_API_NODES_GPUS_H
#define BH_API_NODES_GPUS_H

#include "api/request/amounts.h"
#include "api/request/reply.h"

/* GET /v1/gpus; a bh_resource.  Jobs and tenants that the caller may not see are "another
 * tenant". */
bh_rc bh_gpus_list(struct bh_call *call, struct bh_err *err);

/* GET /v1/gpus/{id}, by its UUID; a bh_resource. */
bh_rc bh_gpus_get(struct bh_call *call, struct bh_err *err);

/* Parts as replies have them; the text is the caller's memory. */
struct bh_reply_gpu_parts bh_gpus_parts(struct bh_parts parts, char text[BH_AMOUNT_SIZE]);

/* What is unusable, by cause (`causes` has BH_UNUSABLES); the texts are in `texts`. */
struct bh_reply_gpu_unusable_by bh_gpus_unusable_by(const struct bh_parts *causes,
                                                    char texts[BH_UNUSABLES][BH_AMOUNT_SIZE]);

/* How a GPU is, in a word of docs/health.md: "ok", "lost", "needs_reboot". */
const char *bh_gpus_health(const struct bh_gpu_view *gpu);

#endif
