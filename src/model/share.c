#include "model/share.h"

#include <inttypes.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/num.h"

enum { SHARE_ASSUMED_RESERVE = 1, SHARE_ASSUMED_CONTEXT = 2 };

const char *const bh_share_mode_names[BH_SHARE_MODES] = {
    [BH_SHARE_WORK_CONSERVING] = "work_conserving",
    [BH_SHARE_HARD] = "hard",
    [BH_SHARE_LATENCY] = "latency",
    [BH_SHARE_MULTIPLEXED] = "multiplexed",
};

const char *const bh_over_cap_names[BH_OVER_CAPS] = {
    [BH_OVER_CAP_WARN] = "warn",
    [BH_OVER_CAP_THROTTLE] = "throttle",
    [BH_OVER_CAP_STOP] = "stop",
};

const char *const bh_managed_names[BH_MANAGEDS] = {
    [BH_MANAGED_CHARGE] = "charge",
    [BH_MANAGED_HOST] = "host",
    [BH_MANAGED_REFUSE] = "refuse",
};

const char *const bh_over_time_names[BH_OVER_TIMES] = {
    [BH_OVER_TIME_WARN] = "warn",
    [BH_OVER_TIME_STOP] = "stop",
};

const char *const bh_rounding_names[BH_ROUNDINGS] = {
    [BH_ROUNDING_NONE] = "none",
    [BH_ROUNDING_UP] = "up",
    [BH_ROUNDING_DOWN] = "down",
};

/* As they end a name, so that the longest still has room. */
static const char *const suffixes[BH_SHARE_MODES] = {
    [BH_SHARE_WORK_CONSERVING] = "",
    [BH_SHARE_HARD] = "+hard",
    [BH_SHARE_LATENCY] = "+lat",
    [BH_SHARE_MULTIPLEXED] = "+mux",
};

static const struct {
    uint32_t reserve_mib, context_mib, assumed;
} kept_back[BH_GPU_MODELS] = {
#define SHARE_MODEL(id, reserve, context, unsure) [BH_GPU_##id] = { reserve, context, unsure },
#include "tables/share.tbl"
#undef SHARE_MODEL
};

/* ---- what is kept back ---- */

static uint32_t
share_parts_of_mib(enum bh_gpu_model model, uint32_t mib)
{
    const struct bh_model_facts *facts = bh_model_facts(model);

    if (!facts || mib == 0)
        return 0;
    return (uint32_t)(((uint64_t)mib * BH_GPU_PARTS + facts->memory_mib - 1) / facts->memory_mib);
}

uint32_t
bh_share_reserve_parts(enum bh_gpu_model model)
{
    return share_parts_of_mib(model, kept_back[model].reserve_mib);
}

uint32_t
bh_share_context_parts(enum bh_gpu_model model)
{
    return share_parts_of_mib(model, kept_back[model].context_mib);
}

uint64_t
bh_share_context_bytes(enum bh_gpu_model model)
{
    return (uint64_t)kept_back[model].context_mib << 20;
}

bool
bh_share_is_assumed(enum bh_gpu_model model)
{
    return kept_back[model].assumed != 0;
}

uint64_t
bh_share_cap_bytes(enum bh_gpu_model model, const struct bh_share *share)
{
    const struct bh_model_facts *facts = bh_model_facts(model);
    uint64_t bytes = facts ? ((uint64_t)facts->memory_mib << 20) * share->memory / BH_GPU_PARTS : 0;

    return bytes - bytes % BH_SHARE_GRANULE_BYTES;
}

/* What shares may have of an empty GPU's memory, their contexts included. */
static uint32_t
share_sellable(enum bh_gpu_model model)
{
    uint32_t reserve = bh_share_reserve_parts(model);

    return bh_share_context_parts(model) ? BH_GPU_PARTS - reserve : 0;
}

/* ---- on a GPU ---- */

bool
bh_share_fits(const struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share,
              uint32_t slot)
{
    if (slot >= BH_GPU_SHARES_MAX || occupancy->shares >> slot & 1)
        return false;
    if (occupancy->units || (occupancy->whole && !occupancy->shared))
        return false;
    if (occupancy->share_compute + share->compute > occupancy->share_limit)
        return false;
    return occupancy->share_memory + share->memory + bh_share_context_parts(model) <= share_sellable(model);
}

void
bh_share_add(struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share,
             uint32_t slot)
{
    BH_ASSERT(slot < BH_GPU_SHARES_MAX);
    BH_ASSERT(!(occupancy->shares >> slot & 1));
    occupancy->shares |= UINT32_C(1) << slot;
    occupancy->share_compute += share->compute;
    occupancy->share_memory += share->memory + bh_share_context_parts(model);
    occupancy->whole = occupancy->shared = true;
}

void
bh_share_remove(struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share,
                uint32_t slot)
{
    uint32_t memory = share->memory + bh_share_context_parts(model);

    BH_ASSERT(slot < BH_GPU_SHARES_MAX && occupancy->shares >> slot & 1);
    BH_ASSERT(occupancy->share_compute >= share->compute && occupancy->share_memory >= memory);
    occupancy->shares &= ~(UINT32_C(1) << slot);
    occupancy->share_compute -= share->compute;
    occupancy->share_memory -= memory;
    occupancy->whole = occupancy->shared = occupancy->shares != 0;
}

static uint32_t
share_least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t
bh_share_capacity(const struct bh_occupancy *occupancy, enum bh_gpu_model model, const struct bh_share *share)
{
    uint32_t free_slots = ~occupancy->shares, each, room;

    if (free_slots == 0 || !bh_share_fits(occupancy, model, share, (uint32_t)__builtin_ctz(free_slots)))
        return 0;
    each = share->memory + bh_share_context_parts(model);
    room = (occupancy->share_limit - occupancy->share_compute) / share->compute;
    room = share_least(room, (share_sellable(model) - occupancy->share_memory) / each);
    return share_least(room, (uint32_t)__builtin_popcount(free_slots));
}

/* ---- words ---- */

/* "25%" as "25/100". */
static bool
share_is_percent(const char *text, char ret_fraction[40])
{
    size_t length = strlen(text);

    if (length < 2 || length > 20 || text[length - 1] != '%')
        return false;
    memcpy(ret_fraction, text, length - 1);
    memcpy(&ret_fraction[length - 1], "/100", sizeof "/100");
    return true;
}

/* A number of 4200 parts; one between two is rounded as was said. */
static bh_rc
share_parse_fraction(const char *what, const char *text, uint64_t *ret_parts, struct bh_err *err)
{
    char fraction[40];
    bh_rc rc =
        bh_parse_parts(share_is_percent(text, fraction) ? fraction : text, BH_GPU_PARTS, ret_parts, err);

    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", what);
}

/* Bytes as parts of the model's memory, exactly or rounded as was said. */
static bh_rc
share_parse_bytes(enum bh_gpu_model model, const struct bh_share_words *words, uint64_t *ret_parts,
                  struct bh_err *err)
{
    uint64_t whole = (uint64_t)bh_model_facts(model)->memory_mib << 20, bytes, parts;
    bh_rc rc = bh_parse_bytes(words->memory, &bytes, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "memory");
    if (bytes > whole)
        return bh_err_set(err, BH_RANGE, "memory: %s has no %.20s", bh_model_facts(model)->name,
                          words->memory);
    parts = bytes * BH_GPU_PARTS / whole;
    if (bytes * BH_GPU_PARTS % whole) {
        if (words->rounding == BH_ROUNDING_NONE) {
            bh_err_set(err, BH_INVALID, "memory: %.20s is not a whole number of parts of %s's %u MiB",
                       words->memory, bh_model_facts(model)->name, bh_model_facts(model)->memory_mib);
            return bh_err_hint(err, "set rounding: up for %" PRIu64 " of %d parts, or down for %" PRIu64,
                               parts + 1, BH_GPU_PARTS, parts);
        }
        parts += words->rounding == BH_ROUNDING_UP;
    }
    *ret_parts = parts;
    return BH_OK;
}

/* As many equal shares as the compute allows, side by side. */
static uint64_t
share_even_memory(enum bh_gpu_model model, uint64_t compute)
{
    uint64_t slots = compute ? BH_GPU_PARTS / compute : 0, each;

    slots = slots > BH_GPU_SHARES_MAX ? BH_GPU_SHARES_MAX : slots;
    each = slots ? share_sellable(model) / slots : 0;
    return each > bh_share_context_parts(model) ? each - bh_share_context_parts(model) : 0;
}

static bh_rc
share_parse_memory(enum bh_gpu_model model, const struct bh_share_words *words, uint64_t compute,
                   uint64_t *ret_parts, struct bh_err *err)
{
    char fraction[40];

    if (!words->memory)
        *ret_parts = share_even_memory(model, compute);
    else if (share_is_percent(words->memory, fraction) || strchr(words->memory, '/'))
        return share_parse_fraction("memory", words->memory, ret_parts, err);
    else
        return share_parse_bytes(model, words, ret_parts, err);
    return BH_OK;
}

bh_rc
bh_share_parse(enum bh_gpu_model model, const struct bh_share_words *words, struct bh_share *ret_share,
               struct bh_err *err)
{
    uint64_t compute, memory;
    bh_rc rc;

    if (share_sellable(model) == 0)
        return bh_err_set(err, BH_INVALID, "this model cannot be shared");
    rc = share_parse_fraction("share", words->share, &compute, err);
    if (rc != BH_OK)
        return rc;
    rc = share_parse_memory(model, words, compute, &memory, err);
    if (rc != BH_OK)
        return rc;
    if (compute == 0 || compute > BH_GPU_PARTS)
        return bh_err_set(err, BH_RANGE, "share: %.20s of a GPU", words->share);
    if (memory == 0 || memory + bh_share_context_parts(model) > share_sellable(model)) {
        bh_err_set(err, BH_RANGE, "memory: an empty %s has %u of %d parts for one share",
                   bh_model_facts(model)->name, share_sellable(model) - bh_share_context_parts(model),
                   BH_GPU_PARTS);
        return bh_err_hint(err, "the rest is the driver's and the context's (docs/shares.md)");
    }
    *ret_share = (struct bh_share){ (uint32_t)compute, (uint32_t)memory, words->mode };
    return BH_OK;
}

static uint32_t
share_common(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* A name's next characters; it stays ended. */
static void
share_put_text(char name[BH_SHARE_NAME_MAX], uint32_t *length, const char *text)
{
    size_t more = strlen(text);

    BH_ASSERT(*length + more < BH_SHARE_NAME_MAX);
    memcpy(&name[*length], text, more + 1);
    *length += (uint32_t)more;
}

static void
share_put_number(char name[BH_SHARE_NAME_MAX], uint32_t *length, uint64_t number)
{
    char digits[40];

    bh_part_ns_format(number, digits);
    share_put_text(name, length, digits);
}

void
bh_share_format(enum bh_gpu_model model, const struct bh_share *share, char ret_name[BH_SHARE_NAME_MAX])
{
    uint32_t divisor = share_common(share->compute, BH_GPU_PARTS), length = 0;

    BH_ASSERT(bh_share_is_size(share));
    share_put_number(ret_name, &length, share->compute / divisor);
    share_put_text(ret_name, &length, "/");
    share_put_number(ret_name, &length, BH_GPU_PARTS / divisor);
    share_put_text(ret_name, &length, ":");
    share_put_number(ret_name, &length, model ? bh_share_cap_bytes(model, share) >> 20 : share->memory);
    share_put_text(ret_name, &length, model ? "Mi" : "p");
    share_put_text(ret_name, &length, suffixes[share->mode]);
}
