#ifndef BH_FETCH_SETTINGS_H
#define BH_FETCH_SETTINGS_H

#include "base/buf.h"
#include "fetch/address.h"
#include "ports/https.h"

/* What bulkhead-fetch was started with.  Files are read here, before the process gives up
 * its rights, so that later it needs none that holds a secret. */

enum {
    BH_FETCH_CERTIFICATES_MAX = 8,
    BH_FETCH_BLOCKS_MAX = 32,
    BH_FETCH_FILE_MAX = 4 << 20,
    BH_FETCH_TIMEOUT_MS_MAX = 60000
};

struct bh_fetch_identity {
    char name[BH_HTTPS_NAME_MAX + 1];
    struct bh_buf certificate, key; /* PEM */
};

struct bh_fetch_settings {
    struct bh_buf ca;  /* PEM; empty: the system's */
    const char *proxy; /* NULL: none; lives in argv */
    bool plain_loopback;
    uint32_t timeout_ms;
    struct bh_block blocks[BH_FETCH_BLOCKS_MAX]; /* that may be asked although private */
    uint32_t block_count;
    struct bh_fetch_identity identities[BH_FETCH_CERTIFICATES_MAX];
    uint32_t identity_count;
};

/* From a program's arguments:
 *   --ca FILE  --proxy URL  --allow BLOCK ...  --plain-loopback  --timeout-ms N
 *   --certificate NAME:CERTIFICATE:KEY ...   (files in PEM)
 * BH_INVALID: an argument that is none, too many, or a file that is empty; BH_NOT_FOUND,
 * BH_DENIED, BH_FULL, BH_IO: a file cannot be read.  Release also after a failure. */
BH_MUST_USE bh_rc bh_fetch_settings_parse(int argc, char **argv, struct bh_fetch_settings *ret_settings,
                                          struct bh_err *err);
void bh_fetch_settings_fini(struct bh_fetch_settings *settings);

/* The certificate of that name, or NULL. */
const struct bh_fetch_identity *bh_fetch_settings_find(const struct bh_fetch_settings *settings,
                                                       const char *name);

/* May a connection be made to that address?  `plain` (http): to this machine alone. */
bool bh_fetch_settings_allow(const struct bh_fetch_settings *settings, const struct sockaddr *address,
                             bool plain);

#endif
