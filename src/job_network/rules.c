#include "job_network/rules.h"

#include <stdio.h>

enum { GROUPS_FROM = 0x62680000 }; /* numbers of interface groups that no other program uses */
#define TABLE "inet " BH_NETWORK_TABLE

void
bh_rules_interface(uint32_t slot, char ret_name[BH_NETWORK_NAME])
{
    snprintf(ret_name, BH_NETWORK_NAME, BH_NETWORK_PREFIX "%u", slot);
}

void
bh_rules_mac(uint32_t slot, bool of_job, uint8_t ret_mac[6])
{
    const uint8_t mac[6] = { of_job ? 0x02 : 0x06, 0x62,         0x68, (uint8_t)(slot >> 16),
                             (uint8_t)(slot >> 8), (uint8_t)slot };

    for (int i = 0; i < 6; i++)
        ret_mac[i] = mac[i];
}

uint32_t
bh_rules_group(const struct bh_network_job *job)
{
    return job->mode == BH_NETWORK_TENANT ? GROUPS_FROM + job->group : GROUPS_FROM;
}

/* ---- the table ---- */

static void
rules_put_cidr(struct bh_buf *out, struct bh_cidr cidr)
{
    char text[BH_CIDR_TEXT];

    bh_cidr_format(cidr, text);
    bh_buf_puts(out, text);
}

/* Loopback, link-local with its metadata services, multicast and what is reserved; the pool:
 * other jobs are not outside.  Addresses of this machine are not forwarded to at all. */
static void
rules_put_refused(struct bh_buf *out, const struct bh_rules_site *site)
{
    bh_buf_puts(out, " set refused { type ipv4_addr; flags interval; auto-merge; elements = { "
                     "0.0.0.0/8, 127.0.0.0/8, 169.254.0.0/16, 224.0.0.0/3, ");
    rules_put_cidr(out, site->pool);
    for (uint32_t i = 0; i < site->deny_count; i++) {
        bh_buf_puts(out, ", ");
        rules_put_cidr(out, site->deny[i]);
    }
    bh_buf_puts(out, " }; }\n");
}

static void
rules_put_uplinks(struct bh_buf *out, const struct bh_rules_site *site)
{
    bh_buf_puts(out, " set uplinks { type ifname; ");
    for (uint32_t i = 0; i < site->uplink_count; i++)
        bh_buf_printf(out, "%s\"%s\"", i ? ", " : "elements = { ", site->uplinks[i]);
    bh_buf_puts(out, site->uplink_count ? " }; }\n" : "}\n");
}

static const char parts[] = " set own { type ifname . ether_addr . ipv4_addr; }\n"
                            " set pairs { type devgroup . devgroup; }\n"
                            " map egress { type ifname : verdict; }\n"
                            " map denied { type ifname : counter; }\n"
                            " chain refuse {\n"
                            "  counter name iifname map @denied\n"
                            "  meta l4proto tcp reject with tcp reset\n"
                            "  drop\n"
                            " }\n"
                            " chain from_job {\n"
                            "  type filter hook prerouting priority raw; policy accept;\n"
                            "  iifname != \"bhj*\" accept\n"
                            "  iifname . ether saddr . ip saddr @own accept\n"
                            "  counter name iifname map @denied\n"
                            "  drop\n"
                            " }\n"
                            " chain to_host {\n"
                            "  type filter hook input priority filter - 10; policy accept;\n"
                            "  iifname \"bhj*\" jump refuse\n"
                            " }\n"
                            " chain from_host {\n"
                            "  type filter hook output priority filter - 10; policy accept;\n"
                            "  oifname != \"bhj*\" accept\n"
                            "  tcp flags & rst == rst accept\n"
                            "  icmp type { destination-unreachable, time-exceeded } accept\n"
                            "  drop\n"
                            " }\n"
                            " chain outward {\n"
                            "  ip daddr @refused jump refuse\n"
                            "  oifname != @uplinks jump refuse\n"
                            "  ct state established,related accept\n"
                            "  iifname vmap @egress\n"
                            "  jump refuse\n"
                            " }\n";

/* A tenant's packets are judged by the groups of the interfaces that they come and go by, and
 * from_job has seen to it that they come from where they say. */
static const char between[] =
    " chain between {\n"
    "  type filter hook forward priority filter - 10; policy accept;\n"
    "  iifname \"bhj*\" oifname \"bhj*\" meta iifgroup . meta oifgroup @pairs accept\n"
    "  iifname \"bhj*\" jump outward\n"
    "  iifname \"bhj*\" drop\n";
static const char inward[] = "  oifname != \"bhj*\" accept\n"
                             "  ct state established,related ct direction reply accept\n"
                             "  counter name oifname map @denied\n"
                             "  drop\n"
                             " }\n";

void
bh_rules_put_nothing(struct bh_buf *out)
{
    bh_buf_puts(out, "add table " TABLE "\ndelete table " TABLE "\n");
}

void
bh_rules_put_table(struct bh_buf *out, const struct bh_rules_site *site)
{
    bh_rules_put_nothing(out);
    bh_buf_puts(out, "table " TABLE " {\n");
    rules_put_refused(out, site);
    rules_put_uplinks(out, site);
    bh_buf_puts(out, parts);
    bh_buf_puts(out, between);
    if (site->guard)
        bh_buf_puts(out, "  iifname @uplinks oifname != \"bhj*\" drop\n");
    bh_buf_puts(out, inward);
    bh_buf_puts(out, " chain translate {\n"
                     "  type nat hook postrouting priority srcnat; policy accept;\n  ip saddr ");
    rules_put_cidr(out, site->pool);
    bh_buf_puts(out, " oifname != \"bhj*\" masquerade\n }\n}\n");
}

/* ---- one job ---- */

static void
rules_put_own(struct bh_buf *out, const struct bh_rules_site *site, uint32_t slot)
{
    uint32_t ip = bh_network_address(site->pool, slot);
    uint8_t mac[6];

    bh_rules_mac(slot, true, mac);
    bh_buf_printf(out,
                  "element " TABLE " own { \"" BH_NETWORK_PREFIX "%u\" . "
                  "%02x:%02x:%02x:%02x:%02x:%02x . %u.%u.%u.%u }\n",
                  slot, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5], ip >> 24, ip >> 16 & 255,
                  ip >> 8 & 255, ip & 255);
}

static void
rules_put_allow(struct bh_buf *out, uint32_t slot, const struct bh_net_rule *rule)
{
    static const char *const any[] = {
        [BH_NET_ANY] = "meta l4proto { tcp, udp }",
        [BH_NET_TCP] = "meta l4proto tcp",
        [BH_NET_UDP] = "meta l4proto udp",
        [BH_NET_PING] = "icmp type echo-request",
    };

    bh_buf_printf(out, "add rule " TABLE " e%u ip daddr ", slot);
    rules_put_cidr(out, rule->to);
    if (rule->first == 0)
        bh_buf_printf(out, " %s accept\n", any[rule->protocol]);
    else
        bh_buf_printf(out, " %s dport %u-%u accept\n", rule->protocol == BH_NET_TCP ? "tcp" : "udp",
                      rule->first, rule->last);
    if (rule->protocol == BH_NET_ANY)
        rules_put_allow(out, slot, &(struct bh_net_rule){ .to = rule->to, .protocol = BH_NET_PING });
}

static void
rules_put_egress(struct bh_buf *out, const struct bh_network_job *job)
{
    bh_buf_printf(out, "add chain " TABLE " e%u\n", job->slot);
    for (uint32_t i = 0; i < job->deny_count; i++) {
        bh_buf_printf(out, "add rule " TABLE " e%u ip daddr ", job->slot);
        rules_put_cidr(out, job->deny[i]);
        bh_buf_puts(out, " return\n"); /* refused behind the map */
    }
    for (uint32_t i = 0; i < job->allow_count; i++)
        rules_put_allow(out, job->slot, &job->allow[i]);
    bh_buf_printf(out, "add element " TABLE " egress { \"" BH_NETWORK_PREFIX "%u\" : jump e%u }\n", job->slot,
                  job->slot);
}

void
bh_rules_put_job(struct bh_buf *out, const struct bh_rules_site *site, const struct bh_network_job *job,
                 struct bh_rules_count before)
{
    bh_buf_printf(out, "add counter " TABLE " d%u { packets %llu bytes %llu }\n", job->slot,
                  (unsigned long long)before.packets, (unsigned long long)before.bytes);
    bh_buf_printf(out, "add element " TABLE " denied { \"" BH_NETWORK_PREFIX "%u\" : \"d%u\" }\n", job->slot,
                  job->slot);
    if (job->mode == BH_NETWORK_TENANT)
        bh_buf_printf(out, "add element " TABLE " pairs { %u . %u }\n", bh_rules_group(job),
                      bh_rules_group(job));
    else
        rules_put_egress(out, job);
    bh_buf_puts(out, "add ");
    rules_put_own(out, site, job->slot);
}

void
bh_rules_drop_job(struct bh_buf *out, const struct bh_rules_site *site, const struct bh_network_job *job,
                  bool last)
{
    bh_buf_puts(out, "delete ");
    rules_put_own(out, site, job->slot);
    if (job->mode == BH_NETWORK_EGRESS)
        bh_buf_printf(out,
                      "delete element " TABLE " egress { \"" BH_NETWORK_PREFIX "%u\" }\n"
                      "flush chain " TABLE " e%u\ndelete chain " TABLE " e%u\n",
                      job->slot, job->slot, job->slot);
    else if (last)
        bh_buf_printf(out, "delete element " TABLE " pairs { %u . %u }\n", bh_rules_group(job),
                      bh_rules_group(job));
    bh_buf_printf(out,
                  "delete element " TABLE " denied { \"" BH_NETWORK_PREFIX "%u\" }\n"
                  "delete counter " TABLE " d%u\n",
                  job->slot, job->slot);
}
