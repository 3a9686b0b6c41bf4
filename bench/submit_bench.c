/* Durable submissions per second over the unix socket, one request a job.
 *
 *   submit_bench SOCKET CLIENTS JOBS TENANT SKU [held|run]
 *
 * CLIENTS threads with a keep-alive connection each submit JOBS jobs in all; prints
 * submissions/s and the median and 99th percentile of a request's time. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/time.h"

static struct {
    const char *socket;
    char request[1024];
    size_t length;
    uint32_t jobs;
    uint64_t *spans;
} bench;
static atomic_uint next_job, failed;

static bool
read_reply(int fd)
{
    char memory[4096];
    size_t length = 0;

    for (;;) {
        ssize_t n = read(fd, memory + length, sizeof memory - 1 - length);
        const char *end, *size;

        if (n <= 0)
            return false;
        length += (size_t)n;
        memory[length] = '\0';
        end = strstr(memory, "\r\n\r\n");
        size = strcasestr(memory, "content-length: ");
        if (end && size && length >= (size_t)(end + 4 - memory) + strtoul(size + 16, NULL, 10))
            return strncmp(memory, "HTTP/1.1 2", 10) == 0;
    }
}

static void *
run_client(void *unused)
{
    struct bh_err err;
    int fd;
    uint32_t job;

    if (bh_unix_connect(bench.socket, &fd, &err) != BH_OK) {
        atomic_fetch_add(&failed, 1);
        return NULL;
    }
    while ((job = atomic_fetch_add(&next_job, 1)) < bench.jobs) {
        bh_ns begun = bh_time_monotonic();

        if (bh_fd_write_all(fd, bench.request, bench.length, &err) != BH_OK || !read_reply(fd))
            atomic_fetch_add(&failed, 1);
        bench.spans[job] = bh_time_monotonic() - begun;
    }
    close(fd);
    return NULL;
}

static int
compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static void
make_request(char **argv)
{
    char body[512];
    int n = snprintf(body, sizeof body, "{\"args\":[\"true\"],\"hold\":%s,\"sku\":\"%s\",\"tenant\":\"%s\"}",
                     argv[6] && strcmp(argv[6], "run") == 0 ? "false" : "true", argv[5], argv[4]);

    bench.length = (size_t)snprintf(bench.request, sizeof bench.request,
                                    "POST /v1/jobs HTTP/1.1\r\nHost: bulkhead\r\n"
                                    "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                                    n, body);
}

int
main(int argc, char **argv)
{
    pthread_t threads[64];
    struct bh_err err;
    uint32_t clients;
    bh_ns begun, span;

    if (argc < 6 || bh_parse_u32(argv[2], 1, 64, &clients, &err) != BH_OK
        || bh_parse_u32(argv[3], 1, 10000000, &bench.jobs, &err) != BH_OK) {
        fprintf(stderr, "usage: submit_bench SOCKET CLIENTS JOBS TENANT SKU [held|run]\n");
        return 2;
    }
    bench.socket = argv[1];
    make_request(argv);
    bench.spans = calloc(bench.jobs, sizeof *bench.spans);
    begun = bh_time_monotonic();
    for (uint32_t i = 0; i < clients; i++)
        pthread_create(&threads[i], NULL, run_client, NULL);
    for (uint32_t i = 0; i < clients; i++)
        pthread_join(threads[i], NULL);
    span = bh_time_monotonic() - begun;
    qsort(bench.spans, bench.jobs, sizeof *bench.spans, compare);
    printf("{\"clients\":%u,\"jobs\":%u,\"failed\":%u,\"per_s\":%llu,\"p50_us\":%llu,\"p99_us\":%llu}\n",
           clients, bench.jobs, atomic_load(&failed), (unsigned long long)(bench.jobs * BH_NS_PER_S / span),
           (unsigned long long)(bench.spans[bench.jobs / 2] / 1000),
           (unsigned long long)(bench.spans[bench.jobs / 100 * 99] / 1000));
    free(bench.spans);
    return atomic_load(&failed) ? 1 : 0;
}
