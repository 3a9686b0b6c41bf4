#ifndef BH_NODE_SANDBOX_NETWORK_HOSTS_H
#define BH_NODE_SANDBOX_NETWORK_HOSTS_H

#include "base/buf.h"
#include "base/err.h"

/* The file /etc/hosts of jobs that reach each other. */

struct bh_network_host {
    uint32_t address; /* in host order */
    uint64_t job;
    uint32_t gang, member;
    const char *name;   /* as its submitter wrote it, or "" */
    const char *tenant; /* "acme/vision" */
};

/* Loopback, then every host by its job's number (job-12, of a gang's member job-12-1; member 0 is
 * job-12, too), then by name where the name can be one of a host: lower-case, with "-1" for a
 * member.  Each name stands alone and before ".<tenant>", with dots: "train.acme.vision".
 * Numbers come first, so that a job's name never hides another job's number. */
void bh_network_hosts_put(struct bh_buf *out, const struct bh_network_host *hosts, uint32_t count);

/* Write a file that others have open or mounted, so that they read the old text or the new one
 * (of a page at most; longer texts may be read half).  It is made if need be. */
BH_MUST_USE bh_rc bh_network_hosts_write(const char *path, const char *text, size_t length,
                                         struct bh_err *err);

#endif
