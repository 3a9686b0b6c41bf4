#include "http_server/socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"

enum { KEEPALIVE_S = 60, UNSENT_BYTES = 64 << 10 };

/* What the library held back goes with it. */
void
bh_socket_keep_alive(int fd)
{
    int on = 1, off = 0, wait = KEEPALIVE_S;

    setsockopt(fd, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &wait, sizeof wait);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void
bh_socket_keep_fresh(int fd)
{
    int unsent = UNSENT_BYTES;

    setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

int
bh_socket_take(int fd)
{
    BH_AUTO(bh_fd_close) int taken = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    BH_AUTO(bh_fd_close) int nowhere = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (taken < 0 || nowhere < 0 || dup3(nowhere, fd, O_CLOEXEC) < 0)
        return -1;
    return bh_fd_steal(&taken);
}
