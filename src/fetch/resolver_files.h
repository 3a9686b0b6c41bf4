#ifndef BH_FETCH_RESOLVER_FILES_H
#define BH_FETCH_RESOLVER_FILES_H

#include <stddef.h>

/* Files that the resolver reads.  The rules of a bulkhead-fetch process hold those that
 * stood there when it started: when one is replaced, a fresh process is needed to read it.
 */
static const char *const bh_fetch_resolver_files[] = {
    "/etc/resolv.conf", "/etc/hosts",    "/etc/nsswitch.conf", "/etc/host.conf",
    "/etc/gai.conf",    "/etc/services", "/etc/protocols",     NULL,
};

#endif
