#include "daemon/certificate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "ports/crypto.h"

enum { PEM_MAX = 16 << 10 };

struct bh_certificate {
    struct bh_buf pem, key, clients;
};

void
bh_certificate_free(struct bh_certificate *certificate)
{
    if (!certificate)
        return;
    if (certificate->key.bytes)
        explicit_bzero(certificate->key.bytes, certificate->key.length);
    bh_buf_fini(&certificate->pem);
    bh_buf_fini(&certificate->clients);
    bh_buf_fini(&certificate->key);
    free(certificate);
}

static bh_rc
certificate_make(const struct bh_crypto_ops *crypto, const char *pem_path, const char *key_path,
                 struct bh_err *err)
{
    char host[256] = "localhost", pem[PEM_MAX], key[PEM_MAX];
    bh_rc rc;

    gethostname(host, sizeof host - 1);
    rc = crypto->make_certificate(host, pem, sizeof pem, key, sizeof key, err);
    if (rc == BH_OK)
        rc = bh_file_replace(key_path, key, strlen(key), 0600, err);
    if (rc == BH_OK)
        rc = bh_file_replace(pem_path, pem, strlen(pem), 0644, err);
    explicit_bzero(key, sizeof key);
    if (rc != BH_OK)
        return rc;
    bh_log(CERTIFICATE_MADE, BH_STR("path", pem_path));
    return BH_OK;
}

static bh_rc
certificate_load(struct bh_certificate *certificate, const char *pem_path, const char *key_path,
                 struct bh_err *err)
{
    bh_rc rc = bh_file_read(pem_path, PEM_MAX, &certificate->pem, err);

    return rc == BH_OK ? bh_file_read(key_path, PEM_MAX, &certificate->key, err) : rc;
}

bh_rc
bh_certificate_load_or_make(const struct bh_crypto_ops *crypto, const char *folder,
                            struct bh_certificate **ret_certificate, struct bh_err *err)
{
    BH_AUTO(bh_certificate_free) struct bh_certificate *certificate = calloc(1, sizeof *certificate);
    char pem_path[4096], key_path[4096];
    bh_rc rc;

    BH_ASSERT(certificate);
    bh_buf_init(&certificate->pem, 2 * PEM_MAX);
    bh_buf_init(&certificate->key, 2 * PEM_MAX);
    bh_buf_init(&certificate->clients, 2 * PEM_MAX);
    snprintf(pem_path, sizeof pem_path, "%s/tls.crt", folder);
    snprintf(key_path, sizeof key_path, "%s/tls.key", folder);
    rc = certificate_load(certificate, pem_path, key_path, err);
    if (rc == BH_NOT_FOUND) {
        bh_buf_clear(&certificate->pem);
        rc = certificate_make(crypto, pem_path, key_path, err);
        if (rc == BH_OK)
            rc = certificate_load(certificate, pem_path, key_path, err);
    }
    if (rc != BH_OK)
        return rc;
    *ret_certificate = bh_steal(&certificate);
    return BH_OK;
}

bh_rc
bh_certificate_read_clients(struct bh_certificate *certificate, const char *path, struct bh_err *err)
{
    bh_rc rc = *path ? bh_file_read(path, PEM_MAX, &certificate->clients, err) : BH_OK;

    return rc == BH_OK ? rc : bh_err_wrap(err, "client_ca");
}

const char *
bh_certificate_pem(const struct bh_certificate *certificate)
{
    return bh_buf_text((struct bh_buf *)(uintptr_t)&certificate->pem);
}

const char *
bh_certificate_key(const struct bh_certificate *certificate)
{
    return bh_buf_text((struct bh_buf *)(uintptr_t)&certificate->key);
}

const char *
bh_certificate_clients(const struct bh_certificate *certificate)
{
    if (certificate->clients.length == 0)
        return NULL;
    return bh_buf_text((struct bh_buf *)(uintptr_t)&certificate->clients);
}
