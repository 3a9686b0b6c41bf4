#include "identity/webauthn_internal.h"

/* RFC 8949, 3: major types. */
enum { CBOR_BYTES = 2, CBOR_TEXT = 3, CBOR_ARRAY = 4, CBOR_MAP = 5, CBOR_TAG = 6 };

enum { DEPTH_MAX = 4 }; /* CTAP 2.1, 8 */

/* An item's head: how it begins, and its number.  Indefinite lengths are refused. */
static bool
cbor_read_head(struct bh_webauthn_bytes *left, uint8_t *ret_major, uint64_t *ret_number)
{
    uint8_t first, more;
    uint64_t number = 0;

    if (left->length == 0)
        return false;
    first = left->bytes[0];
    more = first & 31;
    left->bytes++;
    left->length--;
    *ret_major = first >> 5;
    if (more > 27)
        return false;
    if (more < 24) {
        *ret_number = more;
        return true;
    }
    more = (uint8_t)(1 << (more - 24));
    if (left->length < more)
        return false;
    for (uint8_t i = 0; i < more; i++)
        number = number << 8 | left->bytes[i];
    left->bytes += more;
    left->length -= more;
    *ret_number = number;
    return true;
}

static bool
skip(struct bh_webauthn_bytes *left, uint32_t depth)
{
    uint64_t number;
    uint8_t major;

    if (depth > DEPTH_MAX || !cbor_read_head(left, &major, &number) || major == CBOR_TAG)
        return false;
    if (major < CBOR_BYTES || major > CBOR_MAP)
        return true;
    if (number > left->length) /* each item of a list has a byte at least */
        return false;
    if (major == CBOR_BYTES || major == CBOR_TEXT) {
        left->bytes += number;
        left->length -= number;
        return true;
    }
    for (number *= major == CBOR_MAP ? 2 : 1; number > 0; number--)
        if (!skip(left, depth + 1))
            return false;
    return true;
}

bool
bh_webauthn_cbor_skip_map(struct bh_webauthn_bytes *left)
{
    return left->length > 0 && left->bytes[0] >> 5 == CBOR_MAP && skip(left, 1);
}
