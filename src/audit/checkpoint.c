#include "audit/checkpoint.h"

#include <string.h>

#include "base/base64.h"
#include "base/num.h"

void
bh_checkpoint_format(struct bh_buf *out, const struct bh_checkpoint *checkpoint)
{
    bh_buf_puts(out, checkpoint->origin);
    bh_buf_putc(out, '\n');
    bh_buf_put_u64(out, checkpoint->size);
    bh_buf_putc(out, '\n');
    bh_base64_encode(out, checkpoint->root, sizeof checkpoint->root);
    bh_buf_putc(out, '\n');
}

bh_rc
bh_checkpoint_sign(const struct bh_crypto_ops *crypto, const struct bh_checkpoint *checkpoint,
                   const uint8_t private_key[32], struct bh_buf *out, struct bh_err *err)
{
    bh_checkpoint_format(out, checkpoint);
    return bh_note_sign(crypto, checkpoint->origin, private_key, out, err);
}

/* The next line of text[0 .. *length), without its newline, into `size` bytes. */
static bool
checkpoint_parse_line(const char **text, size_t *length, char *ret_line, size_t size)
{
    const char *end = memchr(*text, '\n', *length);
    size_t count = end ? (size_t)(end - *text) : 0;

    if (!end || count >= size)
        return false;
    memcpy(ret_line, *text, count);
    ret_line[count] = '\0';
    *text += count + 1;
    *length -= count + 1;
    return true;
}

static bh_rc
parse_body(const char *text, size_t length, struct bh_checkpoint *ret, struct bh_err *err)
{
    char size[24], root[48];
    struct bh_buf bytes;

    if (!checkpoint_parse_line(&text, &length, ret->origin, sizeof ret->origin)
        || !checkpoint_parse_line(&text, &length, size, sizeof size)
        || !checkpoint_parse_line(&text, &length, root, sizeof root) || length > 0)
        return bh_err_set(err, BH_INVALID, "checkpoint is not three lines: origin, size, root");
    if (bh_parse_u64(size, &ret->size, err) != BH_OK)
        return bh_err_set(err, BH_INVALID, "checkpoint has the size \"%s\"", size);
    bh_buf_init_fixed(&bytes, ret->root, sizeof ret->root);
    if (!bh_base64_decode(&bytes, root, strlen(root)) || bytes.length != sizeof ret->root)
        return bh_err_set(err, BH_INVALID, "checkpoint has the root \"%s\"", root);
    return BH_OK;
}

bh_rc
bh_checkpoint_open(const struct bh_crypto_ops *crypto, const struct bh_note_key *key, const char *note,
                   struct bh_checkpoint *ret_checkpoint, struct bh_err *err)
{
    struct bh_checkpoint checkpoint;
    size_t length;
    bh_rc rc = bh_note_open(crypto, key, note, &length, err);

    if (rc != BH_OK)
        return rc;
    rc = parse_body(note, length, &checkpoint, err);
    if (rc != BH_OK)
        return rc;
    if (strcmp(checkpoint.origin, key->name) != 0)
        return bh_err_set(err, BH_DENIED, "checkpoint is of the log %s, not of %s", checkpoint.origin,
                          key->name);
    *ret_checkpoint = checkpoint;
    return BH_OK;
}
