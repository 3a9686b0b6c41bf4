#include "cli/site/metrics.h"

#include <unistd.h>

#include "base/fd.h"

static bool
write_out(void *self, const char *bytes, size_t length)
{
    struct bh_err *err = self;

    return bh_fd_write_all(STDOUT_FILENO, bytes, length, err) == BH_OK;
}

bh_rc
bh_cli_metrics(struct bh_cli *cli, struct bh_err *err)
{
    const struct bh_http_request request = { .method = "GET", .path = "/metrics", .accept = "text/plain" };
    struct bh_exchange exchange = { .sink = write_out, .self = err };
    bh_rc rc = bh_client_send(&cli->client, &request, &exchange, err);

    return rc == BH_OK && exchange.stopped ? err->rc : rc;
}
