#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/num.h"
#include "cli/command/setting.h"
#include "cli/doctor/driver_probe.h"
#include "cli/up/up.h"

enum { PORT_MAX = 65535, ADDRESS_MAX = 64 };

/* Without GPUs there is nothing to be ready for.  A node.conf that is there already may name
 * another library. */
static bh_rc
check_driver(const struct bh_up *up, struct bh_err *err)
{
    char path[PATH_MAX + 16];
    uint32_t gpus = 0;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/node.conf", up->conf);
    if (access(path, F_OK) == 0)
        return BH_OK;
    rc = bh_driver_probe("libnvidia-ml.so.1", "", &gpus, err);
    if (rc == BH_OK && gpus == 0)
        rc = bh_err_set(err, BH_NOT_FOUND, "the NVIDIA driver lists no GPU");
    if (rc == BH_OK)
        return BH_OK;
    bh_err_wrap(err, "--gpu real");
    return bh_err_hint(err, "nvidia-smi must work first; --gpu sim needs no GPU");
}

/* bulkhead-simctl says how GPUs are written, and which models there are. */
static bh_rc
check_gpus(const struct bh_up *up, struct bh_err *err)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/state", up->sim);
    if (access(path, F_OK) == 0 || bh_up_simctl(up, "check", up->gpus, err) == BH_OK)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "--sim: the simulated driver has no \"%.80s\"", up->gpus);
    return bh_err_hint(err, "bulkhead up --sim \"8x H100-80GB\", or a file");
}

/* ---- the port ---- */

/* Where bulkheadd will listen; false: nowhere, or where only it can judge. */
static bool
find_port(const struct bh_up *up, char address[ADDRESS_MAX], uint16_t *ret_port)
{
    char conf[PATH_MAX + 16], text[16];
    uint64_t port = up->https_port;
    struct bh_err unread;
    bool site;

    snprintf(conf, sizeof conf, "%s/bulkheadd.conf", up->conf);
    site = access(conf, F_OK) == 0;
    bh_setting_read(conf, "https_address", "127.0.0.1", address, ADDRESS_MAX);
    if (site && !up->cli->args->options[BH_OPT_HTTPS_PORT].given) {
        bh_setting_read(conf, "https_port", "8443", text, sizeof text);
        if (bh_parse_u64(text, &port, &unread) != BH_OK)
            return false;
    }
    *ret_port = (uint16_t)port;
    return port > 0 && port <= PORT_MAX;
}

union checks_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* A socket's length, or 0: no numeric address. */
static socklen_t
make_address(const char *text, uint16_t port, union checks_address *ret)
{
    *ret = (union checks_address){ 0 };
    if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        return sizeof ret->v4;
    }
    if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) != 1)
        return 0;
    ret->v6.sin6_family = AF_INET6;
    ret->v6.sin6_port = htons(port);
    return sizeof ret->v6;
}

/* Bind as bulkheadd will, and release it: a port in use is not written down.  Whatever else
 * is wrong is bulkheadd's to say. */
static bh_rc
check_port(const struct bh_up *up, struct bh_err *err)
{
    static const int on = 1;
    BH_AUTO(bh_fd_close) int fd = -1;
    char address[ADDRESS_MAX];
    union checks_address where;
    socklen_t size;
    uint16_t port;

    if (!find_port(up, address, &port))
        return BH_OK;
    size = make_address(address, port, &where);
    fd = size ? socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd < 0)
        return BH_OK;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if ((bind(fd, &where.any, size) == 0 && listen(fd, 1) == 0) || errno != EADDRINUSE)
        return BH_OK;
    bh_err_set(err, BH_CONFLICT, "listen on %s port %u: %s", address, port, strerror(errno));
    return bh_err_hint(
        err,
        "a program uses it already (ss -ltnp says which): choose another with --https-port, or 0 for none");
}

bh_rc
bh_up_check(const struct bh_up *up, struct bh_err *err)
{
    bh_rc rc = up->real_driver ? check_driver(up, err) : check_gpus(up, err);

    return rc == BH_OK ? check_port(up, err) : rc;
}
