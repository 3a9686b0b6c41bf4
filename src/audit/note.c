#include "audit/note.h"

#include <string.h>

#include "base/base64.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/utf8.h"
#include "ports/crypto.h"

enum {
    KEY_ED25519 = 1,
    KEY_COSIGNATURE = 4, /* of a witness, with Ed25519 */
    KEY_BYTES = 1 + 32,  /* its type and the key */
    ID_BYTES = 4,
    TIME_BYTES = 8,
    SIGNATURE_BYTES = ID_BYTES + 64,
    COSIGNATURE_BYTES = ID_BYTES + TIME_BYTES + 64,
};

#define EM_DASH "\xe2\x80\x94 "

bool
bh_note_name_valid(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > BH_NODE_RECORD_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '+')
            return false;
    return true;
}

/* From a key with its type before it. */
static bh_rc
note_make_key(const struct bh_crypto_ops *crypto, const char *name, const uint8_t typed[KEY_BYTES],
              struct bh_note_key *ret_key, struct bh_err *err)
{
    struct bh_note_key key = { .name = "" };
    char head[BH_NODE_RECORD_NAME_MAX + 1];
    size_t length = strlen(name);
    uint8_t digest[32];

    if (!bh_note_name_valid(name))
        return bh_err_set(err, BH_INVALID, "key name \"%.60s\" is empty, too long or has blanks or +", name);
    memcpy(key.name, name, length + 1);
    memcpy(key.public_key, typed + 1, sizeof key.public_key);
    memcpy(head, name, length);
    head[length] = '\n';
    crypto->sha256(head, length + 1, typed, KEY_BYTES, digest);
    memcpy(key.id, digest, sizeof key.id);
    *ret_key = key;
    return BH_OK;
}

bh_rc
bh_note_key_make(const struct bh_crypto_ops *crypto, const char *name, const uint8_t public_key[32],
                 struct bh_note_key *ret_key, struct bh_err *err)
{
    uint8_t typed[KEY_BYTES] = { KEY_ED25519 };

    memcpy(typed + 1, public_key, 32);
    return note_make_key(crypto, name, typed, ret_key, err);
}

void
bh_note_key_format(struct bh_buf *out, const struct bh_note_key *key)
{
    uint8_t bytes[KEY_BYTES] = { KEY_ED25519 };

    memcpy(bytes + 1, key->public_key, sizeof key->public_key);
    bh_buf_puts(out, key->name);
    bh_buf_putc(out, '+');
    bh_buf_put_hex(out, key->id, sizeof key->id);
    bh_buf_putc(out, '+');
    bh_base64_encode(out, bytes, sizeof bytes);
}

/* Exactly `size` bytes from base 64; false otherwise. */
static bool
note_decode_exactly(const char *text, size_t length, void *ret_bytes, size_t size)
{
    struct bh_buf out;

    bh_buf_init_fixed(&out, ret_bytes, size);
    return bh_base64_decode(&out, text, length) && out.length == size;
}

static bh_rc
note_parse_key(const struct bh_crypto_ops *crypto, const char *vkey, uint8_t type,
               struct bh_note_key *ret_key, struct bh_err *err)
{
    const char *plus = strchr(vkey, '+'), *code = plus ? plus + 1 + 2 * ID_BYTES : NULL;
    char name[BH_NODE_RECORD_NAME_MAX + 1] = "", hex[2 * ID_BYTES + 1] = "";
    uint8_t id[ID_BYTES], bytes[KEY_BYTES];
    struct bh_note_key key;
    bh_rc rc;

    if (!plus || (size_t)(plus - vkey) >= sizeof name || strlen(plus) <= 2 * ID_BYTES + 1 || *code != '+')
        return bh_err_set(err, BH_INVALID, "verifier key is malformed, want name+id+key");
    memcpy(name, vkey, (size_t)(plus - vkey));
    memcpy(hex, plus + 1, 2 * ID_BYTES);
    if (!bh_parse_hex(hex, id, sizeof id)
        || !note_decode_exactly(code + 1, strlen(code + 1), bytes, sizeof bytes) || bytes[0] != type)
        return bh_err_set(err, BH_INVALID, "verifier key of %s is no Ed25519 key%s", name,
                          type == KEY_COSIGNATURE ? " of a witness" : "");
    rc = note_make_key(crypto, name, bytes, &key, err);
    if (rc != BH_OK)
        return rc;
    if (memcmp(key.id, id, sizeof id) != 0)
        return bh_err_set(err, BH_INVALID, "verifier key of %s does not have the id %s", name, hex);
    *ret_key = key;
    return BH_OK;
}

bh_rc
bh_note_key_parse(const struct bh_crypto_ops *crypto, const char *vkey, struct bh_note_key *ret_key,
                  struct bh_err *err)
{
    return note_parse_key(crypto, vkey, KEY_ED25519, ret_key, err);
}

bh_rc
bh_note_witness_parse(const struct bh_crypto_ops *crypto, const char *vkey, struct bh_note_key *ret_witness,
                      struct bh_err *err)
{
    return note_parse_key(crypto, vkey, KEY_COSIGNATURE, ret_witness, err);
}

bh_rc
bh_note_keys_parse(const struct bh_crypto_ops *crypto, const char *vkeys,
                   struct bh_note_key ret_keys[BH_NODE_RECORD_KEYS_MAX], struct bh_err *err)
{
    uint32_t count = 0;
    bh_rc rc = BH_OK;

    for (const char *at = vkeys; rc == BH_OK && *at;) {
        char line[BH_NODE_RECORD_VKEY_MAX + 1] = "";
        size_t length = strcspn(at, "\r\n");

        if (count == BH_NODE_RECORD_KEYS_MAX || length >= sizeof line)
            return bh_err_set(err, BH_INVALID, "too many verifier keys, or too long ones");
        memcpy(line, at, length);
        at += length + strspn(at + length, "\r\n");
        rc = bh_note_key_parse(crypto, line, &ret_keys[count], err);
        if (rc == BH_OK && strcmp(ret_keys[count].name, ret_keys[0].name) != 0)
            rc = bh_err_set(err, BH_INVALID, "verifier keys of %s and %s", ret_keys[0].name,
                            ret_keys[count].name);
        if (rc == BH_OK && count > 0)
            ret_keys[count - 1].older = &ret_keys[count];
        count++;
    }
    return rc == BH_OK && count == 0 ? bh_err_set(err, BH_INVALID, "no verifier key") : rc;
}

struct signer {
    const char *name;
    const uint8_t *private_key;
};

/* Append the signature line of the first `length` bytes. */
static bh_rc
note_put_signature(const struct bh_crypto_ops *crypto, struct signer signer, size_t length,
                   struct bh_buf *note, struct bh_err *err)
{
    uint8_t public_key[32], signature[SIGNATURE_BYTES];
    struct bh_note_key key;
    bh_rc rc = crypto->public_of(signer.private_key, public_key, err);

    if (rc != BH_OK)
        return rc;
    rc = bh_note_key_make(crypto, signer.name, public_key, &key, err);
    if (rc != BH_OK)
        return rc;
    rc = crypto->sign(signer.private_key, note->bytes, length, signature + ID_BYTES, err);
    if (rc != BH_OK)
        return rc;
    memcpy(signature, key.id, ID_BYTES);
    bh_buf_puts(note, length == note->length ? "\n" EM_DASH : EM_DASH);
    bh_buf_puts(note, signer.name);
    bh_buf_putc(note, ' ');
    bh_base64_encode(note, signature, sizeof signature);
    bh_buf_putc(note, '\n');
    return BH_OK;
}

bh_rc
bh_note_sign(const struct bh_crypto_ops *crypto, const char *name, const uint8_t private_key[32],
             struct bh_buf *note, struct bh_err *err)
{
    if (note->length == 0 || note->bytes[note->length - 1] != '\n')
        return bh_err_set(err, BH_INVALID, "the text of a note ends with a newline");
    return note_put_signature(crypto, (struct signer){ name, private_key }, note->length, note, err);
}

/* Valid UTF-8 without control characters but newlines, ending with one. */
static bool
note_is_clean(const char *note, size_t length)
{
    for (size_t i = 0; i < length;) {
        size_t step = bh_utf8_step(note + i, length - i);

        if (step == 0 || ((unsigned char)note[i] < 0x20 && note[i] != '\n'))
            return false;
        i += step;
    }
    return length > 0 && note[length - 1] == '\n';
}

/* Where the signatures begin: behind the last empty line.  NULL: there is none. */
static const char *
note_find_signatures(const char *note, size_t length)
{
    for (size_t i = length; i-- > 1;)
        if (note[i] == '\n' && note[i - 1] == '\n')
            return note + i + 1;
    return NULL;
}

bh_rc
bh_note_sign_too(const struct bh_crypto_ops *crypto, const char *name, const uint8_t private_key[32],
                 struct bh_buf *note, struct bh_err *err)
{
    const char *lines = note_find_signatures(note->bytes, note->length);

    if (!lines || lines == note->bytes + note->length)
        return bh_err_set(err, BH_INVALID, "the note has no signature yet");
    return note_put_signature(crypto, (struct signer){ name, private_key }, (size_t)(lines - note->bytes) - 1,
                              note, err);
}

struct signature_line {
    const char *name, *code;
    size_t name_length, code_length;
};

/* Take the line at *at apart and step behind it. */
static bool
note_split_line(const char **at, struct signature_line *ret)
{
    const char *end = strchr(*at, '\n'), *name = *at + strlen(EM_DASH), *blank;

    if (!end || strncmp(*at, EM_DASH, strlen(EM_DASH)) != 0)
        return false;
    blank = memchr(name, ' ', (size_t)(end - name));
    if (!blank || blank == name)
        return false;
    *ret = (struct signature_line){ name, blank + 1, (size_t)(blank - name), (size_t)(end - blank) - 1 };
    *at = end + 1;
    return true;
}

static bool
note_is_by(const struct signature_line *line, const struct bh_note_key *key)
{
    return line->name_length == strlen(key->name) && memcmp(line->name, key->name, line->name_length) == 0;
}

/* A note's text, and the keys whose signature of it is wanted. */
struct opening {
    const struct bh_crypto_ops *crypto;
    const struct bh_note_key *key;
    struct bh_slice text;
};

/* Whether it is a good signature by one of the keys, which have one name.  A line of that name that
 * is no base 64, and any other signature under the id of a key, are faults. */
static bh_rc
note_check_line(const struct opening *opening, const struct signature_line *line, bool *verified,
                struct bh_err *err)
{
    const struct bh_note_key *key = opening->key;
    uint8_t bytes[BH_NODE_RECORD_BYTES_MAX];
    const struct bh_note_key *signer = key;
    struct bh_buf signature;
    bh_rc rc;

    if (!note_is_by(line, key))
        return BH_OK;
    bh_buf_init_fixed(&signature, bytes, sizeof bytes);
    if (!bh_base64_decode(&signature, line->code, line->code_length))
        return bh_err_set(err, BH_INVALID, "note has a malformed signature of %s", key->name);
    while (signer && (signature.length < ID_BYTES || memcmp(bytes, signer->id, ID_BYTES) != 0))
        signer = signer->older;
    if (!signer)
        return BH_OK;
    if (signature.length != SIGNATURE_BYTES)
        return bh_err_set(err, BH_DENIED, "note has a malformed signature of %s", key->name);
    rc = opening->crypto->verify(signer->public_key, opening->text.text, opening->text.length,
                                 bytes + ID_BYTES, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "note signed by %s", key->name);
    *verified = true;
    return BH_OK;
}

static bh_rc
note_check_signatures(const struct bh_crypto_ops *crypto, const struct bh_note_key *key, const char *note,
                      const char *lines, struct bh_err *err)
{
    const struct opening opening = { crypto, key, { note, (size_t)(lines - note) - 1 } };
    bool verified = false;

    for (unsigned count = 0; *lines; count++) {
        struct signature_line line;
        bh_rc rc;

        if (count == BH_NODE_RECORD_SIGNATURES_MAX || !note_split_line(&lines, &line))
            return bh_err_set(err, BH_INVALID, "note has a malformed signature line, or too many");
        rc = note_check_line(&opening, &line, &verified, err);
        if (rc != BH_OK)
            return rc;
    }
    if (!verified)
        return bh_err_set(err, BH_DENIED, "note is not signed by %s", key->name);
    return BH_OK;
}

bh_rc
bh_note_open(const struct bh_crypto_ops *crypto, const struct bh_note_key *key, const char *note,
             size_t *ret_text_length, struct bh_err *err)
{
    size_t length = strnlen(note, BH_NODE_RECORD_BYTES_MAX + 1);
    const char *lines;
    bh_rc rc;

    if (length > BH_NODE_RECORD_BYTES_MAX)
        return bh_err_set(err, BH_INVALID, "note is longer than %d bytes", BH_NODE_RECORD_BYTES_MAX);
    if (!note_is_clean(note, length))
        return bh_err_set(err, BH_INVALID, "note is not lines of plain UTF-8 text");
    lines = note_find_signatures(note, length);
    if (!lines || !*lines)
        return bh_err_set(err, BH_INVALID, "note has no signatures");
    rc = note_check_signatures(crypto, key, note, lines, err);
    if (rc != BH_OK)
        return rc;
    *ret_text_length = (size_t)(lines - note) - 1;
    return BH_OK;
}

/* A cosignature says when it was made, and signs that with the note's text. */
static bh_rc
note_check_cosignature(const struct bh_crypto_ops *crypto, const struct bh_note_key *witness,
                       struct bh_slice text, const uint8_t cosignature[COSIGNATURE_BYTES], struct bh_err *err)
{
    char message[BH_NODE_RECORD_BYTES_MAX + 64];
    uint64_t time_s = 0;
    struct bh_buf out;

    for (int i = 0; i < TIME_BYTES; i++)
        time_s = time_s << 8 | cosignature[ID_BYTES + i];
    bh_buf_init_fixed(&out, message, sizeof message);
    bh_buf_puts(&out, "cosignature/v1\ntime ");
    bh_buf_put_u64(&out, time_s);
    bh_buf_putc(&out, '\n');
    bh_buf_put(&out, text.text, text.length);
    return crypto->verify(witness->public_key, message, out.length, cosignature + ID_BYTES + TIME_BYTES, err);
}

bh_rc
bh_note_cosigned(const struct bh_crypto_ops *crypto, const struct bh_note_key *witness, const char *note,
                 uint64_t *ret_time_s, struct bh_err *err)
{
    const char *lines = note_find_signatures(note, strlen(note));
    struct bh_slice text = { note, lines ? (size_t)(lines - note) - 1 : 0 };
    uint8_t bytes[COSIGNATURE_BYTES];
    struct signature_line line;

    while (lines && *lines && note_split_line(&lines, &line)) {
        bh_rc rc;

        if (line.name_length != strlen(witness->name)
            || memcmp(line.name, witness->name, line.name_length) != 0
            || !note_decode_exactly(line.code, line.code_length, bytes, sizeof bytes)
            || memcmp(bytes, witness->id, ID_BYTES) != 0)
            continue;
        rc = note_check_cosignature(crypto, witness, text, bytes, err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "cosignature of %s", witness->name);
        *ret_time_s = 0;
        for (int i = 0; i < TIME_BYTES; i++)
            *ret_time_s = *ret_time_s << 8 | bytes[ID_BYTES + i];
        return BH_OK;
    }
    return bh_err_set(err, BH_NOT_FOUND, "not cosigned by %s", witness->name);
}
