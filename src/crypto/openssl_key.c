#include "crypto/openssl.h"

#include <string.h>
#include <sys/stat.h>

#include <openssl/crypto.h>

#include "base/fd.h"

enum { KEY_BYTES = 32 };

/* A key that others could have read or replaced is none. */
static bh_rc
check_mode(const char *path, struct bh_err *err)
{
    struct stat status;

    if (lstat(path, &status) != 0)
        return bh_err_errno(err, "key file %s", path);
    if (!S_ISREG(status.st_mode)) {
        bh_err_set(err, BH_INVALID, "key file %s is not a plain file", path);
        return bh_err_hint(err, "move it away, and put the key back from its copy");
    }
    if (status.st_mode & 077) {
        bh_err_set(err, BH_DENIED, "key file %s may be used by others", path);
        return bh_err_hint(err, "chmod 600 %s", path);
    }
    return BH_OK;
}

static bh_rc
key_file_load(const char *path, uint8_t ret_private[KEY_BYTES], struct bh_err *err)
{
    char bytes[KEY_BYTES + 1];
    struct bh_buf buf;
    bh_rc rc = check_mode(path, err);

    bh_buf_init_fixed(&buf, bytes, sizeof bytes);
    if (rc == BH_OK)
        rc = bh_file_read(path, sizeof bytes, &buf, err);
    if (rc == BH_FULL || (rc == BH_OK && buf.length != KEY_BYTES))
        rc = bh_err_set(err, BH_INVALID, "key file %s does not hold %d bytes", path, KEY_BYTES);
    if (rc == BH_OK)
        memcpy(ret_private, bytes, KEY_BYTES);
    OPENSSL_cleanse(bytes, sizeof bytes);
    return rc;
}

static bh_rc
key_file_make(const struct bh_crypto_ops *crypto, const char *path, uint8_t ret_private[KEY_BYTES],
              struct bh_err *err)
{
    uint8_t private_key[KEY_BYTES], public_key[KEY_BYTES];
    bh_rc rc = crypto->make_key(private_key, public_key, err);

    if (rc == BH_OK)
        rc = bh_file_replace(path, private_key, sizeof private_key, 0600, err);
    if (rc == BH_OK)
        memcpy(ret_private, private_key, sizeof private_key);
    OPENSSL_cleanse(private_key, sizeof private_key);
    return rc;
}

bh_rc
bh_crypto_key_load_or_make(const struct bh_crypto_ops *crypto, const char *path, uint8_t ret_private[32],
                           bool *ret_made, struct bh_err *err)
{
    bh_rc rc = key_file_load(path, ret_private, err);
    bool made = false;

    if (rc == BH_NOT_FOUND) {
        rc = key_file_make(crypto, path, ret_private, err);
        made = true;
    }
    if (rc != BH_OK)
        return rc;
    if (ret_made)
        *ret_made = made;
    return BH_OK;
}
