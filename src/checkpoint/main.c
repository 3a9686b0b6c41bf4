/* bulkhead-checkpoint: puts the GPU memory of a job's processes aside, and gives it back, by the
 * driver's checkpoint calls.  It is started by bulkhead-node for one job and one action, reads
 * its request, enters its sandbox (checkpoint/sandbox.h), and only then loads the vendor's library.
 * What came of it it says in one line (checkpoint/report.h). */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/json.h"
#include "checkpoint/driver.h"
#include "checkpoint/sandbox.h"

enum { REQUEST_MAX = 64 << 10, LINE_MAX_ = 1024, EXIT_USAGE = 2 };

static bh_rc
checkpoint_program_read_request(struct bh_arena *arena, struct bh_checkpoint_request *ret_request,
                                struct bh_err *err)
{
    static char text[REQUEST_MAX];
    size_t length = 0;
    ssize_t n;

    while (length < sizeof text && (n = read(STDIN_FILENO, text + length, sizeof text - length)) != 0) {
        if (n < 0 && errno != EINTR)
            return bh_err_errno(err, "read the request");
        length += n > 0 ? (size_t)n : 0;
    }
    if (length == sizeof text)
        return bh_err_set(err, BH_RANGE, "the request is too long");
    return bh_json_decode(text, length, &bh_checkpoint_request_fields, ret_request, arena, err);
}

static void
checkpoint_program_refuse(struct bh_checkpoint_report *report, enum bh_checkpoint_end end,
                          const struct bh_err *err)
{
    *report = (struct bh_checkpoint_report){ .end = end };
    snprintf(report->why, sizeof report->why, "%.190s", err->msg);
}

/* Before the first call nothing was done to any process. */
static void
checkpoint_program_run(const struct bh_checkpoint_request *request, struct bh_checkpoint_report *report)
{
    bool own = request->library && *request->library;
    struct bh_checkpoint_driver driver;
    struct bh_err err;
    bh_rc rc = bh_checkpoint_sandbox_enter(request, &err);

    if (rc == BH_NOT_FOUND)
        *report = (struct bh_checkpoint_report){ .end = BH_CHECKPOINT_DONE };
    else if (rc != BH_OK)
        checkpoint_program_refuse(report, BH_CHECKPOINT_REFUSED, &err);
    if (rc != BH_OK)
        return;
    rc = bh_checkpoint_driver_load(own ? BH_CHECKPOINT_SANDBOX_LIBRARY : NULL, &driver, &err);
    if (rc != BH_OK) {
        checkpoint_program_refuse(report, BH_CHECKPOINT_NO_CALLS, &err);
        return;
    }
    *report = (struct bh_checkpoint_report){ .end = BH_CHECKPOINT_DONE };
    if (request->action == BH_CHECKPOINT_PROBE)
        return;
    if (bh_checkpoint_driver_init(&driver, &err) != BH_OK)
        checkpoint_program_refuse(report, BH_CHECKPOINT_REFUSED, &err);
    else if (request->action == BH_CHECKPOINT_SAVE)
        bh_checkpoint_save(&driver, request, report);
    else
        bh_checkpoint_restore(&driver, request, report);
}

static bool
checkpoint_print(const struct bh_checkpoint_report *report)
{
    char line[LINE_MAX_];
    struct bh_buf out;

    bh_buf_init_fixed(&out, line, sizeof line);
    bh_buf_puts(&out, BH_CHECKPOINT_PREFIX);
    bh_json_encode(&out, &bh_checkpoint_report_fields, report);
    bh_buf_putc(&out, '\n');
    return !out.overflow && write(STDOUT_FILENO, out.bytes, out.length) == (ssize_t)out.length;
}

int
main(int argc, char **argv)
{
    struct bh_arena *arena = bh_arena_new(BH_ARENA_DEFAULT_MAX);
    static struct bh_checkpoint_request request;
    struct bh_checkpoint_report report;
    struct bh_err err;

    if (argc != 1 || geteuid() != 0 || checkpoint_program_read_request(arena, &request, &err) != BH_OK) {
        fputs("usage: bulkhead-checkpoint < REQUEST\n"
              "It is started by bulkhead-node, for a job that is suspended or resumed.\n",
              stderr);
        return EXIT_USAGE;
    }
    checkpoint_program_run(&request, &report);
    fflush(stdout);
    _exit(checkpoint_print(&report) ? 0 : 1); /* without what libraries do at an end */
}
