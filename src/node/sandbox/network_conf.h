#ifndef BH_NODE_SANDBOX_NETWORK_CONF_H
#define BH_NODE_SANDBOX_NETWORK_CONF_H

#include "node/common/conf.h"
#include "ports/network.h"
#include "wire/message.h"

/* What node.conf says about networks, read; and what a job asks for, held against it. */
struct bh_network_conf {
    bool used; /* there is a pool */
    bool offered[BH_NETWORK_MODES];
    struct bh_cidr pool;
    struct bh_cidr deny[BH_PARAM_LIST_MAX];
    uint32_t deny_count;
    uint64_t bandwidth_max; /* bits a second; 0: none */
};

/* BH_INVALID, BH_RANGE: the message names the parameter. */
BH_MUST_USE bh_rc bh_network_conf_read(const struct bh_conf *conf, struct bh_network_conf *ret_conf,
                                       struct bh_err *err);

/* What a job's network is made of, read from an order or from its file. */
struct bh_network_lists {
    struct bh_net_rule allow[BH_NET_RULES_MAX];
    struct bh_cidr deny[BH_NET_RULES_MAX];
    uint32_t allow_count, deny_count;
};

/* Read the lists of an order.  BH_INVALID: the message names the entry. */
BH_MUST_USE bh_rc bh_network_lists_read(const struct bh_texts *allow, const struct bh_texts *deny,
                                        struct bh_network_lists *ret_lists, struct bh_err *err);

/* Whether node.conf allows what is asked.
 *   BH_DENIED   a mode that is not offered, a resolver that its own list does not allow
 *   BH_INVALID  no mode, a resolver that is no address */
BH_MUST_USE bh_rc bh_network_conf_check(const struct bh_network_conf *conf,
                                        const struct bh_msg_network *asked,
                                        const struct bh_network_lists *lists, struct bh_err *err);

/* The cap of a job that asks for so much; 0 is no cap. */
uint64_t bh_network_conf_bandwidth(const struct bh_network_conf *conf, uint64_t asked_bps);

#endif
