#include "api/jobs/log_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/jobs/log_file.h"
#include "api/request/reply.h"
#include "base/fd.h"
#include "base/utf8.h"

enum { WINDOW_BYTES = 64 << 10, LINES_DEFAULT = 200 };

/* A part of the output: `bytes` are those from `offset` on. */
struct log_window {
    uint64_t offset, size; /* size: of the whole output */
    char *bytes;
    size_t length;
};

/* Whether a line begins at `at` > 0: behind "\n", "\r\n" or a lone "\r", as progress bars write it. */
static bool
log_lines_begins(const char *bytes, size_t at, size_t length)
{
    return bytes[at - 1] == '\n' || (bytes[at - 1] == '\r' && at < length && bytes[at] != '\n');
}

/* What stands before the byte `limit`, as much as a window holds.  Its file appears when the job starts. */
static bh_rc
log_lines_read(const char *path, uint64_t limit, struct log_window *window, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    uint64_t end;
    struct stat file;
    ssize_t got;

    if (fd < 0)
        return errno == ENOENT ? BH_OK : bh_err_errno(err, "the job's output");
    if (fstat(fd, &file) != 0)
        return bh_err_errno(err, "the job's output");
    window->size = (uint64_t)file.st_size;
    end = limit < window->size ? limit : window->size;
    window->offset = end > WINDOW_BYTES ? end - WINDOW_BYTES : 0;
    got = pread(fd, window->bytes, (size_t)(end - window->offset), (off_t)window->offset);
    if (got < 0)
        return bh_err_errno(err, "the job's output");
    window->length = (size_t)got;
    return BH_OK;
}

/* Leave the last `limit` lines, whole ones; of a line longer than the window, its end. */
static void
log_lines_cut(struct log_window *window, uint64_t limit)
{
    size_t begin = 0;
    uint64_t lines = 0;

    for (size_t at = window->length; at > 1 && lines < limit; at--) {
        if (!log_lines_begins(window->bytes, at - 1, window->length))
            continue;
        begin = at - 1;
        lines++;
    }
    if (lines < limit && window->offset == 0)
        begin = 0;
    window->bytes += begin;
    window->length -= begin;
    window->offset += begin;
}

/* What is no UTF-8 becomes U+FFFD, and so does NUL. */
static void
log_lines_put_text(struct bh_buf *out, const char *text, size_t length)
{
    while (length > 0) {
        size_t step = *text ? bh_utf8_step(text, length) : 0;

        if (step > 0)
            bh_buf_put(out, text, step);
        else
            bh_buf_puts(out, "\xef\xbf\xbd");
        step = step ? step : 1;
        text += step;
        length -= step;
    }
}

static void
log_lines_put_row(struct bh_rows *rows, const struct log_window *window, size_t begin, size_t end)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = 3 * WINDOW_BYTES };

    while (end > begin && (window->bytes[end - 1] == '\n' || window->bytes[end - 1] == '\r'))
        end--;
    log_lines_put_text(&text, window->bytes + begin, end - begin);
    (void)bh_rows_put(rows, &(struct bh_reply_log_line){
                                .offset = window->offset + begin,
                                .text = { text.bytes ? text.bytes : "", text.length },
                            });
}

static void
log_lines_put_all(struct bh_rows *rows, const struct log_window *window)
{
    size_t begin = 0;

    for (size_t at = 1; at <= window->length; at++) {
        if (at < window->length && !log_lines_begins(window->bytes, at, window->length))
            continue;
        log_lines_put_row(rows, window, begin, at);
        begin = at;
    }
}

static bool
log_lines_is_open(const struct log_window *window)
{
    char last = window->length > 0 ? window->bytes[window->length - 1] : '\n';

    return last != '\n' && last != '\r';
}

bh_rc
bh_log_lines_list(struct bh_call *call, struct bh_err *err)
{
    const struct bh_query *query = &call->query;
    struct log_window window = { 0 };
    struct bh_job_row row;
    struct bh_rows rows;
    const char *path;
    bh_rc rc = bh_log_file_find(call, &row, &path, err);

    if (rc == BH_OK)
        rc = bh_call_alloc(call, WINDOW_BYTES, &window.bytes, err);
    if (rc == BH_OK)
        rc = log_lines_read(path, query->given.end ? query->end : UINT64_MAX, &window, err);
    if (rc != BH_OK)
        return rc;
    log_lines_cut(&window, query->given.limit ? query->limit : LINES_DEFAULT);
    rows = bh_rows_begin(call, &bh_reply_log_lines_fields);
    log_lines_put_all(&rows, &window);
    bh_rows_end(&rows, &(struct bh_reply_log_lines){ .earlier = window.offset > 0,
                                                     .end = window.offset + window.length,
                                                     .gang = row.gang ? row.gang : 1,
                                                     .job = row.job,
                                                     .member = (uint32_t)query->member,
                                                     .open = log_lines_is_open(&window),
                                                     .removed = bh_log_file_is_gone(&row, path),
                                                     .size = window.size,
                                                     .state = row.state });
    return BH_OK;
}
