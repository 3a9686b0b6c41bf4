#include "cli/jobs/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/fd.h"
#include "base/slice.h"
#include "base/time.h"
#include "cli/client/sse.h"
#include "cli/jobs/jobs.h"

#define AWAY_MAX_NS (60 * BH_NS_PER_S)
#define RETRY_NS (100 * BH_NS_PER_MS)

enum { PATH_BYTES_MAX = 4096 };

/* A stream of output on its way to standard output. */
struct output {
    struct bh_follow *follow;
    struct bh_err *err;
    bh_rc rc;  /* of writing */
    bool some; /* something came over this connection */
};

static bool
follow_write_bytes(struct output *out, const char *bytes, size_t length)
{
    out->rc = bh_fd_write_all(STDOUT_FILENO, bytes, length, out->err);
    if (out->rc == BH_OK)
        out->follow->offset += length;
    return out->rc == BH_OK;
}

/* {"text":"..."}: a part of the output.  Bytes that are no text come as base64. */
static bool
follow_read_log(struct output *out, const char *text, size_t length)
{
    struct bh_slice event = { text, length }, value;
    char *bytes = malloc(length + 1);
    bool ok = bytes != NULL;

    if (ok && bh_slice_get(event, "text", &value) && bh_slice_str(value, bytes, length + 1)) {
        ok = follow_write_bytes(out, bytes, strlen(bytes));
    } else if (ok && bh_slice_get(event, "base64", &value) && value.length >= 2) {
        struct bh_buf decoded;

        bh_buf_init_fixed(&decoded, bytes, length + 1);
        ok = bh_base64_decode(&decoded, value.text + 1, value.length - 2)
             && follow_write_bytes(out, decoded.bytes, decoded.length);
    }
    free(bytes);
    return ok;
}

static bool
follow_read_event(void *self, const char *event, const char *text, size_t length)
{
    struct output *out = self;

    out->some = true;
    if (strcmp(event, "log") == 0)
        return follow_read_log(out, text, length);
    if (strcmp(event, "denied") == 0) {
        out->rc = bh_err_set(out->err, BH_DENIED, "you may not read this job's output any more");
        return false;
    }
    if (strcmp(event, "end") != 0)
        return true;
    out->follow->ended = true;
    return false;
}

static bool
follow_ask_idle(void *self)
{
    struct bh_sse *sse = self;
    struct output *out = sse->sink_self;
    struct bh_follow *follow = out->follow;

    if (!follow->idle || follow->idle(follow->idle_self))
        return true;
    follow->left = true;
    return false;
}

/* One connection, as long as it lasts. */
static bh_rc
follow_once(struct output *out, struct bh_err *err)
{
    struct bh_sse sse;
    struct bh_exchange exchange = { .sink = bh_sse_feed, .idle = follow_ask_idle, .self = &sse };
    struct bh_http_request request = { .method = "GET", .accept = "text/event-stream" };
    char path[160], rest[100];
    bh_rc rc;

    snprintf(rest, sizeof rest, "/logs?follow=true&member=%" PRIu64 "&offset=%" PRIu64, out->follow->member,
             out->follow->offset);
    rc = bh_cli_job_path(out->follow->job, rest, path, sizeof path, err);
    if (rc != BH_OK)
        return rc;
    request.path = path;
    bh_sse_init(&sse, follow_read_event, out);
    rc = bh_client_send(&out->follow->cli->client, &request, &exchange, err);
    bh_sse_fini(&sse);
    return rc;
}

static bool
follow_is_over(const struct output *out)
{
    return out->rc != BH_OK || out->follow->ended || out->follow->left;
}

bh_rc
bh_follow_output(struct bh_follow *follow, struct bh_err *err)
{
    struct bh_err writing;
    struct output out = { .follow = follow, .err = &writing };
    bh_ns away_since = bh_time_monotonic();

    for (;;) {
        bh_rc rc = follow_once(&out, err);

        if (out.rc != BH_OK) {
            *err = writing;
            return out.rc;
        }
        if (follow_is_over(&out))
            return BH_OK;
        if (rc != BH_OK && rc != BH_UNAVAILABLE && rc != BH_UNCERTAIN)
            return rc;
        if (rc == BH_OK || out.some)
            away_since = bh_time_monotonic();
        if (bh_time_monotonic() - away_since > AWAY_MAX_NS)
            return rc;
        out.some = false;
        bh_time_sleep(RETRY_NS);
        if (follow->idle && !follow->idle(follow->idle_self)) {
            follow->left = true;
            return BH_OK;
        }
    }
}

/* ---- changes of state ---- */

static bool
follow_print_change(void *self, const char *event, const char *text, size_t length)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err unread;
    char memory[64];
    struct bh_buf when;
    bh_json_value change;

    if (bh_json_parse(text, length, &json, &unread) != BH_OK)
        return true; /* a heartbeat or an unknown kind of event */
    change = bh_json_root(json);
    if (!bh_json_get(change, "state"))
        return true;
    bh_buf_init_fixed(&when, memory, sizeof memory);
    bh_time_put_utc(&when, bh_json_number(bh_json_get(change, "at_ns"), bh_time_now()));
    bh_buf_putc(&when, '\0');
    if (bh_cli_output(self) == BH_OUT_JSON)
        printf("%s\n", text);
    else
        printf("%s  job %" PRIu64 "  %s  %s\n", memory, bh_json_number(bh_json_get(change, "job"), 0),
               bh_json_text(bh_json_get(change, "state"), "-"),
               bh_json_text(bh_json_get(change, "reason"), ""));
    return fflush(stdout) == 0;
}

bh_rc
bh_follow_changes(const struct bh_cli *cli, struct bh_err *err)
{
    struct bh_sse sse;
    struct bh_exchange exchange = { .sink = bh_sse_feed, .self = &sse };
    struct bh_http_request request = { .method = "GET", .accept = "text/event-stream" };
    char memory[PATH_BYTES_MAX];
    struct bh_buf path;
    bh_rc rc;

    bh_buf_init_fixed(&path, memory, sizeof memory);
    bh_buf_puts(&path, "/v1/watch");
    if (bh_cli_flag(cli, BH_OPT_TENANT)) {
        bh_buf_puts(&path, "?tenant=");
        bh_http_put_encoded(&path, cli->args->options[BH_OPT_TENANT].text);
    }
    request.path = bh_buf_text(&path);
    if (!request.path)
        return bh_err_set(err, BH_INVALID, "--tenant is too long");
    bh_sse_init(&sse, follow_print_change, (void *)(uintptr_t)cli);
    rc = bh_client_send(&cli->client, &request, &exchange, err);
    bh_sse_fini(&sse);
    return rc;
}
