#include "http_server/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"

union tcp_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

static bh_rc
read_address(const char *text, uint16_t port, union tcp_address *ret, struct bh_err *err)
{
    *ret = (union tcp_address){ 0 };
    if (inet_pton(AF_INET, text, &ret->v4.sin_addr) == 1) {
        ret->v4.sin_family = AF_INET;
        ret->v4.sin_port = htons(port);
        return BH_OK;
    }
    if (inet_pton(AF_INET6, text, &ret->v6.sin6_addr) == 1) {
        ret->v6.sin6_family = AF_INET6;
        ret->v6.sin6_port = htons(port);
        return BH_OK;
    }
    return bh_err_set(err, BH_INVALID, "\"%.60s\" is not a numeric address", text);
}

bh_rc
bh_tcp_listen(const char *address, uint16_t port, int *ret_fd, struct bh_err *err)
{
    static const int on = 1;
    BH_AUTO(bh_fd_close) int fd = -1;
    union tcp_address where;
    socklen_t size;
    bh_rc rc = read_address(address, port, &where, err);

    if (rc != BH_OK)
        return rc;
    size = where.any.sa_family == AF_INET ? sizeof where.v4 : sizeof where.v6;
    fd = socket(where.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return bh_err_errno(err, "socket");
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* inherited */
    if (bind(fd, &where.any, size) != 0 || listen(fd, SOMAXCONN) != 0) {
        bool taken = errno == EADDRINUSE;

        rc = bh_err_errno(err, "listen on %s port %u", address, port);
        return taken ? (err->rc = BH_CONFLICT) : rc;
    }
    *ret_fd = bh_fd_steal(&fd);
    return BH_OK;
}

uint16_t
bh_tcp_port(int fd)
{
    union tcp_address where;
    socklen_t size = sizeof where;

    if (getsockname(fd, &where.any, &size) != 0)
        return 0;
    if (where.any.sa_family == AF_INET)
        return ntohs(where.v4.sin_port);
    return where.any.sa_family == AF_INET6 ? ntohs(where.v6.sin6_port) : 0;
}
