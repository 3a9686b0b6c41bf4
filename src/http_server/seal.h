#ifndef BH_HTTP_SERVER_SEAL_H
#define BH_HTTP_SERVER_SEAL_H

#include <gnutls/gnutls.h>

#include "base/attr.h"
#include "base/buf.h"

/* What a TLS 1.3 session sends, sealed without the session: records of RFC 8446, section 5.2, with the
 * traffic key, the IV and the number of the next record that GnuTLS exports for this (it gives kernels
 * the same).  So a stream that lasts for hours holds a key instead of a session with its buffers. */
struct bh_seal;

enum {
    BH_SEAL_TEXT_MAX = 16 << 10, /* bytes of text in a record */
    BH_SEAL_OVERHEAD = 5 + 1 + 16
};

/* Takes over from a session whose handshake is done and that has nothing left to send.  The session sends
 * nothing from then on, not even its end: a number is used for one record only.  NULL: its state cannot be
 * had. */
BH_MUST_USE struct bh_seal *bh_seal_take(gnutls_session_t session);
void bh_seal_free(struct bh_seal *seal); /* NULL is fine */

/* Append the records that carry these bytes, or the alert that says that no more will come.  False: the
 * session's key has sealed as many records as it may (2^24 for AES-GCM), or there is no room. */
BH_MUST_USE bool bh_seal_put(struct bh_seal *seal, const void *bytes, size_t length,
                             struct bh_buf *ret_records);
BH_MUST_USE bool bh_seal_put_end(struct bh_seal *seal, struct bh_buf *ret_records);

#endif
