#include "cli/client/sse.h"

#include <string.h>

void
bh_sse_init(struct bh_sse *sse, bh_sse_sink sink, void *self)
{
    *sse = (struct bh_sse){ .sink = sink, .sink_self = self };
    bh_buf_init(&sse->line, BH_SSE_EVENT_MAX);
    bh_buf_init(&sse->text, BH_SSE_EVENT_MAX);
}

void
bh_sse_fini(struct bh_sse *sse)
{
    bh_buf_fini(&sse->line);
    bh_buf_fini(&sse->text);
}

/* An empty line: the event is complete. */
static bool
dispatch(struct bh_sse *sse)
{
    const char *text = bh_buf_text(&sse->text);
    bool more = text != NULL;

    if (more && sse->has_text)
        more = sse->sink(sse->sink_self, *sse->event ? sse->event : "message", text, sse->text.length);
    bh_buf_clear(&sse->text);
    *sse->event = '\0';
    sse->has_text = false;
    return more;
}

static bool
sse_take_line(struct bh_sse *sse, const char *line)
{
    size_t name = strcspn(line, ":");
    const char *value = line + name + (line[name] == ':');

    value += *value == ' ';
    if (!*line)
        return dispatch(sse);
    if (name == 4 && strncmp(line, "data", name) == 0) {
        if (sse->has_text)
            bh_buf_putc(&sse->text, '\n');
        bh_buf_puts(&sse->text, value);
        sse->has_text = true;
    } else if (name == 5 && strncmp(line, "event", name) == 0 && strlen(value) < sizeof sse->event) {
        memcpy(sse->event, value, strlen(value) + 1);
    }
    return true; /* comments, ids and retry times are ignored */
}

bool
bh_sse_feed(void *self, const char *bytes, size_t length)
{
    struct bh_sse *sse = self;

    while (length > 0) {
        const char *end = memchr(bytes, '\n', length);
        size_t take = end ? (size_t)(end - bytes) : length;
        const char *line;

        bh_buf_put(&sse->line, bytes, take);
        if (!end)
            return !sse->line.overflow;
        bytes += take + 1;
        length -= take + 1;
        if (sse->line.length > 0 && sse->line.bytes[sse->line.length - 1] == '\r')
            sse->line.length--;
        line = bh_buf_text(&sse->line);
        if (!line || !sse_take_line(sse, line))
            return false;
        bh_buf_clear(&sse->line);
    }
    return true;
}
