/* What a page of jobs costs: GET /v1/jobs?limit=1000 of 1,000 jobs, from the store to the JSON text.
 * Prints CPU time a page and its size. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "api/fixture_test.h"
#include "base/assert.h"

enum { JOBS = 1000, PAGES = 300, REPLY_BYTES_MAX = 64 << 20 };

static const char *
limit_of(const struct bh_request *request, const char *name)
{
    return strcmp(name, "limit") == 0 ? "1000" : NULL;
}

static void
each_parameter(const struct bh_request *request,
               void (*sink)(void *self, const char *name, const char *value), void *self)
{
    sink(self, "limit", "1000");
}

static uint64_t
cpu_ns(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

int
main(void)
{
    struct fixture *f = bh_fixture_open();
    struct bh_transport transport = { .unix_socket = true, .uid = CAROL };
    struct bh_request request = { .method = BH_GET,
                                  .path = "/v1/jobs",
                                  .body = "",
                                  .transport = &transport,
                                  .query = limit_of,
                                  .each_query = each_parameter };
    struct bh_reply reply = { 0 };
    uint64_t begun;

    for (uint64_t job = 1; job <= JOBS; job++)
        bh_fixture_put_job(f, job, 2, 1, job % 2 ? "running" : "completed");
    bh_buf_init(&reply.body, REPLY_BYTES_MAX);
    request.arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    begun = cpu_ns();
    for (int page = 0; page < PAGES; page++) {
        bh_buf_clear(&reply.body);
        bh_arena_reset(request.arena);
        bh_api_handle(f->api, &request, &reply);
        BH_ASSERT(reply.status == 200);
    }
    printf("%d jobs: %" PRIu64 " us of CPU a page of %zu bytes\n", JOBS, (cpu_ns() - begun) / PAGES / 1000,
           reply.body.length);
    bh_arena_free(request.arena);
    bh_buf_fini(&reply.body);
    bh_fixture_close(f);
    return 0;
}
