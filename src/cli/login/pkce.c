#include "cli/login/pkce.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/sha.h>

#include "base/base64.h"

enum { RANDOM_BYTES = 32 };

static void
put_base64url(const uint8_t bytes[RANDOM_BYTES], char ret_text[BH_PKCE_TEXT])
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, ret_text, BH_PKCE_TEXT);
    bh_base64url_encode(&out, bytes, RANDOM_BYTES);
    bh_buf_putc(&out, '\0');
}

static bh_rc
make_text(char ret_text[BH_PKCE_TEXT], struct bh_err *err)
{
    uint8_t bytes[RANDOM_BYTES];

    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return bh_err_errno(err, "random bytes");
    put_base64url(bytes, ret_text);
    return BH_OK;
}

bh_rc
bh_pkce_challenge(const char *verifier, char ret_challenge[BH_PKCE_TEXT], struct bh_err *err)
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL);
    __typeof__(SHA256) *sha256 = NULL;
    uint8_t digest[SHA256_DIGEST_LENGTH];

    if (library)
        sha256 = (__typeof__(SHA256) *)dlsym(library, "SHA256");
    if (!sha256) {
        bh_err_set(err, BH_UNAVAILABLE, "signing in with a browser needs libcrypto.so.3");
        return bh_err_hint(err, "install libssl3, or sign in with --device or --account");
    }
    sha256((const uint8_t *)verifier, strlen(verifier), digest);
    put_base64url(digest, ret_challenge);
    return BH_OK;
}

bh_rc
bh_pkce_make(struct bh_pkce *ret_pkce, struct bh_err *err)
{
    bh_rc rc = make_text(ret_pkce->verifier, err);

    if (rc != BH_OK)
        return rc;
    rc = make_text(ret_pkce->state, err);
    if (rc != BH_OK)
        return rc;
    return bh_pkce_challenge(ret_pkce->verifier, ret_pkce->challenge, err);
}

bool
bh_pkce_same(const char *a, const char *b)
{
    size_t length = strlen(a);
    volatile uint8_t differs = 0;

    if (strlen(b) != length)
        return false;
    for (size_t i = 0; i < length; i++)
        differs = differs | (uint8_t)(a[i] ^ b[i]);
    return differs == 0;
}
