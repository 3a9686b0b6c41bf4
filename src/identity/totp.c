#include "identity/totp.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/assert.h"
#include "identity/form.h"
#include "identity/secret.h"

static const EVP_MD *
totp_hash_of(enum bh_totp_hash hash)
{
    if (hash == BH_TOTP_SHA512)
        return EVP_sha512();
    return hash == BH_TOTP_SHA256 ? EVP_sha256() : EVP_sha1();
}

/* RFC 4226, 5.3, of the counter `step`. */
static void
code_of_step(const struct bh_totp *totp, uint64_t step, char ret_code[9])
{
    static const uint32_t powers[] = { 1000000, 10000000, 100000000 };
    uint8_t counter[8], digest[EVP_MAX_MD_SIZE];
    unsigned length = 0, at;
    uint32_t number;

    BH_ASSERT(totp->digits >= 6 && totp->digits <= 8 && totp->period_s > 0);
    BH_ASSERT(totp->secret_bytes > 0 && totp->secret_bytes <= BH_TOTP_SECRET_MAX);
    for (size_t i = 0; i < sizeof counter; i++)
        counter[i] = (uint8_t)(step >> (56 - 8 * i));
    BH_ASSERT(HMAC(totp_hash_of(totp->hash), totp->secret, (int)totp->secret_bytes, counter, sizeof counter,
                   digest, &length));
    at = digest[length - 1] & 15;
    number = (uint32_t)(digest[at] & 0x7f) << 24 | (uint32_t)digest[at + 1] << 16
             | (uint32_t)digest[at + 2] << 8 | digest[at + 3];
    snprintf(ret_code, 9, "%0*u", (int)totp->digits, number % powers[totp->digits - 6]);
}

void
bh_totp_code(const struct bh_totp *totp, bh_ns at, char ret_code[9])
{
    code_of_step(totp, at / BH_NS_PER_S / totp->period_s, ret_code);
}

enum bh_identity_fault
bh_totp_check(const struct bh_totp *totp, const char *code, bh_ns now, uint64_t *last_step)
{
    uint64_t step = now / BH_NS_PER_S / totp->period_s, found = 0;
    bool reused = false;
    char want[9];

    BH_ASSERT(totp->window <= BH_TOTP_WINDOW_MAX);
    if (strlen(code) != totp->digits || code[strspn(code, "0123456789")])
        return BH_FAULT_TOTP_FORM;
    for (uint64_t i = 0; i <= 2 * totp->window; i++) {
        uint64_t candidate = step + i - totp->window;
        bool same;

        code_of_step(totp, candidate, want);
        same = bh_secret_equal(code, want);
        if (same && candidate > *last_step && step + i >= totp->window)
            found = candidate;
        reused = reused || (same && candidate <= *last_step);
    }
    bh_secret_wipe(want, sizeof want);
    if (found == 0)
        return reused ? BH_FAULT_TOTP_REUSED : BH_FAULT_TOTP_WRONG;
    *last_step = found;
    return BH_FAULT_NONE;
}

/* RFC 4648 base 32 without padding. */
static void
put_base32(struct bh_buf *out, const uint8_t *bytes, size_t length)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    uint32_t held = 0, bits = 0;

    for (size_t i = 0; i < length; i++) {
        held = (held << 8 | bytes[i]) & 0xfff;
        for (bits += 8; bits >= 5; bits -= 5)
            bh_buf_putc(out, alphabet[held >> (bits - 5) & 31]);
    }
    if (bits > 0)
        bh_buf_putc(out, alphabet[held << (5 - bits) & 31]);
}

void
bh_totp_put_secret(struct bh_buf *out, const struct bh_totp *totp)
{
    put_base32(out, totp->secret, totp->secret_bytes);
}

void
bh_totp_put_address(struct bh_buf *out, const struct bh_totp *totp, const char *site, const char *account)
{
    static const char *const names[] = { "SHA1", "SHA256", "SHA512" };

    bh_buf_puts(out, "otpauth://totp/");
    bh_form_put_encoded(out, site);
    bh_buf_putc(out, ':');
    bh_form_put_encoded(out, account);
    bh_buf_puts(out, "?secret=");
    bh_totp_put_secret(out, totp);
    bh_buf_puts(out, "&issuer=");
    bh_form_put_encoded(out, site);
    bh_buf_printf(out, "&algorithm=%s&digits=%u&period=%u", names[totp->hash], totp->digits, totp->period_s);
}
