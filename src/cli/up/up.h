#ifndef BH_CLI_UP_UP_H
#define BH_CLI_UP_UP_H

#include <limits.h>
#include <sys/types.h>

#include "cli/command/cli.h"

/* `bulkhead up`: the programs on this machine, started, watched and ended together. */
bh_rc bh_cli_up(struct bh_cli *cli, struct bh_err *err);

enum bh_up_program { BH_UP_NODE, BH_UP_SIGNER, BH_UP_DAEMON, BH_UP_PROGRAMS };

/* Where everything lies and how it was asked for. */
struct bh_up {
    struct bh_cli *cli;
    bool real_driver;
    bool made; /* --dir was not there before */
    uint32_t daemon_uid, signer_uid, https_port;
    char gpus[128];                                      /* topology of the simulated driver */
    char state[PATH_MAX], run[PATH_MAX], conf[PATH_MAX]; /* folders */
    char socket[PATH_MAX], node_socket[PATH_MAX], signer_socket[PATH_MAX];
    char sim[PATH_MAX]; /* state of the simulated driver */
    char program[BH_UP_PROGRAMS][PATH_MAX];
    char library_dir[PATH_MAX], tools_dir[PATH_MAX], libexec_dir[PATH_MAX], shim_dir[PATH_MAX];
    char cgroup[64];
};

/* ---- up_files.c: places and configuration ---- */

/* Fill the paths from options and from where this program lies.
 * BH_NOT_FOUND: a program is missing; BH_INVALID, BH_RANGE: an option or a path; BH_CONFLICT: an
 * option that the site has otherwise, and that is settled when a site is made. */
BH_MUST_USE bh_rc bh_up_locate(struct bh_up *up, struct bh_err *err);

/* Run bulkhead-simctl on the simulated driver's state; `word` may be NULL.  As bh_up_call. */
BH_MUST_USE bh_rc bh_up_simctl(const struct bh_up *up, const char *command, const char *word,
                               struct bh_err *err);

/* Make folders and, where they are missing, node.conf, bulkheadd.conf and the simulated
 * driver's state; mount its memory.  A port that is given is set in a bulkheadd.conf that is there.  The
 * audit key of a site that had no signer of its own moves to the signer's folder.  After
 * bh_up_check.  BH_DENIED: the daemon's user could not reach a folder; BH_IO. */
BH_MUST_USE bh_rc bh_up_prepare(const struct bh_up *up, struct bh_err *err);

/* Take off the file system of the simulated GPUs' memory, unless jobs still use it. */
void bh_up_leave(const struct bh_up *up);

/* ---- up_checks.c: before anything is made or kept ---- */

/* What would keep the site from starting: no driver, GPUs that the simulated one does not have, a
 * port that is taken.  BH_NOT_FOUND, BH_INVALID, BH_CONFLICT, and as bh_driver_probe. */
BH_MUST_USE bh_rc bh_up_check(const struct bh_up *up, struct bh_err *err);

/* ---- up_programs.c: processes ---- */

/* Run a program to its end, as root with our own output; BH_IO: it failed. */
BH_MUST_USE bh_rc bh_up_call(const char *const argv[], struct bh_err *err);

/* Start all, wait until they are ready, then call `ready`; restart what dies, until
 * SIGINT, SIGTERM or SIGHUP; end all.  Their output goes to standard output, each line
 * with its program's name.
 * BH_UNAVAILABLE: a program keeps dying, or they are not ready within 60 s. */
BH_MUST_USE bh_rc bh_up_supervise(const struct bh_up *up,
                                  bh_rc (*ready)(const struct bh_up *up, struct bh_err *err),
                                  void (*stopping)(const struct bh_up *up), struct bh_err *err);

#endif
