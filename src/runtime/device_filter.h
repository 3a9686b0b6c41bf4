#ifndef BH_RUNTIME_DEVICE_FILTER_H
#define BH_RUNTIME_DEVICE_FILTER_H

#include <linux/bpf.h>
#include <stdint.h>

#include "base/err.h"
#include "ports/runtime.h"

/* The device fence of version 2 control groups: a small kernel program (BPF_CGROUP_DEVICE)
 * made from the list of devices that may be opened; all others answer EPERM. */

enum { BH_DEVICE_RULES_MAX = 64, BH_DEVICE_FILTER_MAX = 1024 };
#define BH_DEVICE_ANY_MINOR UINT32_MAX

/* The program for these devices; the number of instructions.  At most
 * BH_DEVICE_RULES_MAX + 16 devices. */
uint32_t bh_device_filter_program(const struct bh_sandbox_device *devices, uint32_t count,
                                  struct bpf_insn ret_program[BH_DEVICE_FILTER_MAX]);

/* Load it into the kernel; `ret_program` is the caller's to close. */
BH_MUST_USE bh_rc bh_device_filter_load(const struct bh_sandbox_device *devices, uint32_t count,
                                        int *ret_program, struct bh_err *err);

/* Load it and attach it to the control group at `folder`, for as long as that exists. */
BH_MUST_USE bh_rc bh_device_filter_attach(const char *folder, const struct bh_sandbox_device *devices,
                                          uint32_t count, struct bh_err *err);

#endif
