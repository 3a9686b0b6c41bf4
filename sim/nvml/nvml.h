/* What the files of exported calls share. */
#ifndef BH_SIM_NVML_NVML_H
#define BH_SIM_NVML_NVML_H

#include <stddef.h>

#include "bulkhead/nvml_abi.h"
#include "sim/machine/identity.h"
#include "sim/machine/session.h"

#define NVML_API __attribute__((visibility("default")))

/* A second exported name of a call defined above in the same file. */
#define SIM_ALIAS(name, target) NVML_API __typeof__(target) name __attribute__((alias(#target)))

/* As sim_open() for a GPU or MIG device; what a divided GPU is as a whole is for privileged callers. */
nvmlReturn_t sim_open_whole(const char *function, nvmlDevice_t device, struct sim_target *target);

/* Copy a text out: INVALID_ARGUMENT without a buffer, INSUFFICIENT_SIZE when
 * it does not fit, and then nothing is written. */
nvmlReturn_t sim_put_text(char *buffer, unsigned length, const char *text);

/* Write a number through a pointer that the caller gave. */
#define SIM_PUT(pointer, value)                                                                              \
    ((pointer) == NULL ? NVML_ERROR_INVALID_ARGUMENT : (*(pointer) = (value), NVML_SUCCESS))

/* Calls that differ only in what they answer; `target` is what the handle names.  SIM_GET puts one value,
 * SIM_GET_TWO two, or none of both; SIM_GET_TEXT a text; SIM_GET_VERSIONED a struct whose first member
 * says which version of it the caller has. */
#define SIM_OPENED(wants)                                                                                    \
    struct sim_target target;                                                                                \
    nvmlReturn_t rc = sim_open(__func__, device, wants, &target);                                            \
                                                                                                             \
    if (rc != NVML_SUCCESS)                                                                                  \
        return rc;

#define SIM_GET(name, type, wants, value)                                                                    \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, type *ret_value)                                         \
    {                                                                                                        \
        SIM_OPENED(wants)                                                                                    \
        return SIM_PUT(ret_value, value);                                                                    \
    }

#define SIM_GET_TWO(name, type, wants, first, second)                                                        \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, type *ret_first, type *ret_second)                       \
    {                                                                                                        \
        SIM_OPENED(wants)                                                                                    \
        if (ret_first == NULL || ret_second == NULL)                                                         \
            return NVML_ERROR_INVALID_ARGUMENT;                                                              \
        *ret_first = (first);                                                                                \
        *ret_second = (second);                                                                              \
        return NVML_SUCCESS;                                                                                 \
    }

#define SIM_GET_TEXT(name, wants, text)                                                                      \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, char *ret_text, unsigned int length)                     \
    {                                                                                                        \
        SIM_OPENED(wants)                                                                                    \
        return sim_put_text(ret_text, length, text);                                                         \
    }

#define SIM_GET_VERSIONED(name, type, word, wants, ...)                                                      \
    NVML_API nvmlReturn_t name(nvmlDevice_t device, type *ret_struct)                                        \
    {                                                                                                        \
        SIM_OPENED(wants)                                                                                    \
        if (ret_struct == NULL)                                                                              \
            return NVML_ERROR_INVALID_ARGUMENT;                                                              \
        if (ret_struct->version != (word))                                                                   \
            return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;                                                     \
        *ret_struct = (type){ .version = (word), __VA_ARGS__ };                                              \
        return NVML_SUCCESS;                                                                                 \
    }

/* Wall clock in microseconds, as NVML stamps samples. */
uint64_t sim_wall_us(void);

#endif
