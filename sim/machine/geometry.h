/* MIG geometry of the simulated boards: the rows of tables/mig.tbl and the
 * rules that follow from them.  Constant data; any thread. */
#ifndef BH_SIM_MACHINE_GEOMETRY_H
#define BH_SIM_MACHINE_GEOMETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sim_model {
    const char *name;    /* as the topology file writes it: "H100-80GB" */
    const char *product; /* as NVML names the board */
    uint32_t pci_device, arch, cc_major, cc_minor, sms;
    uint32_t units, slices; /* memory units and compute slices of the board */
    uint64_t memory_mib;
    uint32_t board_w;
    const char *least_driver;
};

struct sim_profile {
    uint32_t model; /* index of its model */
    const char *name;
    uint32_t number, id; /* NVML's profile number; the driver's profile id */
    uint32_t slices, units, starts, most;
    uint64_t memory_mib;
    uint32_t sms, nvdec, nvenc, copy, jpeg, ofa;
};

/* A size of compute instance inside a GPU instance. */
struct sim_ci_profile {
    uint32_t number; /* NVML's number, which is also the driver id */
    uint32_t slices, most, starts;
};

/* The model at `index`, or NULL past the last. */
const struct sim_model *sim_model_at(uint32_t index);

/* Index of the model that the topology file calls `name`, or -1. */
int sim_model_find(const char *name, size_t length);

/* The profile of `model` at position `index` (0, 1, ...), or NULL past the last. */
const struct sim_profile *sim_profile_at(uint32_t model, uint32_t index);

/* Position of the profile with this NVML number, or this driver id, or -1. */
int sim_profile_by_number(uint32_t model, uint32_t number);
int sim_profile_by_id(uint32_t model, uint32_t id);

/* May the profile start at memory unit `start`? */
bool sim_profile_starts_at(const struct sim_profile *profile, uint32_t start);

/* Only one instance with the board's media extensions may exist ("+me"). */
bool sim_profile_is_media(const struct sim_profile *profile);

/* May its instances use graphics ("+gfx")? */
bool sim_profile_is_graphics(const struct sim_profile *profile);

/* The id that the driver gives an instance by where it lies. */
uint32_t sim_gi_id(const struct sim_model *model, uint32_t start, uint32_t size);

/* The compute instance profile with NVML number `number` inside an instance of
 * `slices` compute slices, or NULL where there is none. */
const struct sim_ci_profile *sim_ci_profile_find(uint32_t slices, uint32_t number);

/* Multiprocessors of a compute instance of `slices` inside `gi`. */
uint32_t sim_ci_sms(const struct sim_profile *gi, uint32_t slices);

/* Minor number of the capability device of a GPU instance, or of one of its
 * compute instances (`ci` SIM_NO_ID: the GPU instance itself). */
uint32_t sim_cap_minor(uint32_t gpu_minor, uint32_t gi, uint32_t ci);

#endif
