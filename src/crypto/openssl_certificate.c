#include "crypto/openssl.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "crypto/openssl_internal.h"

enum { VALID_DAYS = 398, HOST_MAX = 253, SERIAL_BYTES = 16 };

BH_AUTO_DEFINE(X509 *, X509_free)
BH_AUTO_DEFINE(BIO *, BIO_free_all)

/* The name goes into OpenSSL's little language for extensions, where a comma would
 * begin another name. */
static bool
host_valid(const char *host)
{
    size_t length = strlen(host);

    return length > 0 && length <= HOST_MAX
           && strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:") == length;
}

static bool
is_address(const char *host)
{
    unsigned char bytes[16];

    return inet_pton(AF_INET, host, bytes) == 1 || inet_pton(AF_INET6, host, bytes) == 1;
}

static bool
add_extension(X509 *cert, int kind, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    bool added;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, cert, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
    added = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

static bool
add_extensions(X509 *cert, const char *host)
{
    char names[HOST_MAX + 80];

    snprintf(names, sizeof names, "DNS:localhost,IP:127.0.0.1,IP:::1,%s:%s", is_address(host) ? "IP" : "DNS",
             host);
    return add_extension(cert, NID_basic_constraints, "critical,CA:FALSE")
           && add_extension(cert, NID_key_usage, "critical,digitalSignature")
           && add_extension(cert, NID_ext_key_usage, "serverAuth")
           && add_extension(cert, NID_subject_alt_name, names)
           && add_extension(cert, NID_subject_key_identifier, "hash");
}

static bool
set_serial(X509 *cert)
{
    unsigned char bytes[SERIAL_BYTES];
    BIGNUM *number;
    bool set;

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] = (bytes[0] & 0x7f) | 0x40; /* positive, and of full length */
    number = BN_bin2bn(bytes, sizeof bytes, NULL);
    set = number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));
    BN_free(number);
    return set;
}

/* Subject and issuer; names longer than a common name allows go only into the SAN. */
static bool
set_names(X509 *cert, const char *host)
{
    X509_NAME *name = X509_get_subject_name(cert);
    const char *common = strlen(host) <= 64 ? host : "bulkhead";

    return X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)"Bulkhead", -1, -1, 0)
           && X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)common, -1, -1, 0)
           && X509_set_issuer_name(cert, name);
}

static bool
fill_certificate(X509 *cert, EVP_PKEY *key, const char *host)
{
    return X509_set_version(cert, X509_VERSION_3) && set_serial(cert) && set_names(cert, host)
           && X509_gmtime_adj(X509_getm_notBefore(cert), 0)
           && X509_time_adj_ex(X509_getm_notAfter(cert), VALID_DAYS, 0, NULL) && X509_set_pubkey(cert, key)
           && add_extensions(cert, host) && X509_sign(cert, key, EVP_sha256()) > 0;
}

static bh_rc
certificate_copy_text(BIO *bio, char *ret_text, size_t size, struct bh_err *err)
{
    char *text;
    long length = BIO_get_mem_data(bio, &text);

    if (length < 0 || (size_t)length >= size)
        return bh_err_set(err, BH_FULL, "certificate or key needs more than %zu bytes", size);
    memcpy(ret_text, text, (size_t)length);
    ret_text[length] = '\0';
    return BH_OK;
}

bh_rc
bh_openssl_make_certificate(const char *host, char *ret_cert, size_t cert_size, char *ret_key,
                            size_t key_size, struct bh_err *err)
{
    BH_AUTO(EVP_PKEY_free) EVP_PKEY *key = NULL;
    BH_AUTO(X509_free) X509 *cert = X509_new();
    BH_AUTO(BIO_free_all) BIO *cert_pem = BIO_new(BIO_s_mem());
    BH_AUTO(BIO_free_all) BIO *key_pem = BIO_new(BIO_s_secmem());
    bh_rc rc;

    if (!host_valid(host))
        return bh_err_set(err, BH_INVALID, "\"%.60s\" is no host name", host);
    key = EVP_EC_gen("P-256");
    if (!key || !cert || !cert_pem || !key_pem || !fill_certificate(cert, key, host)
        || PEM_write_bio_X509(cert_pem, cert) != 1
        || PEM_write_bio_PKCS8PrivateKey(key_pem, key, NULL, NULL, 0, NULL, NULL) != 1)
        return bh_openssl_err(err, BH_IO, "cannot make a certificate");
    rc = certificate_copy_text(cert_pem, ret_cert, cert_size, err);
    if (rc != BH_OK)
        return rc;
    return certificate_copy_text(key_pem, ret_key, key_size, err);
}
