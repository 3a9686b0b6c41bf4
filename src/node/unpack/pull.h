#ifndef BH_NODE_UNPACK_PULL_H
#define BH_NODE_UNPACK_PULL_H

#include "base/buf.h"
#include "node/unpack/relay.h"
#include "node/unpack/unpack_run.h"

/* Fetching an image from a registry, by skopeo, into the stage of bulkhead-unpack: it is checked and unpacked
 * from there as any layout is.
 *
 * skopeo is a step like others: it runs as the user nobody, in the cell, under the jobs' filter; its network
 * is the cell's own loopback with a relay behind it (relay.h).  First the manifest is read and its digest
 * becomes known, so that what is there already is not fetched again; then the image is fetched by that
 * digest, and no more than the manifest says. */

#define BH_PULL_FOLDER BH_UNPACK_SANDBOX_STAGE "/pull" /* as a layout: blobs/sha256 */

struct bh_pull {
    /* The request. */
    const char *program;                     /* skopeo */
    const char *source;                      /* "HOST[:PORT]/REPOSITORY" */
    const char *auth;                        /* a file of credentials; "": none */
    const char *entries[BH_RELAY_HOSTS_MAX]; /* hosts; the first is the registry */
    const char *deny[BH_RELAY_DENY_MAX];
    uint32_t entry_count, deny_count;
    uint64_t stall_s;
    /* Its course. */
    struct bh_registry hosts[BH_RELAY_HOSTS_MAX]; /* each once */
    uint32_t host_count;
    struct bh_relay relay;
    struct bh_buf auth_text, certificates;
    bh_ns begun_at;      /* monotonic; of the step that runs */
    uint64_t most_bytes; /* on the disk, of the step that runs */
    bool fetching;       /* blobs, and not a manifest */
    enum { BH_PULL_RUNNING, BH_PULL_STALLED, BH_PULL_TOO_MUCH } fault;
};

/* Before the cell is entered: read what lies outside, start the relay.
 *   BH_DENIED  the credentials can be read by others than root */
BH_MUST_USE bh_rc bh_pull_begin(struct bh_pull *pull, struct bh_err *err);

/* In the cell: its files, its loopback, the folder. */
BH_MUST_USE bh_rc bh_pull_enter(struct bh_pull *pull, uint32_t base, struct bh_err *err);

/* Which manifest it is, into shared->manifest; its layers' bytes into shared->total_bytes.
 *   BH_NOT_FOUND    there is no such image
 *   BH_DENIED       the registry wants credentials, or sent to a host that is not listed
 *   BH_UNAVAILABLE  it cannot be reached
 *   BH_TIMEOUT      it went silent
 *   BH_FULL         it is larger than a tenant may have */
BH_MUST_USE bh_rc bh_pull_resolve(struct bh_pull *pull, struct bh_unpack_runner *runner, struct bh_err *err);

/* Fetch that manifest's blobs.  As bh_pull_resolve. */
BH_MUST_USE bh_rc bh_pull_fetch(struct bh_pull *pull, struct bh_unpack_runner *runner, struct bh_err *err);

/* The fetch is over: remove credentials and relay. */
void bh_pull_end(struct bh_pull *pull);

#endif
