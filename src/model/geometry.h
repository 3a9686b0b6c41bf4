#ifndef BH_MODEL_GEOMETRY_H
#define BH_MODEL_GEOMETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "model/quantity.h"

/* How each GPU model divides: MIG profiles, where they may stand and which may
 * stand together.  Facts and sources: tables/mig.tbl.
 *
 * A placement occupies memory units [start, start + units) of its GPU.  Profiles
 * are combinable when their intervals do not meet, their compute slices sum to at
 * most the GPU's, no profile exceeds its own maximum, and at most one instance
 * holds the media engines (+me and its kin). */

enum bh_arch { MIG_ARCH_AMPERE = 7, MIG_ARCH_HOPPER = 9, MIG_ARCH_BLACKWELL = 10 };

enum bh_assumed {
    MIG_ASSUMED_PLACEMENT = 1,
    MIG_ASSUMED_MEMORY = 2,
    MIG_ASSUMED_SM = 4,
    MIG_ASSUMED_MEDIA = 8,
    MIG_ASSUMED_ID = 16
};

enum bh_gpu_model {
    BH_GPU_MODEL_NONE, /* not in the table: offered whole only */
#define MIG_MODEL(id, ...) BH_GPU_##id,
#define MIG_PROFILE(...)
#include "tables/mig.tbl"
#undef MIG_MODEL
#undef MIG_PROFILE
    BH_GPU_MODELS
};

struct bh_model_facts {
    const char *name;    /* "H100-80GB": what site files and people say */
    const char *product; /* what NVML calls it */
    uint32_t pci_device;
    enum bh_arch arch;
    uint32_t sm_count, memory_units, compute_slices, memory_mib;
};

/* A profile's number is its row in the table, stable while the table only grows;
 * BH_PROFILE_WHOLE stands for the GPU without MIG. */
typedef struct bh_profile_id {
    uint32_t v;
} bh_profile_id;
#define BH_PROFILE_NONE ((bh_profile_id){ 0 })
#define BH_PROFILE_WHOLE ((bh_profile_id){ 1 })

struct bh_profile {
    bh_profile_id id;
    enum bh_gpu_model model;
    const char *name; /* "1g.10gb" */
    uint32_t compute_slices, memory_units;
    uint32_t starts; /* bit s: may start at memory unit s */
    uint32_t most;   /* instances of it on one GPU */
    uint32_t memory_mib, sm_count;
    struct bh_parts parts; /* exact: slices/compute_slices and units/memory_units */
    bool media;            /* holds the only media engines */
    bool plain;            /* named by its size alone: no +me, +gfx or -me */
    uint32_t assumed;      /* enum bh_assumed bits */
};

const struct bh_model_facts *bh_model_facts(enum bh_gpu_model model);

/* By the site's name ("H100-80GB") or NVML's product name; NONE when unknown. */
enum bh_gpu_model bh_model_find(const char *name);
enum bh_gpu_model bh_model_by_product(const char *product);

/* By number; NULL for NONE, WHOLE and unknown numbers. */
const struct bh_profile *bh_profile_get(bh_profile_id id);

/* The profile of that name on that model, or NULL. */
const struct bh_profile *bh_profile_find(enum bh_gpu_model model, const char *name);

/* Profiles of a model in table order: the first, and how many follow it. */
const struct bh_profile *bh_profile_first(enum bh_gpu_model model, uint32_t *ret_count);

/* Parts a whole GPU, a profile or a share takes. */
struct bh_parts bh_profile_parts(bh_profile_id id);

/* What stands on one GPU: built by adding partitions. */
struct bh_occupancy {
    uint32_t units;         /* bit u: memory unit u is taken */
    uint32_t slices;        /* compute slices taken */
    uint8_t counts[16];     /* per profile of the model, in table order */
    uint32_t shares;        /* bit s: share slot s is taken (model/share.h) */
    uint32_t share_compute; /* parts of them together */
    uint32_t share_memory;  /* likewise, with a context for each slot */
    uint32_t share_limit;   /* what share_compute may be; 0: it is not to be shared */
    bool media, whole;      /* whole: by one partition, or by its shares */
    bool shared;            /* what takes it whole are shares */
};

/* Whether `profile` may be added at `start`; never when the GPU is taken whole. */
bool bh_occupancy_fits(const struct bh_occupancy *occupancy, const struct bh_profile *profile,
                       uint32_t start);

/* Add or take away a partition that fits, or stands there. */
void bh_occupancy_add(struct bh_occupancy *occupancy, const struct bh_profile *profile, uint32_t start);
void bh_occupancy_remove(struct bh_occupancy *occupancy, const struct bh_profile *profile, uint32_t start);

/* How many more instances of `profile` could be added at best, placing each at the
 * lowest legal start. */
uint32_t bh_occupancy_capacity(const struct bh_occupancy *occupancy, const struct bh_profile *profile);

/* Whether nothing more of the model's can be added: taken whole, or no memory unit or no
 * compute slice is free. */
bool bh_occupancy_is_full(const struct bh_occupancy *occupancy, enum bh_gpu_model model);

/* How broken up the free part is: over the model's plain profiles, the parts that
 * are free but that no instance of the profile can use, weighted by the profile's
 * size.  0 for an empty GPU; a placement is best where this grows least. */
uint64_t bh_occupancy_fragmentation(const struct bh_occupancy *occupancy, enum bh_gpu_model model);

#endif
