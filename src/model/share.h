#ifndef BH_MODEL_SHARE_H
#define BH_MODEL_SHARE_H

#include "base/err.h"
#include "model/geometry.h"

/* Shares of one GPU: slots that jobs hold beside each other without MIG, each with a part of
 * the GPU's time and a cap on its memory (grade F, docs/shares.md).
 *
 * A share's size is in its profile number, so whatever carries a profile carries shares: parts
 * of compute, parts of memory, and how it gives way.  What is kept back for the driver and for
 * the context of each slot depends on the GPU's model (tables/share.tbl) and is no share's. */

enum bh_share_mode {
    BH_SHARE_WORK_CONSERVING, /* idle time of others may be used */
    BH_SHARE_HARD,            /* never more than the share */
    BH_SHARE_LATENCY,         /* as the first, and its turn comes sooner: interactive jobs */
    BH_SHARE_MULTIPLEXED,     /* whole-GPU quanta, one job after another */
    BH_SHARE_MODES
};

/* What is done about a job that has more GPU memory than its share allows, as the driver sees it:
 * a process of it goes round the shim. */
enum bh_over_cap {
    BH_OVER_CAP_WARN,     /* its people are notified */
    BH_OVER_CAP_THROTTLE, /* and it gets a tenth of its turns until it has given it back */
    BH_OVER_CAP_STOP,     /* and it is ended */
    BH_OVER_CAPS
};

/* What managed memory (cuMemAllocManaged) of a share is: it is on the GPU or in main memory, as
 * the driver moves it, and the driver does not say how much of it is where. */
enum bh_managed {
    BH_MANAGED_CHARGE, /* all of it counts against the cap, wherever it is */
    BH_MANAGED_HOST,   /* it is main memory: none counts, and the cap does not bind it */
    BH_MANAGED_REFUSE, /* there is none: the device says that it does not support it */
    BH_MANAGEDS
};

/* What is done about a job that runs on its GPU out of its turns, by the driver's samples: a process
 * of it goes round the shim, so fewer turns would be nothing to it. */
enum bh_over_time {
    BH_OVER_TIME_WARN, /* its people are notified */
    BH_OVER_TIME_STOP, /* and it is ended */
    BH_OVER_TIMES
};

/* How a size that is no whole number of parts becomes one. */
enum bh_rounding {
    BH_ROUNDING_NONE, /* it is refused */
    BH_ROUNDING_UP,
    BH_ROUNDING_DOWN,
    BH_ROUNDINGS
};

extern const char *const bh_share_mode_names[BH_SHARE_MODES];
extern const char *const bh_over_cap_names[BH_OVER_CAPS];
extern const char *const bh_over_time_names[BH_OVER_TIMES];
extern const char *const bh_managed_names[BH_MANAGEDS];
extern const char *const bh_rounding_names[BH_ROUNDINGS];

enum {
    BH_GPU_SHARES_MAX = 32, /* on one GPU */
    BH_SHARE_NAME_MAX = 24,
    BH_SHARE_OVERSUBSCRIBE_MAX = 10, /* times the GPU's compute, at most */
};

/* Caps and charges are multiples of it. */
#define BH_SHARE_GRANULE_BYTES (UINT64_C(2) << 20)

struct bh_share {
    uint32_t compute, memory; /* parts, each 1 .. BH_GPU_PARTS */
    enum bh_share_mode mode;
};

/* ---- share_profile.c: a share as a profile number ---- */

/* Whether a share can be of that size and mode: some parts of both, and no more than a GPU has. */
bool bh_share_is_size(const struct bh_share *share);

bool bh_profile_is_share(bh_profile_id profile);

/* The number of a share of that size, and back.  False: the profile is no share, or a number
 * that no share has; nothing is stored. */
bh_profile_id bh_share_profile(const struct bh_share *share);
bool bh_share_get(bh_profile_id profile, struct bh_share *ret_share);

/* Whether it is a share that hands the whole GPU on: it is beside none but those of its own
 * team, between which there is no boundary. */
bool bh_share_is_multiplexed(bh_profile_id profile);

/* ---- share.c: what a shared GPU of a model holds ---- */

/* Parts of memory that a shared GPU of the model keeps back: for the driver, and for the
 * context of each slot.  Rounded up.  0 for a model that cannot be shared. */
uint32_t bh_share_reserve_parts(enum bh_gpu_model model);
uint32_t bh_share_context_parts(enum bh_gpu_model model);

/* The same context in bytes; 0 likewise. */
uint64_t bh_share_context_bytes(enum bh_gpu_model model);

/* Whether the model's constants are assumed, and not measured. */
bool bh_share_is_assumed(enum bh_gpu_model model);

/* The most bytes that the share's parts of the model's memory hold, in whole granules. */
uint64_t bh_share_cap_bytes(enum bh_gpu_model model, const struct bh_share *share);

/* A share as people write it. */
struct bh_share_words {
    const char *share;  /* "1/4", "0.25" or "25%" of a GPU's compute */
    const char *memory; /* "18Gi", or of the GPU's as above; NULL: what as many equal shares
                           as the compute allows can have each, rounded down to a part */
    enum bh_rounding rounding;
    enum bh_share_mode mode;
};

/* BH_INVALID: no amount; no whole number of parts, and no rounding is named; no such model.
 * BH_RANGE: it is nothing, or more than an empty GPU of the model has. */
BH_MUST_USE bh_rc bh_share_parse(enum bh_gpu_model model, const struct bh_share_words *words,
                                 struct bh_share *ret_share, struct bh_err *err);

/* A share's name: "1/4:18446Mi", "1/2:39870Mi+hard".  It says all of it on a GPU of the
 * model; where that is not known (NONE), memory is in parts: "1/4:950p". */
void bh_share_format(enum bh_gpu_model model, const struct bh_share *share, char ret_name[BH_SHARE_NAME_MAX]);

/* ---- on a GPU ---- */

/* Whether it may have that slot (0 .. BH_GPU_SHARES_MAX - 1) beside what stands there. */
bool bh_share_fits(const struct bh_occupancy *occupancy, enum bh_gpu_model model,
                   const struct bh_share *share, uint32_t slot);

/* Take or leave a slot, that fits or that it has. */
void bh_share_add(struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share,
                  uint32_t slot);
void bh_share_remove(struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share,
                     uint32_t slot);

/* How many more of it could be added. */
uint32_t bh_share_capacity(const struct bh_occupancy *occupancy, enum bh_gpu_model model,
                           const struct bh_share *share);

#endif
