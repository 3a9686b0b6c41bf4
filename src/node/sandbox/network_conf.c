#include "node/sandbox/network_conf.h"

#include <string.h>

enum { DNS = 53, POOL_BITS_MIN = 8, POOL_BITS_MAX = 29 };

static bh_rc
read_modes(const struct bh_conf *conf, struct bh_network_conf *read, struct bh_err *err)
{
    for (uint32_t i = 0; i < conf->networks.count; i++) {
        const char *name = conf->networks.items[i];
        int mode = BH_NETWORK_TENANT;

        while (mode < BH_NETWORK_MODES && strcmp(bh_network_mode_names[mode], name) != 0)
            mode++;
        if (mode == BH_NETWORK_MODES) {
            bh_err_set(err, BH_INVALID, "networks: \"%.40s\" is not known", name);
            return bh_err_hint(err, "write tenant, egress, or both, one on a line");
        }
        read->offered[mode] = true;
    }
    if (conf->networks.count == 0 || *conf->network_pool)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "networks: jobs have no addresses");
    return bh_err_hint(err, "set network_pool to a prefix that nothing else uses, as 10.213.0.0/16");
}

static bh_rc
read_pool(const struct bh_conf *conf, struct bh_network_conf *read, struct bh_err *err)
{
    read->used = *conf->network_pool != '\0';
    if (!read->used)
        return BH_OK;
    if (bh_cidr_parse(conf->network_pool, &read->pool, err) != BH_OK)
        return bh_err_wrap(err, "network_pool");
    if (read->pool.bits < POOL_BITS_MIN || read->pool.bits > POOL_BITS_MAX)
        return bh_err_set(err, BH_RANGE, "network_pool: %.20s is not within /%d and /%d", conf->network_pool,
                          POOL_BITS_MIN, POOL_BITS_MAX);
    return BH_OK;
}

/* A name that the kernel takes and that nft reads as one word. */
static bool
is_interface(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                 "-_.@");

    return length > 0 && length < 16 && name[length] == '\0' && strcmp(name, ".") != 0
           && strcmp(name, "..") != 0;
}

bh_rc
bh_network_conf_read(const struct bh_conf *conf, struct bh_network_conf *ret_conf, struct bh_err *err)
{
    struct bh_network_conf read = { .used = false };
    bh_rc rc = read_modes(conf, &read, err);

    if (rc == BH_OK)
        rc = read_pool(conf, &read, err);
    for (uint32_t i = 0; i < conf->egress_deny.count && rc == BH_OK; i++) {
        rc = bh_cidr_parse(conf->egress_deny.items[i], &read.deny[read.deny_count++], err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "egress_deny");
    }
    for (uint32_t i = 0; i < conf->network_uplinks.count && rc == BH_OK; i++)
        if (!is_interface(conf->network_uplinks.items[i]))
            return bh_err_set(err, BH_INVALID, "network_uplinks: \"%.40s\" is not an interface",
                              conf->network_uplinks.items[i]);
    if (rc != BH_OK)
        return rc;
    if (*conf->bandwidth_max && bh_bandwidth_parse(conf->bandwidth_max, &read.bandwidth_max, err) != BH_OK)
        return bh_err_wrap(err, "bandwidth_max");
    *ret_conf = read;
    return BH_OK;
}

/* ---- what a job asks for ---- */

bh_rc
bh_network_lists_read(const struct bh_texts *allow, const struct bh_texts *deny,
                      struct bh_network_lists *ret_lists, struct bh_err *err)
{
    if (allow->count > BH_NET_RULES_MAX || deny->count > BH_NET_RULES_MAX)
        return bh_err_set(err, BH_RANGE, "more than %d entries", BH_NET_RULES_MAX);
    for (uint32_t i = 0; i < allow->count; i++)
        if (bh_net_rule_parse(allow->items[i], &ret_lists->allow[i], err) != BH_OK)
            return bh_err_wrap(err, "allow[%u]", i);
    for (uint32_t i = 0; i < deny->count; i++)
        if (bh_cidr_parse(deny->items[i], &ret_lists->deny[i], err) != BH_OK)
            return bh_err_wrap(err, "deny[%u]", i);
    ret_lists->allow_count = allow->count;
    ret_lists->deny_count = deny->count;
    return BH_OK;
}

static bool
is_allowed(const struct bh_network_lists *lists, const struct bh_net_rule *wanted)
{
    for (uint32_t i = 0; i < lists->allow_count; i++)
        if (bh_net_rule_covers(&lists->allow[i], wanted))
            return true;
    return false;
}

static bh_rc
check_resolver(const char *text, const struct bh_network_lists *lists, struct bh_err *err)
{
    struct bh_net_rule dns = { .protocol = BH_NET_UDP, .first = DNS, .last = DNS };
    bh_rc rc = bh_cidr_parse(text, &dns.to, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "resolvers");
    if (strchr(text, '/'))
        return bh_err_set(err, BH_INVALID, "resolvers: %.20s is not an address", text);
    if (is_allowed(lists, &dns))
        return BH_OK;
    bh_err_set(err, BH_DENIED, "resolver %.20s is not allowed by egress", text);
    return bh_err_hint(err, "add \"%.20s udp 53\" to egress of the tenant's policy", text);
}

bh_rc
bh_network_conf_check(const struct bh_network_conf *conf, const struct bh_msg_network *asked,
                      const struct bh_network_lists *lists, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (asked->mode == BH_NETWORK_NONE || asked->mode >= BH_NETWORK_MODES)
        return bh_err_set(err, BH_INVALID, "no mode");
    if (!conf->offered[asked->mode]) {
        bh_err_set(err, BH_DENIED, "this node does not offer %s", bh_network_mode_names[asked->mode]);
        return bh_err_hint(err, "the administrator can add it to networks in node.conf");
    }
    for (uint32_t i = 0; i < asked->resolvers.count && rc == BH_OK; i++)
        rc = check_resolver(asked->resolvers.items[i], lists, err);
    return rc;
}

uint64_t
bh_network_conf_bandwidth(const struct bh_network_conf *conf, uint64_t asked_bps)
{
    uint64_t most = conf->bandwidth_max;

    return most && (!asked_bps || asked_bps > most) ? most : asked_bps;
}
