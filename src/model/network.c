#include "model/network.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"

const char *const bh_network_mode_names[BH_NETWORK_MODES] = {
    [BH_NETWORK_NONE] = "none",
    [BH_NETWORK_TENANT] = "tenant",
    [BH_NETWORK_EGRESS] = "egress",
};

enum { PORT_MAX = 65535, WORD_MAX = 24, BITS = 32 };
#define BPS_MIN UINT64_C(64000)
#define BPS_MAX UINT64_C(1000000000000)

/* ---- prefixes ---- */

static uint32_t
network_mask_of(uint32_t bits)
{
    return bits == 0 ? 0 : UINT32_MAX << (BITS - bits);
}

/* A number of 1 to 3 digits without a leading zero, at most `most`. */
static bool
network_read_small(const char **at, uint32_t most, uint32_t *ret_number)
{
    const char *text = *at;
    uint32_t number = 0;

    while (**at >= '0' && **at <= '9' && *at - text < 3)
        number = number * 10 + (uint32_t)(*(*at)++ - '0');
    *ret_number = number;
    return *at > text && !(text[0] == '0' && *at - text > 1) && number <= most;
}

static bool
network_read_cidr(const char *at, struct bh_cidr *ret_cidr)
{
    struct bh_cidr cidr = { 0, BITS };

    for (int part = 0; part < 4; part++) {
        uint32_t byte;

        if ((part > 0 && *at++ != '.') || !network_read_small(&at, 255, &byte))
            return false;
        cidr.address = cidr.address << 8 | byte;
    }
    if (*at == '/') {
        at++;
        if (!network_read_small(&at, BITS, &cidr.bits))
            return false;
    }
    *ret_cidr = cidr;
    return *at == '\0' && (cidr.address & ~network_mask_of(cidr.bits)) == 0;
}

bh_rc
bh_cidr_parse(const char *text, struct bh_cidr *ret_cidr, struct bh_err *err)
{
    if (network_read_cidr(text, ret_cidr))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "\"%.40s\" is not an IPv4 prefix", text);
    return bh_err_hint(err, "write \"10.0.0.0/8\" with no bit set after the prefix, or an address");
}

void
bh_cidr_format(struct bh_cidr cidr, char ret_text[BH_CIDR_TEXT])
{
    struct bh_buf text;

    bh_buf_init_fixed(&text, ret_text, BH_CIDR_TEXT);
    for (int shift = 24; shift >= 0; shift -= 8) {
        bh_buf_put_u64(&text, cidr.address >> shift & 255);
        bh_buf_putc(&text, shift ? '.' : '/');
    }
    bh_buf_put_u64(&text, cidr.bits);
    bh_buf_text(&text);
}

bool
bh_cidr_covers(struct bh_cidr above, struct bh_cidr below)
{
    return above.bits <= below.bits && ((above.address ^ below.address) & network_mask_of(above.bits)) == 0;
}

/* ---- rules ---- */

static const char *const protocols[] = {
    [BH_NET_TCP] = "tcp",
    [BH_NET_UDP] = "udp",
    [BH_NET_PING] = "ping",
};

/* The next word, without the blank behind it; false when it is too long or missing. */
static bool
network_read_word(const char **at, char ret_word[WORD_MAX])
{
    size_t length = strcspn(*at, " ");

    if (length == 0 || length >= WORD_MAX)
        return false;
    memcpy(ret_word, *at, length);
    ret_word[length] = '\0';
    *at += length;
    *at += **at == ' ';
    return true;
}

static bool
network_read_protocol(const char *word, enum bh_net_protocol *ret_protocol)
{
    for (int p = BH_NET_TCP; p <= BH_NET_PING; p++)
        if (strcmp(word, protocols[p]) == 0) {
            *ret_protocol = (enum bh_net_protocol)p;
            return true;
        }
    return false;
}

/* "443" or "8000-8080". */
static bh_rc
network_read_ports(char *word, struct bh_net_rule *rule, struct bh_err *err)
{
    char *dash = strchr(word, '-');
    bh_rc rc;

    if (dash)
        *dash = '\0';
    rc = bh_parse_u32(word, 1, PORT_MAX, &rule->first, err);
    rule->last = rule->first;
    if (rc == BH_OK && dash)
        rc = bh_parse_u32(dash + 1, rule->first, PORT_MAX, &rule->last, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "port");
}

static bh_rc
network_no_rule(const char *text, struct bh_err *err)
{
    bh_err_set(err, BH_INVALID, "\"%.60s\" is not understood", text);
    return bh_err_hint(err, "write \"10.0.0.0/8 tcp 443\", \"10.0.0.53 udp 53\", \"10.0.0.0/8 ping\", "
                            "or a prefix alone");
}

bh_rc
bh_net_rule_parse(const char *text, struct bh_net_rule *ret_rule, struct bh_err *err)
{
    struct bh_net_rule rule = { .protocol = BH_NET_ANY, .last = PORT_MAX };
    const char *at = text;
    char word[WORD_MAX];
    bh_rc rc;

    if (!network_read_word(&at, word) || (*at == '\0' && at[-1] == ' '))
        return network_no_rule(text, err);
    rc = bh_cidr_parse(word, &rule.to, err);
    if (rc != BH_OK)
        return rc;
    if (*at && (!network_read_word(&at, word) || !network_read_protocol(word, &rule.protocol)))
        return network_no_rule(text, err);
    if (*at) {
        if (rule.protocol == BH_NET_PING || !network_read_word(&at, word) || *at)
            return network_no_rule(text, err);
        rc = network_read_ports(word, &rule, err);
    }
    if (rc != BH_OK)
        return rc;
    *ret_rule = rule;
    return BH_OK;
}

bool
bh_net_rule_covers(const struct bh_net_rule *above, const struct bh_net_rule *below)
{
    return bh_cidr_covers(above->to, below->to)
           && (above->protocol == BH_NET_ANY || above->protocol == below->protocol)
           && above->first <= below->first && below->last <= above->last;
}

/* ---- bandwidth ---- */

bh_rc
bh_bandwidth_parse(const char *text, uint64_t *ret_bps, struct bh_err *err)
{
    static const struct {
        const char *unit;
        uint64_t bps;
    } units[] = { { "kbit", 1000 }, { "Mbit", 1000000 }, { "Gbit", 1000000000 } };
    size_t digits = strspn(text, "0123456789");
    char number[WORD_MAX];
    uint64_t amount;

    for (size_t u = 0; u < BH_COUNT(units) && digits > 0 && digits < WORD_MAX; u++) {
        if (strcmp(text + digits, units[u].unit) != 0)
            continue;
        memcpy(number, text, digits);
        number[digits] = '\0';
        if (bh_parse_u64(number, &amount, err) != BH_OK)
            return err->rc;
        if (!bh_mul_u64(amount, units[u].bps, &amount) || amount < BPS_MIN || amount > BPS_MAX)
            return bh_err_set(err, BH_RANGE, "\"%.40s\" is not within 64kbit and 1000Gbit", text);
        *ret_bps = amount;
        return BH_OK;
    }
    bh_err_set(err, BH_INVALID, "\"%.40s\" is not a bandwidth", text);
    return bh_err_hint(err, "write \"100Mbit\", \"2Gbit\" or \"512kbit\"");
}
