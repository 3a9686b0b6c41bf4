#ifndef BH_JOB_NETWORK_NETLINK_H
#define BH_JOB_NETWORK_NETLINK_H

#include <stddef.h>
#include <stdint.h>
#include <linux/netlink.h>

#include "base/err.h"

/* Requests to the kernel over netlink: built in a buffer of the request's own, sent, and
 * answered before anything else is.  A socket belongs to the network namespace that it was
 * opened in. */

enum { BH_NETLINK_BYTES = 2048 };

struct bh_netlink_request {
    union {
        struct nlmsghdr header;
        char bytes[BH_NETLINK_BYTES];
    };
};

/* Begin a request of that type with its family's header of `size` bytes.  Attributes follow;
 * all of them fit, or it is our bug. */
void bh_netlink_begin(struct bh_netlink_request *request, uint16_t type, uint16_t flags, const void *family,
                      size_t size);
void bh_netlink_put(struct bh_netlink_request *request, uint16_t type, const void *bytes, size_t length);
void bh_netlink_put_u32(struct bh_netlink_request *request, uint16_t type, uint32_t value);
void bh_netlink_put_text(struct bh_netlink_request *request, uint16_t type, const char *text);

/* What is put until `end` lies within this one. */
struct rtattr *bh_netlink_nest(struct bh_netlink_request *request, uint16_t type);
void bh_netlink_end(struct bh_netlink_request *request, struct rtattr *nest);

/* A socket of NETLINK_ROUTE or NETLINK_NETFILTER in the current network namespace. */
BH_MUST_USE bh_rc bh_netlink_open(int protocol, int *ret_fd, struct bh_err *err);

/* Send it and wait for the answer.  BH_NOT_FOUND, BH_CONFLICT: there is no such thing, or there
 * is already; BH_IO.  `err->sys` is the kernel's errno. */
BH_MUST_USE bh_rc bh_netlink_ask(int fd, struct bh_netlink_request *request, struct bh_err *err);

/* The same for a request that is answered with messages: each is given to `take`. */
typedef void (*bh_netlink_message_fn)(const struct nlmsghdr *message, void *self);
BH_MUST_USE bh_rc bh_netlink_list(int fd, struct bh_netlink_request *request, bh_netlink_message_fn take,
                                  void *self, struct bh_err *err);

/* The attribute of that type among `length` bytes; NULL: none. */
const struct rtattr *bh_netlink_find(const void *attributes, size_t length, uint16_t type);

#endif
