#include "lab/openb/run.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "base/time.h"
#include "lab/openb/rounding.h"

enum { NODES_MAX = 1 << 20, ARRIVALS_MAX = 1 << 26 };

/* What a run needs and writes down, to be summed up when it is over. */
struct run_cluster {
    uint32_t nodes;
    uint64_t arrivals;
    uint64_t *used;    /* milli-GPUs after each arrival */
    uint32_t *span_ns; /* of each decision, or NULL */
    uint32_t *shapes;  /* kind: number in the index */
    struct bh_pack *pack;
    struct bh_openb_rounding *rounding;
};

static void
run_cluster_fini_auto(struct run_cluster *cluster)
{
    free(cluster->used);
    free(cluster->span_ns);
    free(cluster->shapes);
    free(cluster->pack);
    free(cluster->rounding);
}

static bh_rc
run_build_index(const struct bh_openb_plan *plan, struct run_cluster *cluster, struct bh_err *err)
{
    const struct bh_openb_load *load = plan->load;
    const struct bh_openb_list *order = &plan->order->nodes;
    uint32_t node = 0;

    for (uint32_t copy = 0; copy < plan->scale; copy++)
        for (uint32_t i = 0; i < order->count; i++)
            bh_pack_set_node(cluster->pack, node++, &plan->trace->nodes[order->at[i]].has);
    for (uint32_t k = 0; k < load->kind_count; k++)
        cluster->shapes[k] = bh_pack_shape(cluster->pack, &load->kinds[k].shape);
    for (uint32_t k = 0; k < load->expected_count; k++) {
        uint32_t shape = bh_pack_shape(cluster->pack, &load->expected[k].shape);

        if (!bh_pack_expect(cluster->pack, shape, load->expected[k].count))
            return bh_err_set(err, BH_RANGE, "the expected pods ask for over %d amounts of cores or GPU",
                              BH_PACK_AMOUNTS_MAX);
    }
    cluster->rounding = bh_openb_rounding_new(load->expected, load->expected_count, load->unexpected);
    return BH_OK;
}

/* Place one pod if there is room; the milli-GPUs it got. */
static uint64_t
run_place(struct run_cluster *cluster, const struct bh_openb_pod *pod, uint32_t shape, bool *ret_placed)
{
    struct bh_pack_rounding rounding = { bh_openb_rounding_seems_loss, cluster->rounding };
    struct bh_pack_placement placement;

    *ret_placed = bh_pack_find_rounded(cluster->pack, shape, &rounding, &placement);
    if (!*ret_placed)
        return 0;
    bh_pack_acquire(cluster->pack, shape, &placement);
    return (uint64_t)pod->shape.gpus * pod->milli;
}

static uint64_t
run_place_all(const struct bh_openb_plan *plan, struct run_cluster *cluster)
{
    const struct bh_openb_list *order = &plan->order->pods;
    uint64_t used = 0, placed = 0, before = 0;

    for (uint64_t i = 0, next = 0; i < cluster->arrivals; i++) {
        uint32_t pod = order->at[next];
        bool fits;

        next = next + 1 < order->count ? next + 1 : 0;
        if (cluster->span_ns)
            before = bh_time_monotonic();
        used += run_place(cluster, &plan->trace->pods[pod], cluster->shapes[plan->load->kind_of[pod]], &fits);
        if (cluster->span_ns)
            cluster->span_ns[i] = (uint32_t)(bh_time_monotonic() - before);
        placed += fits;
        cluster->used[i] = used;
    }
    return placed;
}

/* As the artifact's analysis does: numpy rounds half to even, as nearbyint. */
static void
run_sum_up_points(const struct bh_openb_plan *plan, const struct run_cluster *cluster,
                  struct bh_openb_result *result)
{
    const struct bh_openb_list *order = &plan->order->pods;
    double percent = (double)(plan->trace->gpu_milli * plan->scale) / 100;
    double sum[BH_OPENB_POINTS] = { 0 };
    uint64_t count[BH_OPENB_POINTS] = { 0 }, arrived = 0;

    for (uint64_t i = 0; i < cluster->arrivals; i++) {
        const struct bh_openb_pod *pod = &plan->trace->pods[order->at[i % order->count]];
        double load;

        arrived += (uint64_t)pod->shape.gpus * pod->milli;
        load = nearbyint((double)arrived / percent);
        if (load >= BH_OPENB_POINTS)
            break;
        sum[(int)load] += nearbyint((double)cluster->used[i] / percent * 100) / 100;
        count[(int)load]++;
    }
    for (int i = 0; i < BH_OPENB_POINTS; i++)
        result->point[i] = count[i] ? sum[i] / (double)count[i] : -1;
}

static int
run_compare_spans(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

static void
run_sum_up_spans(const struct run_cluster *cluster, struct bh_openb_result *result)
{
    uint64_t last = cluster->arrivals - 1;

    qsort(cluster->span_ns, cluster->arrivals, sizeof *cluster->span_ns, run_compare_spans);
    result->p50_ns = cluster->span_ns[last / 2];
    result->p99_ns = cluster->span_ns[last * 99 / 100];
    result->p999_ns = cluster->span_ns[last * 999 / 1000];
}

static uint64_t
run_processor_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * BH_NS_PER_S + (uint64_t)now.tv_nsec;
}

static void *
run_allocate(size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);

    BH_ASSERT(memory);
    return memory;
}

/* Everything that counts as the run's time. */
static bh_rc
run_fill_cluster(const struct bh_openb_plan *plan, struct run_cluster *cluster,
                 struct bh_openb_result *result, struct bh_err *err)
{
    struct bh_pack_caps caps = { cluster->nodes, plan->load->kind_count + plan->load->expected_count };
    uint64_t begun = bh_time_monotonic(), cpu = run_processor_ns();
    bh_rc rc;

    cluster->pack = bh_pack_init(run_allocate(1, bh_pack_size(&caps)), &caps, plan->policy);
    rc = run_build_index(plan, cluster, err);
    if (rc != BH_OK)
        return rc;
    result->tables_ns = run_processor_ns();
    bh_pack_prepare(cluster->pack);
    result->tables_ns = run_processor_ns() - result->tables_ns;
    result->placed = run_place_all(plan, cluster);
    result->cpu_ns = run_processor_ns() - cpu;
    result->span_ns = bh_time_monotonic() - begun;
    return BH_OK;
}

/* FGD's measure is a sum over the expected pods; this is its mean. */
static uint64_t
run_fragmented(const struct bh_openb_plan *plan, const struct run_cluster *cluster)
{
    uint64_t weights = plan->load->unexpected;

    for (uint32_t k = 0; k < plan->load->expected_count; k++)
        weights += plan->load->expected[k].count;
    return weights ? bh_pack_fragmentation(cluster->pack) / weights : 0;
}

bh_rc
bh_openb_run(const struct bh_openb_plan *plan, struct bh_openb_result *ret_result, struct bh_err *err)
{
    BH_AUTO(run_cluster_fini)
    struct run_cluster cluster = { .nodes = 0 };
    uint64_t nodes = (uint64_t)plan->order->nodes.count * plan->scale;
    bh_rc rc;

    cluster.arrivals = (uint64_t)plan->order->pods.count * plan->scale;
    if (nodes > NODES_MAX || cluster.arrivals > ARRIVALS_MAX)
        return bh_err_set(err, BH_RANGE, "over %d nodes or %d arrivals", NODES_MAX, ARRIVALS_MAX);
    cluster.nodes = (uint32_t)nodes;
    cluster.used = run_allocate(cluster.arrivals, sizeof *cluster.used);
    cluster.shapes = run_allocate(plan->load->kind_count, sizeof *cluster.shapes);
    if (plan->latency)
        cluster.span_ns = run_allocate(cluster.arrivals, sizeof *cluster.span_ns);
    rc = run_fill_cluster(plan, &cluster, ret_result, err);
    if (rc != BH_OK)
        return rc;
    ret_result->arrivals = cluster.arrivals;
    ret_result->nodes = cluster.nodes;
    ret_result->fragmented = run_fragmented(plan, &cluster);
    ret_result->gpus = plan->trace->gpu_milli / BH_OPENB_MILLI * plan->scale;
    run_sum_up_points(plan, &cluster, ret_result);
    if (plan->latency)
        run_sum_up_spans(&cluster, ret_result);
    return BH_OK;
}
