#ifndef BH_NODE_COMMON_REGISTRY_H
#define BH_NODE_COMMON_REGISTRY_H

#include "model/image.h"
#include "node/common/conf.h"

/* Which registries this node has images from, as `registries` of node.conf says:
 *
 *   nvcr.io                    all of it
 *   registry.corp:5000/ml      a repository and what is below it
 *   http:127.0.0.1:5000        without TLS; addresses of this machine's loopback alone
 *
 * and further hosts that these send to, by `registry_hosts`: "auth.docker.io". */

struct bh_registry {
    char host[BH_IMAGE_HOST_MAX + 8]; /* without its port */
    uint32_t port;
    const char *repository; /* within the entry; "": all of it */
    bool plain;             /* no TLS */
};

/* Read an entry, with or without a repository.
 *   BH_INVALID  no such thing; an address in a name's place; http: of another machine */
BH_MUST_USE bh_rc bh_registry_parse(const char *entry, bool repository, struct bh_registry *ret_registry,
                                    struct bh_err *err);

/* Whether it has the image "HOST[:PORT]/REPOSITORY". */
bool bh_registry_has(const struct bh_registry *registry, const char *path);

/* Whether all lines of node.conf can be read: registries, registry_hosts.  As
 * bh_registry_parse; the message begins with the key. */
BH_MUST_USE bh_rc bh_registries_check(const struct bh_conf *conf, struct bh_err *err);

/* The one that an image of a job may come from.
 *   BH_DENIED  none has it; the message names the parameter */
BH_MUST_USE bh_rc bh_registries_find(const struct bh_conf *conf, const char *path,
                                     struct bh_registry *ret_registry, struct bh_err *err);

#endif
