#include "cli/audit/audit_rows.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "audit/rows.h"
#include "base/fd.h"
#include "base/slice.h"

const char *const bh_audit_tables[] = { BH_ROWS_NAMES,     BH_ROWS_JOBS, BH_ROWS_TEXTS,
                                        BH_ROWS_DOCUMENTS, BH_ROWS_KEYS, NULL };

static bool
append_bytes(void *self, const char *bytes, size_t length)
{
    bh_buf_put(self, bytes, length);
    return true;
}

/* What the page behind this one begins after: the number in its last line. */
static uint64_t
last_of(const struct bh_buf *page)
{
    static const char *const numbers[] = { "job", "number" };
    struct bh_slice line = { page->bytes, page->length - 1 }, value;
    uint64_t last = 0;

    for (size_t at = line.length; at > 0; at--)
        if (page->bytes[at - 1] == '\n') {
            line = (struct bh_slice){ page->bytes + at, line.length - at };
            break;
        }
    for (size_t i = 0; i < BH_COUNT(numbers); i++)
        if (bh_slice_get(line, numbers[i], &value))
            (void)bh_slice_u64(value, &last);
    return last;
}

bh_rc
bh_audit_rows_fetch(const struct bh_cli *cli, const char *table, uint64_t size, struct bh_row_pages pages,
                    struct bh_err *err)
{
    uint64_t after = 0, last = 0;
    bool more = true;
    bh_rc rc = BH_OK;

    while (rc == BH_OK && more) {
        char path[120];
        const struct bh_http_request request = { .method = "GET", .path = path };
        struct bh_buf page;
        struct bh_exchange exchange = { .sink = append_bytes, .self = &page };

        snprintf(path, sizeof path, "/v1/log/rows/%s?size=%" PRIu64 "&after=%" PRIu64, table, size, after);
        bh_buf_init(&page, BH_HTTP_BODY_MAX);
        rc = bh_client_send(&cli->client, &request, &exchange, err);
        if (rc == BH_OK && page.overflow)
            rc = bh_err_set(err, BH_FULL, "the answer is too large");
        if (rc == BH_OK && page.length > 0) {
            last = last_of(&page);
            rc = pages.append(pages.self, table, page.bytes, page.length, err);
        }
        more = page.length > 0 && last > after;
        after = last;
        bh_buf_fini(&page);
    }
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", table);
}

static bh_rc
write_page(void *self, const char *table, const char *lines, size_t length, struct bh_err *err)
{
    const int *fd = self;

    return bh_fd_write_all(*fd, lines, length, err);
}

/* Readable by users who may read the folder; an export that fails leaves the previous file. */
static bh_rc
audit_rows_save(const struct bh_cli *cli, const char *folder, const char *table, uint64_t size,
                struct bh_err *err)
{
    char path[PATH_MAX], fresh[PATH_MAX];
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc;

    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, table) >= sizeof path
        || (size_t)snprintf(fresh, sizeof fresh, "%s/%s.new", folder, table) >= sizeof fresh)
        return bh_err_set(err, BH_INVALID, "%.60s...: the name is too long", folder);
    rc = bh_file_open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0640, &fd, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_audit_rows_fetch(cli, table, size, (struct bh_row_pages){ write_page, &fd }, err);
    if (rc == BH_OK && fsync(fd) != 0)
        rc = bh_err_errno(err, "%s", fresh);
    if (rc == BH_OK && rename(fresh, path) != 0)
        rc = bh_err_errno(err, "%s", path);
    if (rc != BH_OK)
        unlink(fresh);
    return rc;
}

bh_rc
bh_audit_rows_save(const struct bh_cli *cli, const char *folder, uint64_t size, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (size_t i = 0; rc == BH_OK && bh_audit_tables[i]; i++)
        rc = audit_rows_save(cli, folder, bh_audit_tables[i], size, err);
    return rc;
}
