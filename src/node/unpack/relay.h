#ifndef BH_NODE_UNPACK_RELAY_H
#define BH_NODE_UNPACK_RELAY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/time.h"
#include "node/common/registry.h"

/* The only way out of a cell that fetches an image: a process in the machine's network that accepts
 * connections on sockets of the cell, one for each host that node.conf lists, and carries bytes between it
 * and that host.  The socket alone decides the host, not the bytes sent over it, so that neither a job's text
 * nor a registry's redirection leads elsewhere; TLS passes through it from end to end.
 *
 * It runs as the user nobody, in the sandbox of bulkhead-fetch (fetch/sandbox.h), because it queries name
 * servers and is reached by untrusted hosts. */

enum { BH_RELAY_HOSTS_MAX = 40, BH_RELAY_DENY_MAX = 32, BH_RELAY_ERROR_MAX = 160 };

/* In memory that it shares with its parent, which believes the amounts and reads the text within bounds. */
struct bh_relay_shared {
    _Atomic uint64_t limit_bytes; /* set by the parent: what may come in all */
    _Atomic uint64_t received_bytes;
    _Atomic uint64_t moved_at;           /* monotonic; when bytes went either way */
    _Atomic bool over;                   /* the limit was reached: nothing more comes */
    char last_error[BH_RELAY_ERROR_MAX]; /* the last: a host that was not reached, and why */
};

struct bh_relay {
    const struct bh_registry *hosts; /* `repository` does not count */
    uint32_t host_count;
    const char *const *deny; /* blocks of addresses that are never connected to */
    uint32_t deny_count;
    struct bh_relay_shared *shared;
    pid_t pid;   /* by bh_relay_start */
    int control; /* a socket to it */
};

/* Whether that host may have that address: of a plain one, the loopback's; of others, none of
 * this machine, of the link (the metadata services of clouds), of groups, nor of `deny`. */
bool bh_relay_may_reach(const struct bh_relay *relay, bool plain, const struct sockaddr *address);

/* Start it, in the network namespace that the caller is in.  It ends with its parent. */
BH_MUST_USE bh_rc bh_relay_start(struct bh_relay *relay, struct bh_err *err);

/* In a network namespace without any way out: switch the loopback on, listen there for each
 * host, and give the sockets to the relay.  bh_relay_address says where. */
BH_MUST_USE bh_rc bh_relay_listen(const struct bh_relay *relay, struct bh_err *err);

/* The address of the cell's loopback that stands for a host. */
void bh_relay_address(const struct bh_relay *relay, uint32_t host, char ret_text[16]);

/* End it, and wait for that. */
void bh_relay_stop(struct bh_relay *relay);

#endif
