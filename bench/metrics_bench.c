/* What a scrape costs: GET /metrics of a site with so many jobs that run (each with a network and a
 * sample) and so many that wait, on 1g.10gb of H100s.  Prints the request's time, how often and how
 * long it held the owner thread, and the size of the text.
 *
 * usage: metrics_bench [RUNNING [WAITING]]   1000 and 0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fixture_test.h"
#include "base/assert.h"
#include "base/time.h"
#include "engine/step/engine.h"

enum { A_GPU = 7, ROUNDS = 20, INVENTORY_MAX = 8 << 20 };

static struct received got;

static struct bh_engine *
new_engine(uint32_t gpus, uint32_t jobs)
{
    struct bh_engine_caps caps = { .tenants = 16,
                                   .skus = 8,
                                   .nodes = 4,
                                   .gpus = gpus + 1,
                                   .jobs = jobs + 64,
                                   .leases = 2 * gpus * A_GPU,
                                   .partitions = 32 * gpus,
                                   .classes = 256,
                                   .metered = 16 };
    size_t size = (bh_engine_size(&caps) + 15) & ~(size_t)15;
    void *memory = aligned_alloc(16, size);

    BH_ASSERT(memory);
    return bh_engine_init(memory, &caps);
}

static void
fill(struct fixture *f, uint32_t gpus, uint32_t running, uint32_t waiting)
{
    struct bh_event sku = { .kind = BH_EV_SKU };
    struct bh_dir_gpu *named = calloc(gpus, sizeof *named);

    BH_ASSERT(named);
    for (uint32_t i = 0; i < f->dir.tenant_count; i++)
        bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_TENANT,
                                              .u.tenant = { .tenant = f->dir.tenants[i].id,
                                                            .parent = f->dir.tenants[i].parent,
                                                            .kind = f->dir.tenants[i].kind,
                                                            .limit = BH_UNLIMITED } });
    sku.u.sku = (struct bh_ev_sku){ .sku = { 1 }, .grade = BH_GRADE_C, .model_count = 1 };
    sku.u.sku.models[0] =
        (struct bh_sku_model){ BH_GPU_H100_80GB, bh_profile_find(BH_GPU_H100_80GB, "1g.10gb")->id.v };
    bh_fixture_step(f, sku);
    bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_NODE, .u.node = { { 1 }, true } });
    for (uint32_t gpu = 1; gpu <= gpus; gpu++) {
        char *uuid = malloc(24);

        BH_ASSERT(uuid);
        snprintf(uuid, 24, "GPU-%u", gpu);
        named[gpu - 1] = (struct bh_dir_gpu){ { gpu }, uuid };
        bh_fixture_step(f, (struct bh_event){ .kind = BH_EV_GPU,
                                              .u.gpu = { .gpu = { gpu },
                                                         .node = { 1 },
                                                         .model = BH_GPU_H100_80GB,
                                                         .managed = true,
                                                         .mig_capable = true } });
    }
    f->dir.gpus = named;
    f->dir.gpu_count = gpus;
    for (uint32_t job = 1; job <= running + waiting; job++) {
        bh_fixture_submit(f, job, 2, 1, 1);
        if (job <= running)
            bh_fixture_answer_orders(f);
    }
}

static void
fill_inventory(struct bh_buf *out, uint32_t gpus, uint32_t running)
{
    bh_buf_puts(out, "{\"gpus\":[");
    for (uint32_t gpu = 1; gpu <= gpus; gpu++)
        bh_buf_printf(out,
                      "%s{\"index\":%u,\"memory_mib\":81559,\"power_mw\":70000,\"product\":"
                      "\"NVIDIA H100 80GB HBM3\",\"temperature_c\":41,\"uuid\":\"GPU-%u\"}",
                      gpu > 1 ? "," : "", gpu, gpu);
    bh_buf_puts(out, "],\"node\":\"n1\",\"samples\":{\"instances\":[");
    for (uint32_t i = 0; i < running; i++)
        bh_buf_printf(
            out,
            "%s{\"busy_bp\":5000,\"dram_bp\":2500,\"gi\":%u,\"gpu\":\"GPU-%u\",\"memory_mib\":9984,"
            "\"memory_used_mib\":400,\"partition\":%u,\"profile\":\"1g.10gb\",\"sm_bp\":4000,\"tensor_bp\":100}",
            i > 0 ? "," : "", 7 + i % A_GPU, 1 + i / A_GPU, i + 1);
    bh_buf_puts(out, "],\"sensors\":[");
    for (uint32_t gpu = 1; gpu <= gpus; gpu++)
        bh_buf_printf(
            out,
            "%s{\"energy_mj\":123456789,\"gpu\":\"GPU-%u\",\"memory_clock_mhz\":2619,\"memory_temperature_c\":44,"
            "\"pcie_receive_bytes_s\":2000,\"pcie_replays\":0,\"pcie_transmit_bytes_s\":1000,\"reserved_mib\":551,"
            "\"sm_clock_mhz\":1980,\"vgpu_licensed\":0}",
            gpu > 1 ? "," : "", gpu);
    bh_buf_puts(out, "],\"samples\":[");
    for (uint32_t lease = 1; lease <= running; lease++)
        bh_buf_printf(out, "%s{\"cpu_ns\":123456789,\"lease\":%u,\"memory_bytes\":12345678}",
                      lease > 1 ? "," : "", lease);
    bh_buf_puts(out, "]},\"traffic\":[");
    for (uint32_t job = 1; job <= running; job++)
        bh_buf_printf(out,
                      "%s{\"denied_bytes\":0,\"denied_packets\":0,\"job\":%u,\"rx_bytes\":"
                      "123456,\"rx_packets\":99,\"tx_bytes\":123456,\"tx_packets\":99}",
                      job > 1 ? "," : "", job);
    bh_buf_puts(out, "]}");
}

int
main(int argc, char **argv)
{
    uint32_t running = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1000;
    uint32_t waiting = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
    uint32_t gpus = (running + A_GPU - 1) / A_GPU;
    struct fixture *f = bh_fixture_open();
    struct bh_buf inventory;
    uint64_t begun;

    free(f->engine);
    f->engine = new_engine(gpus, running + waiting);
    fill(f, gpus, running, waiting);
    bh_buf_init(&inventory, INVENTORY_MAX);
    fill_inventory(&inventory, gpus, running);
    f->inventory = bh_buf_text(&inventory);
    f->asks = f->ask_ns = f->ask_most_ns = 0;
    begun = bh_time_monotonic();
    for (int round = 0; round < ROUNDS; round++) {
        bh_fixture_send(f, &(struct sent){ .method = BH_GET, .path = "/metrics", .uid = CAROL }, &got);
        BH_ASSERT(got.status == 200);
    }
    printf("%u running, %u waiting: %" PRIu64 " us a scrape; owner thread: %" PRIu64 " turns, %" PRIu64
           " us together, %" PRIu64 " us the longest\n",
           running, waiting, (bh_time_monotonic() - begun) / ROUNDS / 1000, f->asks / ROUNDS,
           f->ask_ns / ROUNDS / 1000, f->ask_most_ns / 1000);
    return 0;
}
