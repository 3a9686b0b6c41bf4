#include "web/live_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/json.h"

enum { EVENT_BYTES_MAX = 8 << 20 };

static struct bh_live_text *
live_text_new(const char *bytes, size_t length)
{
    struct bh_live_text *text = malloc(sizeof *text + length);

    BH_ASSERT(text);
    text->uses = 1;
    text->length = length;
    memcpy(text->bytes, bytes, length);
    return text;
}

void
bh_live_text_put_back(struct bh_live_text *text)
{
    if (text && --text->uses == 0)
        free(text);
}

struct bh_live_text *
bh_live_text_of_panel(const char *id, const char *html)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = EVENT_BYTES_MAX };
    struct bh_json_writer w;

    bh_buf_puts(&out, "event: panel\ndata: ");
    w = bh_json_begin(&out);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "html", html);
    bh_json_str(&w, "id", id);
    bh_json_close(&w, '}');
    bh_buf_puts(&out, "\n\n");
    return bh_buf_text(&out) ? live_text_new(out.bytes, out.length) : NULL;
}
