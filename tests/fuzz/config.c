/* Configuration files: whatever is read keeps within the table's ranges, and a
 * refusal names the line. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/params.h"
#include "tests/fuzz/fuzz.h"

struct config {
    const char *listen;
    uint32_t port;
    uint64_t patience, memory;
    bool quiet;
    struct bh_param_list roots;
};

#define ROW(member, k, ...)                                                                                  \
    {                                                                                                        \
        .name = #member, .kind = k, .offset = offsetof(struct config, member), .doc = "-", __VA_ARGS__       \
    }
static const struct bh_param rows[] = {
    ROW(listen, BH_PARAM_TEXT, .standard = "/run/x"),
    ROW(port, BH_PARAM_U32, .low = 1, .high = 65535, .standard = "8080"),
    ROW(patience, BH_PARAM_SPAN, .high = 3600000000000, .standard = "5s"),
    ROW(memory, BH_PARAM_BYTES, .low = 4096, .standard = "64Mi"),
    ROW(quiet, BH_PARAM_BOOL),
    ROW(roots, BH_PARAM_LIST),
};
static const struct bh_params params = { rows, BH_COUNT(rows) };

static void
check(const struct config *config)
{
    BH_ASSERT(config->port >= 1 && config->port <= 65535);
    BH_ASSERT(config->patience <= 3600000000000);
    BH_ASSERT(config->memory >= 4096);
    BH_ASSERT(!strchr(config->listen, '\n'));
    BH_ASSERT(config->roots.count <= BH_PARAM_LIST_MAX);
    for (uint32_t i = 0; i < config->roots.count; i++)
        BH_ASSERT(!strchr(config->roots.items[i], '\n'));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BH_AUTO(bh_arena_free) struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    struct config config;
    struct bh_err err = { 0 };
    char *text = bh_fuzz_text(data, size);

    if (bh_params_parse(&params, text, &config, arena, &err) == BH_OK)
        check(&config);
    else
        BH_ASSERT(strncmp(err.msg, "line ", 5) == 0);
    free(text);
    return 0;
}
