#include "node/sandbox/network_hosts.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

enum { LABEL_MAX = 63, TENANT_MAX = 120 };

/* The name as a host's, or "". */
static void
label_of(const char *name, char ret_label[LABEL_MAX + 1])
{
    size_t length = strlen(name);

    ret_label[0] = '\0';
    if (length == 0 || length > LABEL_MAX || name[0] == '-' || name[length - 1] == '-')
        return;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-') {
            ret_label[0] = '\0';
            return;
        }
        ret_label[i] = c;
    }
    ret_label[length] = '\0';
}

static void
network_hosts_put_names(struct bh_buf *out, const struct bh_network_host *host, const char *name)
{
    bool of_gang = host->gang > 1;
    char tenant[TENANT_MAX];

    snprintf(tenant, sizeof tenant, "%s", host->tenant);
    for (char *slash = tenant; (slash = strchr(slash, '/'));)
        *slash = '.';
    bh_buf_printf(out, "%u.%u.%u.%u", host->address >> 24, host->address >> 16 & 255,
                  host->address >> 8 & 255, host->address & 255);
    if (of_gang)
        bh_buf_printf(out, " %s-%u.%s %s-%u", name, host->member, tenant, name, host->member);
    if (!of_gang || host->member == 0)
        bh_buf_printf(out, " %s.%s %s", name, tenant, name);
    bh_buf_putc(out, '\n');
}

void
bh_network_hosts_put(struct bh_buf *out, const struct bh_network_host *hosts, uint32_t count)
{
    char label[LABEL_MAX + 1];

    bh_buf_puts(out, "127.0.0.1 localhost\n::1 localhost\n");
    for (uint32_t i = 0; i < count; i++) {
        snprintf(label, sizeof label, "job-%" PRIu64, hosts[i].job);
        network_hosts_put_names(out, &hosts[i], label);
    }
    for (uint32_t i = 0; i < count; i++) {
        label_of(hosts[i].name, label);
        if (*label)
            network_hosts_put_names(out, &hosts[i], label);
    }
}

bh_rc
bh_network_hosts_write(const char *path, const char *text, size_t length, struct bh_err *err)
{
    BH_AUTO(bh_fd_close) int fd = -1;
    bh_rc rc = bh_file_open(path, O_WRONLY | O_CREAT | O_NOFOLLOW, 0644, &fd, err);
    struct stat st;
    size_t whole;
    char *padded;
    ssize_t n;

    if (rc != BH_OK)
        return rc;
    if (fstat(fd, &st) != 0)
        return bh_err_errno(err, "inspect %s", path);
    /* empty lines in place of what was longer, until the file is cut */
    whole = (size_t)st.st_size > length ? (size_t)st.st_size : length;
    padded = malloc(whole + 1);
    BH_ASSERT(padded);
    memset(padded, '\n', whole);
    memcpy(padded, text, length);
    n = pwrite(fd, padded, whole, 0);
    free(padded);
    if (n != (ssize_t)whole || ftruncate(fd, (off_t)length) != 0)
        return bh_err_errno(err, "write %s", path);
    return BH_OK;
}
