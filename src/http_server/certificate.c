#include "http_server/certificate.h"

#include <string.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* A resumed TLS session could bring a certificate that was not shown on this connection; the
 * library offers no tickets, so there are none. */
static bool
is_good(gnutls_session_t tls)
{
    gnutls_typed_vdata_st purpose = { .type = GNUTLS_DT_KEY_PURPOSE_OID,
                                      .data = (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT };
    unsigned faults = 0;

    return gnutls_certificate_verify_peers(tls, &purpose, 1, &faults) == GNUTLS_E_SUCCESS && faults == 0;
}

bool
bh_certificate_check(struct MHD_Connection *mhd, uint8_t ret_thumbprint[32])
{
    const union MHD_ConnectionInfo *found = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    const gnutls_datum_t *chain;
    size_t size = 32;
    unsigned count = 0;

    memset(ret_thumbprint, 0, 32);
    if (!found || !found->tls_session)
        return true;
    chain = gnutls_certificate_get_peers(found->tls_session, &count);
    if (!chain || count == 0)
        return true;
    return is_good(found->tls_session)
           && gnutls_fingerprint(GNUTLS_DIG_SHA256, &chain[0], ret_thumbprint, &size) == GNUTLS_E_SUCCESS;
}

bool
bh_certificate_authorities(const char *pem)
{
    gnutls_datum_t text = { (unsigned char *)(uintptr_t)pem, (unsigned)strlen(pem) };
    gnutls_x509_crt_t *list = NULL;
    unsigned count = 0;
    bool good = gnutls_x509_crt_list_import2(&list, &count, &text, GNUTLS_X509_FMT_PEM, 0) >= 0;

    for (unsigned i = 0; good && i < count; i++)
        gnutls_x509_crt_deinit(list[i]);
    if (good)
        gnutls_free(list);
    return good && count > 0;
}
