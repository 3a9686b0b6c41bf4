#ifndef BH_CLI_CLIENT_SSE_H
#define BH_CLI_CLIENT_SSE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Server-sent events, as they come in parts of any size. */

enum { BH_SSE_EVENT_MAX = 1 << 20 };

/* One event: its name ("message" by default) and its data; false ends the stream. */
typedef bool (*bh_sse_sink)(void *self, const char *event, const char *text, size_t length);

struct bh_sse {
    char event[32];
    struct bh_buf line, text;
    bool has_text;
    bh_sse_sink sink;
    void *sink_self;
};

void bh_sse_init(struct bh_sse *sse, bh_sse_sink sink, void *self);
void bh_sse_fini(struct bh_sse *sse);

/* A bh_http_sink over a bh_sse.  False when the sink ended the stream or when an
 * event is larger than BH_SSE_EVENT_MAX. */
bool bh_sse_feed(void *sse, const char *bytes, size_t length);

#endif
