/* What a server may send to the CLI: no reply does harm, and in which partitions it comes changes
 * nothing of what is made of it.
 *
 * The first byte says how large the partitions are. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "cli/client/http.h"
#include "tests/fuzz/fuzz.h"

enum { BODY_MAX = 1 << 16 };

struct outcome {
    struct bh_http_parser parser;
    char body[BODY_MAX];
    size_t length;
    bh_rc rc;
};

static struct outcome whole, partitions;

static bool
take(void *self, const char *bytes, size_t length)
{
    struct outcome *outcome = self;

    if (length > sizeof outcome->body - outcome->length)
        return false;
    memcpy(outcome->body + outcome->length, bytes, length);
    outcome->length += length;
    return true;
}

static void
parse(struct outcome *outcome, const char *bytes, size_t size, size_t step)
{
    struct bh_err err;

    outcome->length = 0;
    outcome->rc = BH_OK;
    bh_http_parser_init(&outcome->parser, take, outcome);
    for (size_t at = 0; at < size && outcome->rc == BH_OK; at += step)
        outcome->rc =
            bh_http_parser_feed(&outcome->parser, bytes + at, size - at < step ? size - at : step, &err);
    if (outcome->rc == BH_OK)
        outcome->rc = bh_http_parser_end(&outcome->parser, &err);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > BODY_MAX)
        return 0;
    parse(&whole, (const char *)data + 1, size - 1, size);
    parse(&partitions, (const char *)data + 1, size - 1, (size_t)data[0] + 1);
    BH_ASSERT(whole.rc == partitions.rc);
    BH_ASSERT(whole.parser.status == partitions.parser.status);
    BH_ASSERT(whole.parser.retry_after_s == partitions.parser.retry_after_s);
    BH_ASSERT(strcmp(whole.parser.challenge, partitions.parser.challenge) == 0);
    BH_ASSERT(strcmp(whole.parser.content_type, partitions.parser.content_type) == 0);
    BH_ASSERT(whole.length == partitions.length && memcmp(whole.body, partitions.body, whole.length) == 0);
    return 0;
}
