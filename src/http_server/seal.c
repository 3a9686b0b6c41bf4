#include "http_server/seal.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <gnutls/crypto.h>

#include "base/assert.h"

enum {
    HEAD_BYTES = 5,
    NONCE_BYTES = 12,
    NUMBER_BYTES = 8,
    TYPE_ALERT = 21,
    TYPE_DATA = 23,
    ALERT_WARNING = 1,
    CLOSE_NOTIFY = 0,
    NUMBER_MAX = 1 << 24 /* RFC 8446, 5.5: 2^24.5 of full size */
};

struct bh_seal {
    gnutls_aead_cipher_hd_t cipher;
    size_t tag_bytes, text_max;
    uint64_t number; /* of the next record: how many the key has sealed, the session's own among them */
    uint8_t iv[NONCE_BYTES];
};

static ssize_t
seal_drop_push(gnutls_transport_ptr_t transport, const void *bytes, size_t length)
{
    return (ssize_t)length;
}

static ssize_t
seal_refuse_push(gnutls_transport_ptr_t transport, const void *bytes, size_t length)
{
    errno = EPIPE;
    return -1;
}

/* How much text the client takes in a record, which the library does not say but keeps to: what it puts in
 * one that leads nowhere.  From now on the session sends nothing. */
static size_t
seal_silence(gnutls_session_t session)
{
    static const char text[BH_SEAL_TEXT_MAX];
    ssize_t most;

    gnutls_transport_set_push_function(session, seal_drop_push);
    most = gnutls_record_send(session, text, sizeof text);
    gnutls_transport_set_push_function(session, seal_refuse_push);
    return most > 0 ? (size_t)most : 0;
}

static uint64_t
seal_read_number(const uint8_t bytes[NUMBER_BYTES])
{
    uint64_t number = 0;

    for (int i = 0; i < NUMBER_BYTES; i++)
        number = number << 8 | bytes[i];
    return number;
}

struct bh_seal *
bh_seal_take(gnutls_session_t session)
{
    gnutls_cipher_algorithm_t algorithm = gnutls_cipher_get(session);
    uint8_t number[NUMBER_BYTES];
    gnutls_datum_t iv, key; /* the session's own */
    struct bh_seal *seal;

    if (gnutls_protocol_get_version(session) != GNUTLS_TLS1_3
        || gnutls_record_get_state(session, 0, NULL, &iv, &key, number) != 0 || iv.size != NONCE_BYTES)
        return NULL;
    seal = calloc(1, sizeof *seal);
    BH_ASSERT(seal);
    if (gnutls_aead_cipher_init(&seal->cipher, algorithm, &key) != 0) {
        free(seal);
        return NULL;
    }
    memcpy(seal->iv, iv.data, NONCE_BYTES);
    seal->number = seal_read_number(number);
    seal->tag_bytes = gnutls_cipher_get_tag_size(algorithm);
    BH_ASSERT(seal->tag_bytes <= 16);
    seal->text_max = seal_silence(session);
    if (seal->text_max > 0)
        return seal;
    bh_seal_free(seal);
    return NULL;
}

void
bh_seal_free(struct bh_seal *seal)
{
    if (!seal)
        return;
    gnutls_aead_cipher_deinit(seal->cipher);
    gnutls_memset(seal, 0, sizeof *seal);
    free(seal);
}

/* The IV, with the record's number over its end. */
static void
seal_make_nonce(const struct bh_seal *seal, uint8_t ret_nonce[NONCE_BYTES])
{
    memcpy(ret_nonce, seal->iv, NONCE_BYTES);
    for (int i = 0; i < NUMBER_BYTES; i++)
        ret_nonce[NONCE_BYTES - 1 - i] ^= (uint8_t)(seal->number >> (8 * i));
}

static bool
seal_put_record(struct bh_seal *seal, uint8_t type, const void *bytes, size_t length,
                struct bh_buf *ret_records)
{
    size_t sealed = length + 1 + seal->tag_bytes, room = sealed;
    uint8_t head[HEAD_BYTES] = { TYPE_DATA, 3, 3, (uint8_t)(sealed >> 8), (uint8_t)sealed };
    const giovec_t associated = { head, HEAD_BYTES };
    const giovec_t text[] = { { (void *)(uintptr_t)bytes, length }, { &type, 1 } };
    uint8_t nonce[NONCE_BYTES];
    char *record;

    if (seal->number >= NUMBER_MAX)
        return false;
    bh_buf_put(ret_records, head, HEAD_BYTES);
    record = bh_buf_extend(ret_records, sealed);
    if (!record)
        return false;
    seal_make_nonce(seal, nonce);
    seal->number++;
    return gnutls_aead_cipher_encryptv(seal->cipher, nonce, NONCE_BYTES, &associated, 1, seal->tag_bytes,
                                       text, 2, record, &room)
           == 0;
}

bool
bh_seal_put(struct bh_seal *seal, const void *bytes, size_t length, struct bh_buf *ret_records)
{
    const char *at = bytes;
    size_t part;

    for (; length > 0; at += part, length -= part) {
        part = length < seal->text_max ? length : seal->text_max;
        if (!seal_put_record(seal, TYPE_DATA, at, part, ret_records))
            return false;
    }
    return true;
}

bool
bh_seal_put_end(struct bh_seal *seal, struct bh_buf *ret_records)
{
    static const uint8_t alert[] = { ALERT_WARNING, CLOSE_NOTIFY };

    return seal_put_record(seal, TYPE_ALERT, alert, sizeof alert, ret_records);
}
