#include "node/sandbox/network.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "job_network/kernel.h"
#include "node/common/exit_record.h"
#include "node/common/path.h"
#include "node/sandbox/network_conf.h"
#include "node/sandbox/network_hosts.h"

enum { RECORD_MAX = 64 << 10, HOSTS_MAX = 4 << 20, TENANT_SIZE = 120 };

/* The record in a job's folder. */
struct network_record {
    uint32_t mode;
    uint64_t bandwidth_bps, job;
    uint32_t gang, member, group, slot;
    char tenant[TENANT_SIZE];
    const char *name;
    struct bh_texts allow, deny;
};

/* A job that has a network. */
struct attached {
    uint64_t lease;
    struct network_record record;
    struct bh_network_lists lists;
    struct bh_network_counters counters; /* as last read */
    struct bh_arena *arena;              /* of the record */
};

struct bh_networks {
    struct bh_network_conf conf;
    struct bh_network network; /* ops NULL: none */
    struct attached *jobs[BH_JOBS_MAX];
    uint32_t count;
    char marker[BH_NODE_PATH_MAX];
};

static const struct bh_field record_rows[] = {
    BH_F(struct network_record, allow, BH_FIELD_TEXTS, .max = BH_NET_RULES_MAX),
    BH_F(struct network_record, bandwidth_bps, BH_FIELD_U64),
    BH_F(struct network_record, deny, BH_FIELD_TEXTS, .max = BH_NET_RULES_MAX),
    BH_F(struct network_record, gang, BH_FIELD_U32),
    BH_F(struct network_record, group, BH_FIELD_U32),
    BH_F(struct network_record, job, BH_FIELD_U64),
    BH_F(struct network_record, member, BH_FIELD_U32),
    BH_F_ENUM(struct network_record, mode, bh_network_mode_names),
    BH_F(struct network_record, name, BH_FIELD_TEXT),
    BH_F(struct network_record, slot, BH_FIELD_U32),
    BH_F(struct network_record, tenant, BH_FIELD_STR),
};
static const struct bh_fields record_fields = BH_FIELDS("job_network", struct network_record, record_rows);

/* ---- one job ---- */

static void
network_free_attached(struct attached *attached)
{
    if (attached && attached->arena)
        bh_arena_free(attached->arena);
    free(attached);
}
BH_AUTO_DEFINE(struct attached *, network_free_attached)

static void
network_assert(const struct bh_networks *networks)
{
    BH_ASSERT(networks->count <= BH_COUNT(networks->jobs));
    BH_ASSERT(networks->count == 0 || (networks->network.ops && networks->jobs[networks->count - 1]));
}

static struct attached *
network_new_attached(uint64_t lease)
{
    struct attached *attached = calloc(1, sizeof *attached);

    BH_ASSERT(attached);
    attached->lease = lease;
    attached->arena = bh_arena_new(RECORD_MAX * 4);
    return attached;
}

static struct bh_network_job
network_job_of(const struct attached *attached)
{
    return (struct bh_network_job){
        .slot = attached->record.slot,
        .mode = (enum bh_network_mode)attached->record.mode,
        .group = attached->record.group,
        .bandwidth_bps = attached->record.bandwidth_bps,
        .allow = attached->lists.allow,
        .allow_count = attached->lists.allow_count,
        .deny = attached->lists.deny,
        .deny_count = attached->lists.deny_count,
    };
}

static bool
network_are_peers(const struct attached *a, const struct attached *b)
{
    return a->record.mode == BH_NETWORK_TENANT && b->record.mode == BH_NETWORK_TENANT
           && strcmp(a->record.tenant, b->record.tenant) == 0;
}

/* A tenant's number: that of its jobs here, or the lowest that no other tenant has. */
static uint32_t
network_group_for(const struct bh_networks *networks, const struct attached *attached)
{
    uint32_t group = 1;

    network_assert(networks);
    for (uint32_t i = 0; i < networks->count; i++)
        if (network_are_peers(networks->jobs[i], attached))
            return networks->jobs[i]->record.group;
    for (uint32_t i = 0; i < networks->count; i++)
        if (networks->jobs[i]->record.group == group) {
            group++;
            i = UINT32_MAX; /* from the first again */
        }
    return group;
}

/* ---- the file in its folder ---- */

static void
network_path_in(const struct bh_node *node, uint64_t lease, const char *name, char ret_path[BH_NODE_PATH_MAX])
{
    char folder[BH_NODE_PATH_MAX];

    bh_node_job_folder(node, lease, folder);
    bh_path_format(ret_path, BH_NODE_PATH_MAX, "%.480s/%s", folder, name);
}

static bh_rc
network_write_record(const struct bh_node *node, const struct attached *attached, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    network_path_in(node, attached->lease, "network", path);
    bh_buf_init(&text, RECORD_MAX);
    bh_json_encode(&text, &record_fields, &attached->record);
    rc = text.overflow ? bh_err_set(err, BH_FULL, "the lists are too long")
                       : bh_file_replace(path, text.bytes, text.length, 0600, err);
    bh_buf_fini(&text);
    return rc;
}

static bh_rc
network_read_record(const struct bh_node *node, struct attached *attached, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    network_path_in(node, attached->lease, "network", path);
    bh_buf_init(&text, RECORD_MAX);
    rc = bh_file_read(path, RECORD_MAX - 1, &text, err);
    if (rc == BH_OK)
        rc = bh_json_decode(text.bytes, text.length, &record_fields, &attached->record, attached->arena, err);
    bh_buf_fini(&text);
    if (rc != BH_OK)
        return rc;
    rc = bh_network_lists_read(&attached->record.allow, &attached->record.deny, &attached->lists, err);
    if (rc != BH_OK)
        return rc;
    if (attached->record.mode == BH_NETWORK_NONE)
        return bh_err_set(err, BH_INVALID, "%s names no network", path);
    return BH_OK;
}

/* ---- /etc/hosts of peers ---- */

static struct bh_network_host
network_host_of(const struct bh_networks *networks, const struct attached *attached)
{
    const struct network_record *record = &attached->record;

    return (struct bh_network_host){
        .address = bh_network_address(networks->conf.pool, record->slot),
        .job = record->job,
        .gang = record->gang,
        .member = record->member,
        .name = record->name ? record->name : "",
        .tenant = record->tenant,
    };
}

/* The text for a job: itself, and the jobs that it reaches. */
static void
network_put_hosts(const struct bh_networks *networks, const struct attached *attached, struct bh_buf *out)
{
    struct bh_network_host *hosts = calloc(networks->count + 1, sizeof *hosts);
    uint32_t count = 0;

    BH_ASSERT(hosts);
    for (uint32_t i = 0; i < networks->count; i++)
        if (networks->jobs[i] == attached || network_are_peers(networks->jobs[i], attached))
            hosts[count++] = network_host_of(networks, networks->jobs[i]);
    bh_network_hosts_put(out, hosts, count);
    free(hosts);
}

static bh_rc
network_write_hosts(const struct bh_node *node, const struct attached *attached, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    network_path_in(node, attached->lease, "hosts", path);
    bh_buf_init(&text, HOSTS_MAX);
    network_put_hosts(node->networks, attached, &text);
    rc = text.overflow ? bh_err_set(err, BH_FULL, "too many peers")
                       : bh_network_hosts_write(path, text.bytes, text.length, err);
    bh_buf_fini(&text);
    return rc;
}

/* All that reach `attached`, which came or goes. */
static void
network_notify_peers(const struct bh_node *node, const struct attached *attached)
{
    const struct bh_networks *networks = node->networks;
    struct bh_err err;

    for (uint32_t i = 0; i < networks->count; i++)
        if (networks->jobs[i] != attached && network_are_peers(networks->jobs[i], attached)
            && network_write_hosts(node, networks->jobs[i], &err) != BH_OK)
            bh_log(EFFECT_FAILED, BH_U64("lease", networks->jobs[i]->lease), BH_ERRLOG(&err));
}

/* ---- files of the bundle ---- */

static bh_rc
network_make_empty(const char *folder, const char *name, struct bh_err *err)
{
    char path[BH_NODE_PATH_MAX];
    BH_AUTO(bh_fd_close) int fd = -1;

    bh_path_format(path, sizeof path, "%.480s/%s", folder, name);
    return bh_file_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0644, &fd, err);
}

/* The file of the job's folder, in the bundle: a node that comes later finds it by its folder,
 * and writes what this job reads. */
static bh_rc
network_mount_hosts(const struct bh_node *node, const struct attached *attached, const char *bundle,
                    struct bh_err *err)
{
    char from[BH_NODE_PATH_MAX], to[BH_NODE_PATH_MAX];
    bh_rc rc = network_write_hosts(node, attached, err);

    network_path_in(node, attached->lease, "hosts", from);
    bh_path_format(to, sizeof to, "%.480s/hosts", bundle);
    if (rc != BH_OK)
        return rc;
    rc = network_make_empty(bundle, "hosts", err);
    if (rc != BH_OK)
        return rc;
    if (mount(from, to, NULL, MS_BIND, NULL) != 0)
        return bh_err_errno(err, "mount %s", from);
    return BH_OK;
}

static bh_rc
network_write_resolvers(const char *bundle, const struct bh_texts *resolvers, struct bh_err *err)
{
    static const char order[] = "passwd: files\ngroup: files\nhosts: files dns\n";
    char memory[200], path[BH_NODE_PATH_MAX];
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init_fixed(&text, memory, sizeof memory);
    for (uint32_t i = 0; i < resolvers->count; i++)
        bh_buf_printf(&text, "nameserver %s\n", resolvers->items[i]);
    bh_path_format(path, sizeof path, "%.480s/resolv.conf", bundle);
    rc = bh_file_replace(path, text.bytes, text.length, 0644, err);
    bh_path_format(path, sizeof path, "%.480s/nsswitch.conf", bundle);
    return rc == BH_OK ? bh_file_replace(path, order, strlen(order), 0644, err) : rc;
}

bh_rc
bh_networks_make_places(const char *root, struct bh_err *err)
{
    static const char *const names[] = { "etc/hosts", "etc/resolv.conf", "etc/nsswitch.conf" };
    bh_rc rc = bh_path_make_below(root, "/etc", err);

    for (size_t i = 0; i < BH_COUNT(names) && rc == BH_OK; i++)
        rc = network_make_empty(root, names[i], err);
    return rc;
}

void
bh_networks_unmount(const char *bundle)
{
    static const char *const names[] = { "hosts", "sys", "space" };
    char path[BH_NODE_PATH_MAX];

    for (size_t i = 0; i < BH_COUNT(names); i++) {
        bh_path_format(path, sizeof path, "%.480s/%s", bundle, names[i]);
        umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW);
    }
}

/* ---- attaching ---- */

static bh_rc
network_fill(const struct bh_networks *networks, const struct bh_networks_request *request,
             struct attached *attached, struct bh_err *err)
{
    const struct bh_msg_network *asked = request->network;
    struct network_record *record = &attached->record;
    bh_rc rc = bh_network_lists_read(&asked->allow, &asked->deny, &attached->lists, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_network_conf_check(&networks->conf, asked, &attached->lists, err);
    if (rc != BH_OK)
        return rc;
    *record = (struct network_record){
        .mode = asked->mode,
        .job = request->start->job,
        .gang = request->start->gang,
        .member = request->start->member,
        .slot = request->job->record.slot,
        .bandwidth_bps = bh_network_conf_bandwidth(&networks->conf, asked->bandwidth_bps),
        .allow = asked->allow,
        .deny = asked->deny,
        .name = bh_arena_strdup(attached->arena, asked->name ? asked->name : ""),
    };
    snprintf(record->tenant, sizeof record->tenant, "%s", request->start->tenant);
    record->group = network_group_for(networks, attached);
    return record->name ? BH_OK : bh_err_set(err, BH_FULL, "the name is too long");
}

static bh_rc
network_make_files(const struct bh_node *node, const struct bh_networks_request *request,
                   const struct attached *attached, struct bh_networks_files *ret_files, struct bh_err *err)
{
    bool outward = attached->record.mode == BH_NETWORK_EGRESS;
    char sys[BH_NODE_PATH_MAX];
    bh_rc rc = network_mount_hosts(node, attached, request->bundle, err);

    *ret_files = (struct bh_networks_files){ { "hosts", "resolv.conf", "nsswitch.conf" }, outward ? 3 : 1 };
    if (rc == BH_OK && outward)
        rc = network_write_resolvers(request->bundle, &request->network->resolvers, err);
    if (rc == BH_OK)
        rc = network_make_empty(request->bundle, "space", err);
    bh_path_format(sys, sizeof sys, "%.480s/sys", request->bundle);
    return rc == BH_OK ? bh_dir_make(sys, 0755, err) : rc;
}

static bh_rc
make_network(const struct bh_networks *networks, const struct bh_networks_request *request,
             const struct attached *attached, struct bh_err *err)
{
    const struct bh_network_job job = network_job_of(attached);
    char space[BH_NODE_PATH_MAX], sys[BH_NODE_PATH_MAX];
    const struct bh_network_place place = { space, sys };

    bh_path_format(space, sizeof space, "%.480s/space", request->bundle);
    bh_path_format(sys, sizeof sys, "%.480s/sys", request->bundle);
    return networks->network.ops->attach(networks->network.self, &job, &place, err);
}

bh_rc
bh_networks_attach(struct bh_node *node, const struct bh_networks_request *request,
                   struct bh_networks_files *ret_files, struct bh_err *err)
{
    struct bh_networks *networks = node->networks;
    BH_AUTO(network_free_attached) struct attached *attached = network_new_attached(request->start->lease);
    bh_rc rc = network_fill(networks, request, attached, err);

    network_assert(networks);
    BH_ASSERT(networks->count < BH_JOBS_MAX);
    if (rc == BH_OK)
        rc = network_write_record(node, attached, err);
    attached->record.allow = attached->record.deny = (struct bh_texts){ 0 }; /* the order's */
    networks->jobs[networks->count++] = attached;                            /* it is in its own hosts file */
    if (rc == BH_OK)
        rc = network_make_files(node, request, attached, ret_files, err);
    if (rc == BH_OK)
        rc = make_network(networks, request, attached, err);
    if (rc != BH_OK) {
        networks->count--;
        return rc;
    }
    network_notify_peers(node, attached);
    bh_steal(&attached);
    return BH_OK;
}

/* ---- what was carried ---- */

static struct bh_msg_traffic_item
network_item_of(const struct attached *attached, bool final)
{
    const struct bh_network_counters *counters = &attached->counters;

    return (struct bh_msg_traffic_item){
        .lease = attached->lease,
        .job = attached->record.job,
        .final = final,
        .rx_bytes = counters->rx_bytes,
        .rx_packets = counters->rx_packets,
        .tx_bytes = counters->tx_bytes,
        .tx_packets = counters->tx_packets,
        .denied_bytes = counters->denied_bytes,
        .denied_packets = counters->denied_packets,
    };
}

/* Counters that can no longer be read keep their last value. */
static void
network_count(const struct bh_networks *networks, struct attached *attached)
{
    struct bh_err ignored;

    (void)!networks->network.ops->counters(networks->network.self, attached->record.slot, &attached->counters,
                                           &ignored);
}

int
bh_networks_watch(const struct bh_node *node)
{
    const struct bh_network *network = &node->networks->network;

    return network->ops ? network->ops->watch(network->self) : -1;
}

void
bh_networks_repair(struct bh_node *node)
{
    const struct bh_network *network = &node->networks->network;
    bool made = false;
    struct bh_err err;

    if (network->ops->repair(network->self, &made, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "packet filter"), BH_ERRLOG(&err));
    else if (made)
        bh_log(NETWORK_REPAIRED);
}

void
bh_networks_report(struct bh_node *node)
{
    struct bh_networks *networks = node->networks;
    struct bh_msg_traffic traffic = { .at_ns = bh_time_now() };
    struct bh_msg_traffic_item *items;

    network_assert(networks);
    bh_node_assert(node);
    if (networks->count == 0)
        return;
    bh_networks_repair(node); /* what could not be done before is tried again */
    items = calloc(networks->count, sizeof *items);
    BH_ASSERT(items);
    for (uint32_t i = 0; i < networks->count; i++) {
        network_count(networks, networks->jobs[i]);
        items[i] = network_item_of(networks->jobs[i], false);
    }
    traffic.items = (struct bh_list){ items, networks->count };
    bh_node_send(node, BH_MSG_TRAFFIC, &traffic);
    free(items);
}

static struct bh_msg_carried
network_carried_of(const struct bh_network_counters *counters)
{
    return (struct bh_msg_carried){
        .counted = true,
        .rx_bytes = counters->rx_bytes,
        .rx_packets = counters->rx_packets,
        .tx_bytes = counters->tx_bytes,
        .tx_packets = counters->tx_packets,
        .denied_bytes = counters->denied_bytes,
        .denied_packets = counters->denied_packets,
    };
}

static struct attached *
network_find_attached(const struct bh_networks *networks, uint64_t lease)
{
    network_assert(networks);
    for (uint32_t i = 0; i < networks->count; i++)
        if (networks->jobs[i]->lease == lease)
            return networks->jobs[i];
    return NULL;
}

void
bh_networks_record(const struct bh_node *node, struct bh_job *job)
{
    struct attached *attached = network_find_attached(node->networks, job->record.lease);
    char folder[BH_NODE_PATH_MAX];
    struct bh_err err;

    if (!attached)
        return;
    network_count(node->networks, attached);
    job->end.carried = network_carried_of(&attached->counters);
    bh_node_job_folder(node, job->record.lease, folder);
    if (bh_exit_record_write(folder, &job->end, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
}

void
bh_networks_detach(struct bh_node *node, uint64_t lease)
{
    struct bh_networks *networks = node->networks;
    BH_AUTO(network_free_attached) struct attached *attached = NULL;
    struct bh_msg_traffic_item item;
    struct bh_err err;

    network_assert(networks);
    for (uint32_t i = 0; i < networks->count && !attached; i++)
        if (networks->jobs[i]->lease == lease) {
            attached = networks->jobs[i];
            networks->jobs[i] = networks->jobs[--networks->count];
        }
    if (!attached)
        return;
    network_count(networks, attached);
    item = network_item_of(attached, true);
    bh_node_send(node, BH_MSG_TRAFFIC, &(struct bh_msg_traffic){ bh_time_now(), { &item, 1 } });
    if (networks->network.ops->detach(networks->network.self, attached->record.slot, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_U64("lease", lease), BH_ERRLOG(&err));
    network_notify_peers(node, attached);
}

/* ---- opening ---- */

static bh_rc
network_open_back_end(const struct bh_node *node, struct bh_networks *networks, struct bh_err *err)
{
    const struct bh_conf *conf = &node->conf;
    struct bh_kernel_options options = {
        .nft = conf->nft,
        .marker = networks->marker,
        .pool = networks->conf.pool,
        .uplinks = conf->network_uplinks.items,
        .uplink_count = conf->network_uplinks.count,
        .deny = networks->conf.deny,
        .deny_count = networks->conf.deny_count,
        .may_forward = conf->network_forwarding != 0,
    };

    bh_path_format(networks->marker, sizeof networks->marker, "%.480s/forwarding", conf->run_dir);
    return bh_kernel_network_open(&options, &networks->network, err);
}

bh_rc
bh_networks_open(struct bh_node *node, struct bh_err *err)
{
    struct bh_networks *networks = calloc(1, sizeof *networks);
    bh_rc rc;

    BH_ASSERT(networks);
    node->networks = networks;
    rc = bh_network_conf_read(&node->conf, &networks->conf, err);
    if (rc == BH_OK && networks->conf.used)
        rc = network_open_back_end(node, networks, err);
    for (int mode = BH_NETWORK_TENANT; mode < BH_NETWORK_MODES && rc == BH_OK; mode++) {
        struct bh_err why;

        if (networks->conf.offered[mode]
            && networks->network.ops->check(networks->network.self, (enum bh_network_mode)mode, &why)
                   != BH_OK)
            bh_log(NETWORK_ABSENT, BH_STR("network", bh_network_mode_names[mode]), BH_ERRLOG(&why),
                   BH_STR("next", why.hint));
    }
    return rc;
}

void
bh_networks_close(struct bh_networks *networks)
{
    if (!networks)
        return;
    for (uint32_t i = 0; i < networks->count; i++)
        network_free_attached(networks->jobs[i]);
    if (networks->network.ops)
        networks->network.ops->close(networks->network.self);
    free(networks);
}

/* A job whose network cannot be read has lost it: it is cut off. */
static void
network_adopt(struct bh_node *node, const struct bh_job *job)
{
    BH_AUTO(network_free_attached) struct attached *attached = network_new_attached(job->record.lease);
    struct bh_err err;
    bh_rc rc = network_read_record(node, attached, &err);

    if (rc == BH_OK) {
        node->networks->jobs[node->networks->count++] = attached;
        bh_steal(&attached);
    } else if (rc != BH_NOT_FOUND) {
        bh_log(EFFECT_FAILED, BH_U64("lease", job->record.lease), BH_ERRLOG(&err));
    }
}

void
bh_networks_restore(struct bh_node *node)
{
    struct bh_networks *networks = node->networks;
    struct bh_network_job *jobs = calloc(node->state.job_count + 1, sizeof *jobs);
    struct bh_err err;

    BH_ASSERT(jobs);
    for (uint32_t i = 0; i < node->state.job_count && networks->network.ops; i++)
        if (!node->state.jobs[i].ended)
            network_adopt(node, &node->state.jobs[i]);
    for (uint32_t i = 0; i < networks->count; i++)
        jobs[i] = network_job_of(networks->jobs[i]);
    if (networks->network.ops
        && networks->network.ops->restore(networks->network.self, jobs, networks->count, &err) != BH_OK)
        bh_log(EFFECT_FAILED, BH_STR("what", "networks of jobs"), BH_ERRLOG(&err));
    for (uint32_t i = 0; i < networks->count; i++)
        if (network_write_hosts(node, networks->jobs[i], &err) != BH_OK)
            bh_log(EFFECT_FAILED, BH_U64("lease", networks->jobs[i]->lease), BH_ERRLOG(&err));
    free(jobs);
}
