/* bulkhead-scrub: runs in a sandbox of its own, on one partition.  It takes all memory that the
 * partition has, looks what samples of it hold, fills it, reads the samples back, clears it,
 * and says what it saw in one line (node/common/scrub_report.h).  What it reads it counts and does
 * not show.
 *
 * A sample is the first 64 bytes of each page of 2 MiB, those of a chunk in one copy: one call
 * each would take longer than all the fills.  Some pages are read whole. */

#include <dlfcn.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/num.h"
#include "base/splitmix.h"
#include "bulkhead/cuda_abi.h"
#include "node/common/scrub_report.h"

enum { CHUNKS_MAX = 4096, SAMPLE_BYTES = 64, WHOLE_PAGES = 16, LEAST_PERCENT = 85, LINE_MAX_ = 2048 };
#define PAGE_BYTES ((size_t)2 << 20)
#define CHUNK_BYTES ((size_t)1 << 30)
#define PATTERN 0xb17bead5u

/* Each call with its real type. */
/* clang-format off */
#define CALLS(X) \
    X(cuInit) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetUuid_v2) X(cuDeviceTotalMem_v2) \
    X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease_v2) X(cuCtxSetCurrent) \
    X(cuCtxSynchronize) X(cuMemGetInfo_v2) X(cuMemAlloc_v2) X(cuMemFree_v2) X(cuMemsetD32_v2) \
    X(cuMemcpyDtoH_v2) X(cuMemcpy2D_v2) X(cuDeviceGetAttribute) X(cuGetErrorName)
/* clang-format on */

static struct {
#define CALL(name) __typeof__(name) *name;
    CALLS(CALL)
#undef CALL
} cuda;

struct scrub_chunk {
    CUdeviceptr address;
    size_t bytes;
};

struct scrub_scrub {
    struct bh_scrub_report report;
    const char *wanted;   /* UUID of the partition, or NULL */
    uint64_t seed;        /* chooses the pages that are read whole */
    uint64_t most;        /* bytes; 0: all.  Others use the device, and were promised the rest */
    uint64_t whole_every; /* one page in so many */
    struct scrub_chunk chunk[CHUNKS_MAX];
    size_t chunks;
    unsigned char page[PAGE_BYTES];
    unsigned char samples[CHUNK_BYTES / PAGE_BYTES * SAMPLE_BYTES];
};

static bool
scrub_program_refuse(struct scrub_scrub *scrub, const char *what, CUresult rc)
{
    const char *name = NULL;

    if (!cuda.cuGetErrorName || cuda.cuGetErrorName(rc, &name) != CUDA_SUCCESS || !name)
        name = "unknown error";
    scrub->report.end = BH_SCRUB_END_REFUSED;
    snprintf(scrub->report.why, sizeof scrub->report.why, "%s: %s (%d)", what, name, (int)rc);
    return false;
}

static bool
scrub_fail_with(struct scrub_scrub *scrub, enum bh_scrub_end end, const char *why)
{
    scrub->report.end = end;
    snprintf(scrub->report.why, sizeof scrub->report.why, "%s", why);
    return false;
}

/* ---- the library ---- */

static bool
scrub_program_load(struct scrub_scrub *scrub)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    const char *why = library ? NULL : dlerror();

    if (!library)
        return scrub_fail_with(scrub, BH_SCRUB_END_NO_LIBRARY, why ? why : "no libcuda.so.1");
#define CALL(name)                                                                                           \
    cuda.name = (__typeof__(name) *)dlsym(library, #name);                                                   \
    if (!cuda.name)                                                                                          \
        return scrub_fail_with(scrub, BH_SCRUB_END_REFUSED, "libcuda.so.1 has no " #name);
    CALLS(CALL)
#undef CALL
    return true;
}

static void
scrub_put_uuid(char *text, size_t size, const char *prefix, const CUuuid *uuid)
{
    size_t used = (size_t)snprintf(text, size, "%s-", prefix);

    for (size_t i = 0; i < sizeof uuid->bytes && used + 4 < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%02x",
                                 i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                                 (unsigned)(unsigned char)uuid->bytes[i]);
}

/* One device, and the one that was meant: filling another's memory would be worse than
 * filling none. */
static bool
scrub_program_open_device(struct scrub_scrub *scrub, CUdevice *ret_device)
{
    const char *prefix = scrub->wanted && strncmp(scrub->wanted, "MIG-", 4) == 0 ? "MIG" : "GPU";
    CUresult rc = cuda.cuInit(0);
    CUcontext context;
    CUuuid uuid;
    int count = 0;

    if (rc == CUDA_SUCCESS)
        rc = cuda.cuDeviceGetCount(&count);
    if (rc != CUDA_SUCCESS)
        return scrub_program_refuse(scrub, "cuInit", rc);
    if (count != 1)
        return scrub_fail_with(scrub, BH_SCRUB_END_REFUSED, "not exactly one device is visible");
    rc = cuda.cuDeviceGet(ret_device, 0);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuDeviceGetUuid_v2(&uuid, *ret_device);
    if (rc != CUDA_SUCCESS)
        return scrub_program_refuse(scrub, "cuDeviceGetUuid", rc);
    scrub_put_uuid(scrub->report.uuid, sizeof scrub->report.uuid, prefix, &uuid);
    if (scrub->wanted && strcmp(scrub->wanted, scrub->report.uuid) != 0)
        return scrub_fail_with(scrub, BH_SCRUB_END_REFUSED, "the visible device is a different one");
    rc = cuda.cuDevicePrimaryCtxRetain(&context, *ret_device);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuCtxSetCurrent(context);
    return rc == CUDA_SUCCESS ? true : scrub_program_refuse(scrub, "cuDevicePrimaryCtxRetain", rc);
}

/* ---- its memory ---- */

/* Everything there is, in partitions that get smaller until not even a page is left. */
static bool
scrub_program_allocate_all(struct scrub_scrub *scrub, CUdevice device)
{
    size_t total = 0, size = CHUNK_BYTES;
    CUresult rc = cuda.cuDeviceTotalMem_v2(&total, device);

    if (rc != CUDA_SUCCESS)
        return scrub_program_refuse(scrub, "cuDeviceTotalMem", rc);
    scrub->report.memory_bytes = total;
    while (size >= PAGE_BYTES && scrub->chunks < CHUNKS_MAX) {
        struct scrub_chunk *chunk = &scrub->chunk[scrub->chunks];

        if (scrub->most && size > scrub->most - scrub->report.bytes) {
            size /= 2;
            continue;
        }

        rc = cuda.cuMemAlloc_v2(&chunk->address, size);
        if (rc == CUDA_ERROR_OUT_OF_MEMORY) {
            size /= 2;
            continue;
        }
        if (rc != CUDA_SUCCESS)
            return scrub_program_refuse(scrub, "cuMemAlloc", rc);
        chunk->bytes = size;
        scrub->chunks++;
        scrub->report.bytes += size;
    }
    if (!scrub->most && scrub->report.bytes / LEAST_PERCENT < total / 100)
        return scrub_fail_with(scrub, BH_SCRUB_END_REFUSED, "most of the memory is in use");
    return true;
}

static bool
scrub_fill_all(struct scrub_scrub *scrub, uint32_t word)
{
    CUresult rc = CUDA_SUCCESS;

    for (size_t i = 0; i < scrub->chunks && rc == CUDA_SUCCESS; i++)
        rc = cuda.cuMemsetD32_v2(scrub->chunk[i].address, word, scrub->chunk[i].bytes / sizeof word);
    if (rc == CUDA_SUCCESS)
        rc = cuda.cuCtxSynchronize();
    return rc == CUDA_SUCCESS ? true : scrub_program_refuse(scrub, "cuMemsetD32", rc);
}

static bool
scrub_is_filled(const unsigned char *bytes, size_t length, uint32_t word)
{
    for (size_t i = 0; i < length; i += sizeof word) {
        if (memcmp(bytes + i, &word, sizeof word) != 0)
            return false;
    }
    return true;
}

/* The samples of a chunk. */
static CUresult
scrub_read_samples(struct scrub_scrub *scrub, const struct scrub_chunk *chunk)
{
    const CUDA_MEMCPY2D rows = { .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                                 .srcDevice = chunk->address,
                                 .srcPitch = PAGE_BYTES,
                                 .dstMemoryType = CU_MEMORYTYPE_HOST,
                                 .dstHost = scrub->samples,
                                 .dstPitch = SAMPLE_BYTES,
                                 .WidthInBytes = SAMPLE_BYTES,
                                 .Height = chunk->bytes / PAGE_BYTES };

    return cuda.cuMemcpy2D_v2(&rows);
}

/* Samples that hold something else than `word`. */
static bool
scrub_program_sample(struct scrub_scrub *scrub, uint32_t word, uint64_t *ret_others)
{
    uint64_t page = 0, others = 0;

    for (size_t i = 0; i < scrub->chunks; i++) {
        const struct scrub_chunk *chunk = &scrub->chunk[i];
        CUresult rc = scrub_read_samples(scrub, chunk);

        for (size_t n = 0; rc == CUDA_SUCCESS && n < chunk->bytes / PAGE_BYTES; n++, page++) {
            bool filled = scrub_is_filled(scrub->samples + n * SAMPLE_BYTES, SAMPLE_BYTES, word);

            if (bh_splitmix_at(scrub->seed, page) % scrub->whole_every == 0) {
                rc = cuda.cuMemcpyDtoH_v2(scrub->page, chunk->address + n * PAGE_BYTES, PAGE_BYTES);
                filled = filled && scrub_is_filled(scrub->page, PAGE_BYTES, word);
            }
            others += !filled;
        }
        if (rc != CUDA_SUCCESS)
            return scrub_program_refuse(scrub, "cuMemcpyDtoH", rc);
    }
    scrub->report.samples = page;
    *ret_others = others;
    return true;
}

static uint64_t
scrub_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Twice a clock, since memory of GPUs moves two words in each; 0: not known. */
static uint64_t
scrub_peak_mib_s(CUdevice device)
{
    int khz = 0, bits = 0;

    if (cuda.cuDeviceGetAttribute(&khz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) != CUDA_SUCCESS
        || cuda.cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device)
               != CUDA_SUCCESS)
        return 0;
    return (uint64_t)khz * 2000 * ((uint64_t)bits / 8) >> 20;
}

static void
scrub_program_run(struct scrub_scrub *scrub)
{
    struct bh_scrub_report *report = &scrub->report;
    uint64_t left = 0;
    CUdevice device;

    if (!scrub_program_load(scrub) || !scrub_program_open_device(scrub, &device)
        || !scrub_program_allocate_all(scrub, device))
        return;
    scrub->whole_every = report->bytes / PAGE_BYTES / WHOLE_PAGES + 1;
    report->peak_mib_s = scrub_peak_mib_s(device);
    report->work_ns = scrub_clock_ns();
    if (!scrub_program_sample(scrub, 0, &report->residue) || !scrub_fill_all(scrub, PATTERN)
        || !scrub_program_sample(scrub, PATTERN, &report->unfilled) || !scrub_fill_all(scrub, 0)
        || !scrub_program_sample(scrub, 0, &left))
        return;
    report->work_ns = scrub_clock_ns() - report->work_ns;
    if (left > report->unfilled)
        report->unfilled = left;
    report->end = report->unfilled ? BH_SCRUB_END_UNFILLED : BH_SCRUB_END_CLEAN;
    for (size_t i = 0; i < scrub->chunks; i++)
        cuda.cuMemFree_v2(scrub->chunk[i].address);
    cuda.cuDevicePrimaryCtxRelease_v2(device);
}

/* ---- the program ---- */

static int
scrub_program_print(const struct bh_scrub_report *report)
{
    char line[LINE_MAX_];
    struct bh_buf out;

    bh_buf_init_fixed(&out, line, sizeof line);
    bh_buf_puts(&out, BH_SCRUB_PREFIX);
    bh_json_encode(&out, &bh_scrub_report_fields, report);
    bh_buf_putc(&out, '\n');
    if (out.overflow || fwrite(out.bytes, 1, out.length, stdout) != out.length || fflush(stdout) != 0)
        return 1;
    return 0;
}

int
main(int argc, char **argv)
{
    static const struct option names[] = {
        { "uuid", required_argument, NULL, 'u' },
        { "seed", required_argument, NULL, 's' },
        { "most", required_argument, NULL, 'm' },
        { NULL, 0, NULL, 0 },
    };
    static struct scrub_scrub scrub;
    struct bh_err err;

    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        if (option == 'u')
            scrub.wanted = optarg;
        else if ((option != 's' && option != 'm')
                 || bh_parse_u64(optarg, option == 's' ? &scrub.seed : &scrub.most, &err) != BH_OK) {
            fputs("usage: bulkhead-scrub [--uuid UUID] [--seed N] [--most BYTES]\n"
                  "It is started by bulkhead-node in a sandbox, on one partition.\n",
                  stderr);
            return 2;
        }
    }
    scrub_program_run(&scrub);
    return scrub_program_print(&scrub.report);
}
