#ifndef BH_API_REQUEST_OPTIONS_H
#define BH_API_REQUEST_OPTIONS_H

#include "api/request/accounts_port.h"
#include "api/request/owner.h"
#include "api/request/streams_port.h"
#include "keys/keys.h"
#include "policy/rate.h"
#include "ports/crypto.h"
#include "ports/http.h"
#include "ports/series.h"
#include "ports/store.h"

/* What the API is made with: the services that it asks, and how much it lets callers ask. */
struct bh_api_options {
    struct bh_owner owner;
    struct bh_store store;
    struct bh_series_store series; /* ops NULL: series are not kept */
    const struct bh_crypto_ops *crypto;
    struct bh_keys *keys; /* opens what is sealed */
    const char *version;
    const char *metrics_host_label; /* how metrics spell the label hostname; NULL: so */
    uint32_t job_uid_first;         /* Unix ids from here up belong to jobs: no principal;
                                       0: no such range */
    uint64_t (*now)(void);          /* nanoseconds since the epoch; NULL: the wall clock */
    /* Append the keys that the audit log is verified with, a vkey a line.  Any thread; failures of a file. */
    bh_rc (*log_keys)(const char *folder, struct bh_buf *ret_keys, struct bh_err *err);
    const char *log_folder;
    struct bh_accounts_port accounts;
    struct bh_streams_port streams;  /* ops NULL: there are none */
    uint32_t rates[BH_RATE_CLASSES]; /* requests a second of a caller (policy/rate.h); 0: any */
    uint64_t silence_ns;             /* streams: a comment after this long; 0: two seconds */
    uint32_t streams_max;            /* of changes and logs of one principal at once; 0: any number */
    bh_http_crowded crowded;         /* called with the principal that wants more of them; may be NULL */
};

#endif
