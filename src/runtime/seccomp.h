#ifndef BH_RUNTIME_SECCOMP_H
#define BH_RUNTIME_SECCOMP_H

#include <linux/filter.h>
#include <stdint.h>

#include "base/buf.h"

/* The system call filter of every job, made from tables/syscalls.tbl: as a program for
 * the kernel (which crun loads as it is, without two milliseconds of libseccomp), and as
 * the OCI document's `seccomp` object, which says the same to runtimes that do not know
 * the annotation.  Calls of another machine type (i386, x32) kill the process. */

enum { BH_SECCOMP_PROGRAM_MAX = 1024 };

/* What the rows with the rule SPLICE are: allowed, or missing (ENOSYS). */
enum bh_seccomp_profile { BH_SECCOMP_DEFAULT, BH_SECCOMP_STRICT };

/* The filter program; the number of instructions. */
uint32_t bh_seccomp_program(enum bh_seccomp_profile profile,
                            struct sock_filter ret_program[BH_SECCOMP_PROGRAM_MAX]);

/* Append the program's bytes as base 64: crun's annotation run.oci.seccomp_bpf_data. */
void bh_seccomp_put_base64(enum bh_seccomp_profile profile, struct bh_buf *out);

/* Append the OCI `seccomp` object. */
void bh_seccomp_put_oci(enum bh_seccomp_profile profile, struct bh_buf *out);

#endif
