#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <curl/curl.h>

#include "fetch/child.h"
#include "fetch/sandbox.h"

/* bulkhead-fetch: started by bulkheadd with a socket as descriptor 3; of no use by hand. */

enum { SOCKET = 3 };

/* Other flavours lack certificates from memory. */
static bool
curl_fits(void)
{
    const char *tls = curl_version_info(CURLVERSION_NOW)->ssl_version;

    return tls && strncmp(tls, "OpenSSL", strlen("OpenSSL")) == 0;
}

/* Files are read first, rights given up next, and only then is anything read that comes
 * from outside. */
static bh_rc
fetch_prepare(int argc, char **argv, struct bh_fetch_settings *settings, struct bh_err *err)
{
    bh_rc rc = bh_fetch_settings_parse(argc, argv, settings, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_fetch_sandbox_drop(err);
    if (rc != BH_OK)
        return rc;
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return bh_err_set(err, BH_BUG, "libcurl does not start");
    if (!curl_fits())
        return bh_err_set(err, BH_UNAVAILABLE, "libcurl is not built with OpenSSL");
    return bh_fetch_sandbox_enter(err);
}

int
main(int argc, char **argv)
{
    struct bh_fetch_settings settings;
    struct bh_err err = { 0 };
    bh_rc rc;

    close_range(SOCKET + 1, ~0u, 0);
    signal(SIGPIPE, SIG_IGN);
    rc = fetch_prepare(argc, argv, &settings, &err);
    if (rc != BH_OK)
        bh_fetch_child_report(SOCKET, &err);
    else
        rc = bh_fetch_child_serve(SOCKET, &settings, &err);
    if (rc != BH_OK)
        fprintf(stderr, "bulkhead-fetch: %s\n", err.msg);
    /* The resolver's threads may still run: nothing is torn down under them. */
    fflush(stderr);
    _exit(rc == BH_OK ? 0 : bh_rc_exit(rc));
}
