#ifndef BH_DAEMON_JOURNAL_EPOCH_H
#define BH_DAEMON_JOURNAL_EPOCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "ports/crypto.h"

/* Which numbers were given out when: jobs, orders, leases and partitions are counted on from what
 * the store holds, so a store that is put back from a backup gives numbers out a second time.
 * Each opening of the store therefore begins an epoch of a random id, and a program that keeps something
 * under such a number (a node its leases, the log folder its files) can tell the two apart.
 * ADR 0060.
 *
 * Made when the store is opened, read by any thread afterwards. */

struct bh_msg_epoch;

enum { BH_EPOCHS_MAX = 1024 }; /* jobs of epochs before the last so many have no log */

/* The first numbers that an epoch may give out. */
struct bh_epoch {
    uint32_t id; /* not 0 */
    uint64_t job, order, lease, partition;
};

struct bh_epochs {
    struct bh_epoch items[BH_EPOCHS_MAX]; /* from the oldest */
    uint32_t count;
    bool unkept; /* the last is not in the file yet */
    char path[4096];
};

/* Read the file `epochs` in that folder and begin a new epoch with the numbers of `next`, whose id is made.
 * On a full disk it is written later: BH_OK.  Epochs that begin behind these numbers are forgotten: they are
 * not the store's.  BH_INVALID: the file is damaged; failures of files and of the crypto port. */
BH_MUST_USE bh_rc bh_epochs_open(struct bh_epochs *epochs, const char *folder, const struct bh_epoch *next,
                                 const struct bh_crypto_ops *crypto, struct bh_err *err);

/* Keep the last epoch, if it is not yet: before a number of it is given out.  Failures of files. */
BH_MUST_USE bh_rc bh_epochs_keep(struct bh_epochs *epochs, struct bh_err *err);

/* The id of the epoch that the job was submitted in; 0: before there were any. */
uint32_t bh_epochs_of_job(const struct bh_epochs *epochs, uint64_t job);

/* The last of them, at most `max`, for a node's HELLO; how many. */
uint32_t bh_epochs_list(const struct bh_epochs *epochs, struct bh_msg_epoch *ret_items, uint32_t max);

#endif
