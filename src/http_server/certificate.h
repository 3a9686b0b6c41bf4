#ifndef BH_HTTP_SERVER_CERTIFICATE_H
#define BH_HTTP_SERVER_CERTIFICATE_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stdint.h>

/* The certificate that a client shows in TLS. */

/* Check it again, so that one that expires while its connection stays open ends there.  Its
 * SHA-256 (over the DER), or zeros where the client sent none.  False: one that does not come
 * from the server's authorities, is out of its time, or is for another purpose than being a
 * client (RFC 5280, section 4.2.1.12: clientAuth, anyExtendedKeyUsage or no list). */
bool bh_certificate_check(struct MHD_Connection *mhd, uint8_t ret_thumbprint[32]);

/* Whether a PEM text holds authorities, and none that is broken; libmicrohttpd does not mind. */
bool bh_certificate_authorities(const char *pem);

#endif
