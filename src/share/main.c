#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "base/err.h"
#include "share/server.h"

/* bulkhead-share: started by bulkhead-node with a socket as descriptor 3; of no use by hand. */

enum { SOCKET = 3 };

int
main(int argc, char **argv)
{
    struct bh_time_slices_options options = { 0 };
    struct bh_err err = { 0 };
    bh_rc rc;

    if (argc != 1) {
        fprintf(stderr, "usage: %s\nIt is started by bulkhead-node and speaks on descriptor 3.\n", argv[0]);
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* a node that ends closes the socket */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL); /* time slices end when they end */
    rc = bh_share_serve(SOCKET, &options, &err);
    if (rc == BH_UNAVAILABLE)
        return 0;
    fprintf(stderr, "bulkhead-share: %s\n", err.msg);
    return bh_rc_exit(rc);
}
