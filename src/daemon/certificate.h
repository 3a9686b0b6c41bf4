#ifndef BH_DAEMON_CERTIFICATE_H
#define BH_DAEMON_CERTIFICATE_H

#include "base/err.h"

struct bh_crypto_ops;

/* The HTTPS certificate in the state folder (tls.crt, tls.key), self-signed at the
 * first start; an administrator may put another pair there. */
struct bh_certificate;

BH_MUST_USE bh_rc bh_certificate_load_or_make(const struct bh_crypto_ops *crypto, const char *folder,
                                              struct bh_certificate **ret_certificate, struct bh_err *err);
void bh_certificate_free(struct bh_certificate *certificate);
BH_AUTO_DEFINE(struct bh_certificate *, bh_certificate_free)

/* Read the authorities of clients' certificates beside them; "" : none.  Failures of reading. */
BH_MUST_USE bh_rc bh_certificate_read_clients(struct bh_certificate *certificate, const char *path,
                                              struct bh_err *err);

/* PEM texts, as long as the certificate lives. */
const char *bh_certificate_pem(const struct bh_certificate *certificate);
const char *bh_certificate_key(const struct bh_certificate *certificate);
const char *bh_certificate_clients(const struct bh_certificate *certificate); /* NULL: none */

#endif
