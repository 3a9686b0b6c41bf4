#ifndef BH_JOB_NETWORK_FILTER_H
#define BH_JOB_NETWORK_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* The packet filter of the kernel: rules go in through the program nft, which is started, does
 * one transaction and ends; everything else is asked over netlink, which costs microseconds. */

/* A transaction under way. */
struct bh_filter_change {
    pid_t pid;  /* 0: none */
    int answer; /* what nft says; -1: none */
};

/* Whether the program runs at all: BH_UNAVAILABLE with what to do. */
BH_MUST_USE bh_rc bh_filter_check(const char *program, struct bh_err *err);

/* Start a transaction with the rules in `text`; the caller continues meanwhile. */
BH_MUST_USE bh_rc bh_filter_begin(const char *program, const char *text, size_t length,
                                  struct bh_filter_change *ret_change, struct bh_err *err);
/* Wait for its end.  BH_CONFLICT: nothing was changed; the message is the first line that nft
 * said.  Safe without a change. */
BH_MUST_USE bh_rc bh_filter_end(struct bh_filter_change *change, struct bh_err *err);

/* A number that changes when any program makes the table anew; 0: there is no such table.  `fd` is a socket
 * of NETLINK_NETFILTER. */
uint64_t bh_filter_table(int fd, const char *table);

/* What the counter of that name in the table counted; zeros without one. */
struct bh_filter_count {
    uint64_t packets, bytes;
};
struct bh_filter_count bh_filter_counter(int fd, const char *table, const char *name);

/* A descriptor of the current network namespace that is readable after a program changed rules.
 * bh_filter_drain takes all that is there off it, without waiting. */
BH_MUST_USE bh_rc bh_filter_watch(int *ret_fd, struct bh_err *err);
void bh_filter_drain(int fd);

/* Forget what connections from and to that address there were (host order). */
BH_MUST_USE bh_rc bh_filter_forget(int fd, uint32_t address, struct bh_err *err);

#endif
