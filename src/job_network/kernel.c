#include "job_network/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/proc.h"
#include "job_network/filter.h"
#include "job_network/link.h"
#include "job_network/netlink.h"
#include "job_network/rules.h"
#include "job_network/netns.h"

enum { RULES_BYTES_MAX = 64 << 20, JOBS_MAX = 4096 };
#define JOBS_INTERFACE "eth0"

struct kernel {
    struct bh_kernel_options options;
    int home, links, filters;
    int changes;                 /* descriptor: any program's changes of the packet filter */
    struct bh_network_job *jobs; /* attached */
    uint32_t count;
    uint64_t table; /* as this program made it; 0: none */
    bool guarded;   /* it has the guard */
};

/* ---- which jobs ---- */

static struct bh_network_job *
kernel_find(struct kernel *kernel, uint32_t slot)
{
    for (uint32_t i = 0; i < kernel->count; i++)
        if (kernel->jobs[i].slot == slot)
            return &kernel->jobs[i];
    return NULL;
}

static bool
kernel_uses_egress(const struct kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->count; i++)
        if (kernel->jobs[i].mode == BH_NETWORK_EGRESS)
            return true;
    return false;
}

/* ---- forwarding of uplinks ---- */

static void
kernel_forwarding_of(const char *uplink, char ret_setting[64])
{
    snprintf(ret_setting, 64, "ipv4/conf/%.32s/forwarding", uplink);
}

/* Whether it was switched on here and not by the administrator. */
static bool
kernel_is_guarded(const struct kernel *kernel)
{
    return access(kernel->options.marker, F_OK) == 0;
}

static bh_rc
kernel_check_uplink(const struct kernel *kernel, const char *uplink, bool *ret_off, struct bh_err *err)
{
    char setting[64], value;

    kernel_forwarding_of(uplink, setting);
    value = bh_netns_setting(setting);
    *ret_off = value == '0';
    if (!value) {
        bh_err_set(err, BH_UNAVAILABLE, "there is no interface %.32s", uplink);
        return bh_err_hint(err, "correct network_uplinks in node.conf");
    }
    if (value == '1' || kernel->options.may_forward)
        return BH_OK;
    bh_err_set(err, BH_UNAVAILABLE, "%.32s does not forward packets", uplink);
    return bh_err_hint(err,
                       "sysctl -w net.ipv4.conf.%.32s.forwarding=1, or network_forwarding = 1 "
                       "in node.conf",
                       uplink);
}

static bh_rc
kernel_check_egress(const struct kernel *kernel, struct bh_err *err)
{
    if (kernel->options.uplink_count > 0)
        return BH_OK;
    bh_err_set(err, BH_UNAVAILABLE, "this node has no way out");
    return bh_err_hint(err, "name the interfaces in network_uplinks of node.conf");
}

/* Noted before it is done, so that the node program that starts after a crash can undo it. */
static bh_rc
kernel_record_forwarding(struct kernel *kernel, struct bh_err *err)
{
    bh_rc rc = kernel_check_egress(kernel, err);

    for (uint32_t i = 0; i < kernel->options.uplink_count && rc == BH_OK; i++) {
        bool off;

        rc = kernel_check_uplink(kernel, kernel->options.uplinks[i], &off, err);
        if (rc == BH_OK && off && !kernel_is_guarded(kernel))
            rc = bh_file_replace(kernel->options.marker, "", 0, 0600, err);
    }
    return rc;
}

/* When the rules stand. */
static bh_rc
kernel_forward(struct kernel *kernel, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < kernel->options.uplink_count && rc == BH_OK; i++) {
        char setting[64];

        kernel_forwarding_of(kernel->options.uplinks[i], setting);
        if (kernel_is_guarded(kernel) && bh_netns_setting(setting) == '0')
            rc = bh_netns_set(setting, "1", err);
    }
    return rc;
}

static void
kernel_stop_forwarding(struct kernel *kernel)
{
    struct bh_err ignored;
    char setting[64];

    if (!kernel_is_guarded(kernel) || kernel_uses_egress(kernel))
        return;
    for (uint32_t i = 0; i < kernel->options.uplink_count; i++) {
        kernel_forwarding_of(kernel->options.uplinks[i], setting);
        (void)!bh_netns_set(setting, "0", &ignored); /* the interface may be gone */
    }
    unlink(kernel->options.marker);
}

/* ---- rules ---- */

static struct bh_rules_site
kernel_site_of(const struct kernel *kernel)
{
    return (struct bh_rules_site){
        .pool = kernel->options.pool,
        .uplinks = kernel->options.uplinks,
        .uplink_count = kernel->options.uplink_count,
        .deny = kernel->options.deny,
        .deny_count = kernel->options.deny_count,
        .guard = kernel_is_guarded(kernel),
    };
}

static bool
kernel_is_ready(const struct kernel *kernel)
{
    return kernel->table != 0 && kernel->guarded == kernel_is_guarded(kernel)
           && bh_filter_table(kernel->filters, BH_NETWORK_TABLE) == kernel->table;
}

/* What was denied to a job, from its counter if there is one. */
static struct bh_rules_count
kernel_denied(const struct kernel *kernel, uint32_t slot)
{
    struct bh_filter_count count;
    char name[BH_NETWORK_NAME];

    snprintf(name, sizeof name, "d%u", slot);
    count = bh_filter_counter(kernel->filters, BH_NETWORK_TABLE, name);
    return (struct bh_rules_count){ count.packets, count.bytes };
}

static void
kernel_put_all(struct kernel *kernel, struct bh_buf *text)
{
    const struct bh_rules_site site = kernel_site_of(kernel);

    kernel->guarded = site.guard;
    if (kernel->count == 0) {
        bh_rules_put_nothing(text);
        return;
    }
    bh_rules_put_table(text, &site);
    for (uint32_t i = 0; i < kernel->count; i++)
        bh_rules_put_job(text, &site, &kernel->jobs[i], kernel_denied(kernel, kernel->jobs[i].slot));
}

static bh_rc
kernel_start(struct kernel *kernel, const struct bh_buf *text, struct bh_filter_change *change,
             struct bh_err *err)
{
    if (text->overflow)
        return bh_err_set(err, BH_FULL, "the rules of all jobs are too long");
    return bh_filter_begin(kernel->options.nft, text->bytes, text->length, change, err);
}

/* All rules anew, for the jobs that there are. */
static bh_rc
kernel_rebuild(struct kernel *kernel, struct bh_err *err)
{
    struct bh_filter_change change = { .answer = -1 };
    struct bh_buf text;
    bh_rc rc;

    if (kernel->count == 0 && bh_filter_table(kernel->filters, BH_NETWORK_TABLE) == 0) {
        kernel->table = 0;
        return BH_OK;
    }
    bh_buf_init(&text, RULES_BYTES_MAX);
    kernel_put_all(kernel, &text);
    rc = kernel_start(kernel, &text, &change, err);
    if (rc == BH_OK)
        rc = bh_filter_end(&change, err);
    bh_buf_fini(&text);
    kernel->table = bh_filter_table(kernel->filters, BH_NETWORK_TABLE);
    return rc;
}

/* ---- attaching ---- */

/* A job on its way in. */
struct attaching {
    struct kernel *kernel;
    const struct bh_network_job *job;
    const struct bh_network_place *place;
    struct bh_filter_change change;
    char name[BH_NETWORK_NAME];
    int inside; /* netlink in its namespace; -1: none yet */
};

/* The last job of the list is the new one.  When rules are there, only its own are added. */
static bh_rc
kernel_begin_rules(struct attaching *a, struct bh_err *err)
{
    struct kernel *kernel = a->kernel;
    const struct bh_rules_site site = kernel_site_of(kernel);
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, RULES_BYTES_MAX);
    if (kernel_is_ready(kernel))
        bh_rules_put_job(&text, &site, a->job, (struct bh_rules_count){ 0 });
    else
        kernel_put_all(kernel, &text);
    rc = kernel_start(kernel, &text, &a->change, err);
    bh_buf_fini(&text);
    return rc;
}

/* Rules that do not fit what is there (another program changed it) are all made anew. */
static bh_rc
kernel_end_rules(struct attaching *a, struct bh_err *err)
{
    bh_rc rc = bh_filter_end(&a->change, err);

    if (rc == BH_CONFLICT)
        return kernel_rebuild(a->kernel, err);
    if (rc != BH_OK)
        return rc;
    a->kernel->table = bh_filter_table(a->kernel->filters, BH_NETWORK_TABLE);
    return BH_OK;
}

static bh_rc
kernel_make_pair(struct attaching *a, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int space = open(a->place->space, O_RDONLY | O_CLOEXEC);
    struct bh_link_pair pair = {
        .here = a->name, .there = JOBS_INTERFACE, .group = bh_rules_group(a->job), .netns_fd = space
    };
    struct bh_err ignored;

    if (space < 0)
        return bh_err_errno(err, "open %s", a->place->space);
    bh_rules_mac(a->job->slot, false, pair.mac_here);
    bh_rules_mac(a->job->slot, true, pair.mac_there);
    if (bh_link_find(a->kernel->links, a->name)) /* whatever it was, it was no job's */
        (void)!bh_link_remove(a->kernel->links, a->name, &ignored);
    return bh_link_make_pair(a->kernel->links, &pair, err);
}

/* The job's end: one address, and everything goes to the gateway. */
static bh_rc
kernel_set_up_inside(const struct attaching *a, struct bh_err *err)
{
    const struct bh_cidr pool = a->kernel->options.pool;
    uint32_t index = bh_link_find(a->inside, JOBS_INTERFACE);
    uint8_t mac[6];
    bh_rc rc;

    bh_rules_mac(a->job->slot, false, mac);
    rc = bh_link_add_address(a->inside, index, bh_network_address(pool, a->job->slot), err);
    if (rc != BH_OK)
        return rc;
    if (a->job->bandwidth_bps)
        rc = bh_link_set_rate(a->inside, index, a->job->bandwidth_bps, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_link_set_up(a->inside, index, false, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_link_add_neighbor(a->inside, index, bh_network_gateway(pool), mac, err);
    if (rc != BH_OK)
        return rc;
    return bh_link_add_route(a->inside, index, (struct bh_cidr){ 0, 0 }, bh_network_gateway(pool), err);
}

static bh_rc
kernel_set_of(const struct attaching *a, const char *family, const char *setting, struct bh_err *err)
{
    char path[64];

    snprintf(path, sizeof path, "%s/conf/%s/%s", family, a->name, setting);
    return bh_netns_setting(path) ? bh_netns_set(path, "1", err) : BH_OK;
}

/* The machine's end: it forwards, and its source addresses are also checked against the routes. */
static bh_rc
kernel_set_up_here(const struct attaching *a, struct bh_err *err)
{
    uint32_t address = bh_network_address(a->kernel->options.pool, a->job->slot);
    int links = a->kernel->links;
    uint32_t index = bh_link_find(links, a->name);
    uint8_t mac[6];
    bh_rc rc = kernel_set_of(a, "ipv6", "disable_ipv6", err);

    bh_rules_mac(a->job->slot, true, mac);
    if (rc != BH_OK)
        return rc;
    rc = kernel_set_of(a, "ipv4", "rp_filter", err);
    if (rc != BH_OK)
        return rc;
    rc = kernel_set_of(a, "ipv4", "forwarding", err);
    if (rc != BH_OK)
        return rc;
    if (a->job->bandwidth_bps)
        rc = bh_link_set_rate(links, index, a->job->bandwidth_bps, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_link_set_up(links, index, false, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_link_add_neighbor(links, index, address, mac, err);
    if (rc != BH_OK)
        return rc;
    return bh_link_add_route(links, index, (struct bh_cidr){ address, 32 }, 0, err);
}

/* nft works while namespace and interfaces are made; nothing is up before it is done. */
static bh_rc
kernel_make_all(struct attaching *a, struct bh_err *err)
{
    bh_rc rc = kernel_begin_rules(a, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_netns_make(a->place, a->kernel->home, &a->inside, err);
    if (rc != BH_OK)
        return rc;
    rc = kernel_make_pair(a, err);
    if (rc != BH_OK)
        return rc;
    rc = kernel_set_up_inside(a, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_filter_forget(a->kernel->filters, bh_network_address(a->kernel->options.pool, a->job->slot), err);
    if (rc != BH_OK)
        return rc;
    rc = kernel_end_rules(a, err);
    if (rc != BH_OK)
        return rc;
    if (a->job->mode == BH_NETWORK_EGRESS)
        rc = kernel_forward(a->kernel, err);
    if (rc != BH_OK)
        return rc;
    rc = kernel_set_up_here(a, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_link_await(a->inside, JOBS_INTERFACE, err);
    if (rc != BH_OK)
        return rc;
    return bh_link_await(a->kernel->links, a->name, err);
}

static bh_rc kernel_detach(void *self, uint32_t slot, struct bh_err *err);

static bh_rc
kernel_attach(void *self, const struct bh_network_job *job, const struct bh_network_place *place,
              struct bh_err *err)
{
    struct kernel *kernel = self;
    struct attaching a = {
        .kernel = kernel, .job = job, .place = place, .change = { .answer = -1 }, .inside = -1
    };
    struct bh_err ignored;
    bh_rc rc;

    BH_ASSERT(job->mode != BH_NETWORK_NONE);
    if (kernel_find(kernel, job->slot))
        return bh_err_set(err, BH_CONFLICT, "slot %u has a network already", job->slot);
    if (!bh_network_has_address(kernel->options.pool, job->slot) || kernel->count == JOBS_MAX) {
        bh_err_set(err, BH_RANGE, "network_pool has no address for job slot %u", job->slot);
        return bh_err_hint(err, "make network_pool of node.conf larger, or uid_ranges smaller");
    }
    rc = job->mode == BH_NETWORK_EGRESS ? kernel_record_forwarding(kernel, err) : BH_OK;
    if (rc != BH_OK)
        return rc;
    kernel->jobs[kernel->count++] = *job;
    bh_rules_interface(job->slot, a.name);
    rc = kernel_make_all(&a, err);
    bh_fd_close(a.inside);
    if (rc == BH_OK)
        return rc;
    (void)!bh_filter_end(&a.change, &ignored);
    (void)!kernel_detach(kernel, job->slot, &ignored);
    bh_netns_unmount(place);
    return rc;
}

/* ---- detaching ---- */

static bool
kernel_is_last_of_group(const struct kernel *kernel, const struct bh_network_job *job)
{
    for (uint32_t i = 0; i < kernel->count; i++)
        if (kernel->jobs[i].mode == job->mode && kernel->jobs[i].group == job->group)
            return false;
    return true;
}

/* `job` is in the list no more. */
static bh_rc
kernel_drop_rules(struct kernel *kernel, const struct bh_network_job *job, struct bh_err *err)
{
    const struct bh_rules_site site = kernel_site_of(kernel);
    struct bh_filter_change change = { .answer = -1 };
    struct bh_buf text;
    bh_rc rc;

    if (kernel->count == 0 || !kernel_is_ready(kernel))
        return kernel_rebuild(kernel, err);
    bh_buf_init(&text, RULES_BYTES_MAX);
    bh_rules_drop_job(&text, &site, job, kernel_is_last_of_group(kernel, job));
    rc = kernel_start(kernel, &text, &change, err);
    if (rc == BH_OK)
        rc = bh_filter_end(&change, err);
    bh_buf_fini(&text);
    return rc == BH_CONFLICT ? kernel_rebuild(kernel, err) : rc;
}

static bh_rc
kernel_detach(void *self, uint32_t slot, struct bh_err *err)
{
    struct kernel *kernel = self;
    struct bh_network_job *found = kernel_find(kernel, slot), job;
    char name[BH_NETWORK_NAME];
    bh_rc rc;

    if (!found)
        return BH_OK;
    bh_rules_interface(slot, name);
    rc = bh_link_remove(kernel->links, name, err);
    if (rc != BH_OK && rc != BH_NOT_FOUND)
        return rc;
    job = *found;
    *found = kernel->jobs[--kernel->count];
    rc = kernel_drop_rules(kernel, &job, err);
    kernel_stop_forwarding(kernel);
    if (rc != BH_OK)
        return rc;
    return bh_filter_forget(kernel->filters, bh_network_address(kernel->options.pool, slot), err);
}

/* ---- after a start, and when another program changed the rules ---- */

struct strays {
    struct kernel *kernel;
    char names[JOBS_MAX][BH_NETWORK_NAME];
    uint32_t count;
};

static void
kernel_add_stray(const char *name, void *self)
{
    struct strays *strays = self;

    if (strncmp(name, BH_NETWORK_PREFIX, strlen(BH_NETWORK_PREFIX)) != 0 || strays->count == JOBS_MAX)
        return;
    for (uint32_t i = 0; i < strays->kernel->count; i++) {
        char ours[BH_NETWORK_NAME];

        bh_rules_interface(strays->kernel->jobs[i].slot, ours);
        if (strcmp(name, ours) == 0)
            return;
    }
    snprintf(strays->names[strays->count++], BH_NETWORK_NAME, "%.15s", name);
}

static bh_rc
kernel_remove_strays(struct kernel *kernel, struct bh_err *err)
{
    static struct strays strays; /* one thread */
    bh_rc rc;

    strays.kernel = kernel;
    strays.count = 0;
    rc = bh_link_each(kernel->links, kernel_add_stray, &strays, err);
    for (uint32_t i = 0; i < strays.count && rc == BH_OK; i++) {
        rc = bh_link_remove(kernel->links, strays.names[i], err);
        rc = rc == BH_NOT_FOUND ? BH_OK : rc;
    }
    return rc;
}

static bh_rc
kernel_restore(void *self, const struct bh_network_job *jobs, uint32_t count, struct bh_err *err)
{
    struct kernel *kernel = self;
    bh_rc rc;

    BH_ASSERT(count <= JOBS_MAX);
    if (count > 0)
        memcpy(kernel->jobs, jobs, count * sizeof *jobs);
    kernel->count = count;
    rc = kernel_remove_strays(kernel, err);
    if (rc == BH_OK)
        rc = kernel_rebuild(kernel, err);
    kernel_stop_forwarding(kernel);
    return rc;
}

static int
kernel_watch(void *self)
{
    const struct kernel *kernel = self;

    return kernel->changes;
}

static bh_rc
kernel_repair(void *self, bool *ret_made, struct bh_err *err)
{
    struct kernel *kernel = self;

    bh_filter_drain(kernel->changes);
    *ret_made = kernel->count > 0 && !kernel_is_ready(kernel);
    return *ret_made ? kernel_rebuild(kernel, err) : BH_OK;
}

/* ---- the rest ---- */

static bh_rc
kernel_check(void *self, enum bh_network_mode mode, struct bh_err *err)
{
    struct kernel *kernel = self;
    bh_rc rc = bh_filter_check(kernel->options.nft, err);
    bool off;

    if (rc == BH_OK && mode == BH_NETWORK_EGRESS)
        rc = kernel_check_egress(kernel, err);
    for (uint32_t i = 0; i < kernel->options.uplink_count && rc == BH_OK; i++)
        if (mode == BH_NETWORK_EGRESS)
            rc = kernel_check_uplink(kernel, kernel->options.uplinks[i], &off, err);
    return rc;
}

static bh_rc
kernel_counters(void *self, uint32_t slot, struct bh_network_counters *ret_counters, struct bh_err *err)
{
    struct kernel *kernel = self;
    struct bh_network_counters here;
    struct bh_rules_count count;
    char name[BH_NETWORK_NAME];
    bh_rc rc;

    if (!kernel_find(kernel, slot))
        return bh_err_set(err, BH_NOT_FOUND, "slot %u has no network", slot);
    bh_rules_interface(slot, name);
    rc = bh_link_count(kernel->links, name, &here, err);
    if (rc != BH_OK)
        return rc;
    count = kernel_denied(kernel, slot);
    *ret_counters = (struct bh_network_counters){
        /* what the machine sent, the job received */
        .rx_bytes = here.tx_bytes,     .rx_packets = here.tx_packets, .tx_bytes = here.rx_bytes,
        .tx_packets = here.rx_packets, .denied_bytes = count.bytes,   .denied_packets = count.packets,
    };
    return BH_OK;
}

static void
kernel_close(void *self)
{
    struct kernel *kernel = self;

    bh_fd_close(kernel->home);
    bh_fd_close(kernel->links);
    bh_fd_close(kernel->filters);
    bh_fd_close(kernel->changes);
    free(kernel->jobs);
    free(kernel);
}

static const struct bh_network_ops kernel_ops = {
    .name = "kernel",
    .check = kernel_check,
    .attach = kernel_attach,
    .detach = kernel_detach,
    .restore = kernel_restore,
    .watch = kernel_watch,
    .repair = kernel_repair,
    .counters = kernel_counters,
    .close = kernel_close,
};

bh_rc
bh_kernel_network_open(const struct bh_kernel_options *options, struct bh_network *ret_network,
                       struct bh_err *err)
{
    struct kernel *kernel = calloc(1, sizeof *kernel);
    char path[BH_PROC_PATH_MAX];
    bh_rc rc;

    BH_ASSERT(kernel);
    kernel->options = *options;
    kernel->jobs = calloc(JOBS_MAX, sizeof *kernel->jobs);
    BH_ASSERT(kernel->jobs);
    kernel->links = kernel->filters = kernel->changes = -1;
    bh_proc_path(BH_PROC_SELF, "ns/net", path);
    kernel->home = open(path, O_RDONLY | O_CLOEXEC);
    rc = kernel->home < 0 ? bh_err_errno(err, "open %s", path) : BH_OK;
    if (rc == BH_OK)
        rc = bh_netlink_open(NETLINK_ROUTE, &kernel->links, err);
    if (rc == BH_OK)
        rc = bh_netlink_open(NETLINK_NETFILTER, &kernel->filters, err);
    if (rc == BH_OK)
        rc = bh_filter_watch(&kernel->changes, err);
    if (rc != BH_OK) {
        kernel_close(kernel);
        return rc;
    }
    *ret_network = (struct bh_network){ &kernel_ops, kernel };
    return BH_OK;
}
