#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "node/gpu/gpu_child.h"

/* bulkhead-gpu: started by bulkhead-node with a socket as descriptor 3; of no use by
 * hand. */

enum { SOCKET = 3 };

static int
usage(void)
{
    fputs("usage: bulkhead-gpu --library PATH [--proc-root DIR] [--hide NODE]...\n"
          "       bulkhead-gpu --library PATH [--proc-root DIR] --only NODE --events GPU\n"
          "It is started by bulkhead-node and speaks on descriptor 3.\n",
          stderr);
    return 2;
}

int
main(int argc, char **argv)
{
    static const struct option names[] = {
        { "library", required_argument, NULL, 'l' }, { "proc-root", required_argument, NULL, 'p' },
        { "hide", required_argument, NULL, 'h' },    { "only", required_argument, NULL, 'o' },
        { "events", required_argument, NULL, 'e' },  { NULL, 0, NULL, 0 },
    };
    struct bh_device_options options = { 0 };
    struct bh_err err = { 0 };
    const char *events = NULL;
    int option;
    bh_rc rc = BH_OK;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'l')
            options.library = optarg;
        else if (option == 'p')
            options.proc_root = optarg;
        else if (option == 'h' && rc == BH_OK)
            rc = bh_gpu_child_hide(optarg, &err);
        else if (option == 'o' && rc == BH_OK)
            rc = bh_gpu_child_only(optarg, &err);
        else if (option == 'e')
            events = optarg;
        else if (option == '?')
            return usage();
    }
    if (!options.library || optind != argc)
        return usage();
    /* A node that dies takes its children along.  One that died before this call has
     * closed the socket, which ends the loops. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (rc == BH_OK && geteuid() == 0)
        rc = bh_gpu_child_confine(&err);
    if (rc == BH_OK)
        rc = events ? bh_gpu_child_watch(SOCKET, events, &options, &err)
                    : bh_gpu_child_respond(SOCKET, &options, &err);
    if (rc != BH_OK)
        fprintf(stderr, "bulkhead-gpu: %s\n", err.msg);
    return rc == BH_OK ? 0 : bh_rc_exit(rc);
}
