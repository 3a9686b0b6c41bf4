#include <openssl/err.h>

#include "crypto/openssl_internal.h"

bh_rc
bh_openssl_err(struct bh_err *err, bh_rc rc, const char *what)
{
    unsigned long number = ERR_get_error();
    const char *reason = ERR_reason_error_string(number);

    ERR_clear_error();
    return bh_err_sys(err, rc, BH_SYS_TLS, ERR_GET_REASON(number), "%s: %s", what,
                      reason ? reason : "unknown reason");
}
