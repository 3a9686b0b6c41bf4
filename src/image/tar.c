#include "image/tar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"

#define ID_MAX 65535
#define ENTRY_BYTES_MAX (UINT64_C(1) << 40)

/* Offsets in a header (POSIX.1-2001, ustar). */
enum {
    NAME = 0,
    UID = 108,
    GID = 116,
    SIZE = 124,
    SUM = 148,
    TYPE = 156,
    LINK = 157,
    MAGIC = 257,
    PREFIX = 345
};

void
bh_tar_init(struct bh_tar *tar, struct bh_tar_budget *budget)
{
    memset(tar, 0, sizeof *tar);
    tar->budget = budget;
}

/* ---- fields ---- */

/* Octal with blanks around, or base 256 when the first bit is set. */
static bool
tar_read_number(const uint8_t *field, size_t length, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t i = 0;

    if (field[0] & 0x80) {
        for (i = 0; i < length; i++) {
            if (number >> 55)
                return false;
            number = number << 8 | (i ? field[i] : field[0] & 0x7f);
        }
        *ret_number = number;
        return true;
    }
    while (i < length && field[i] == ' ')
        i++;
    for (; i < length && field[i] >= '0' && field[i] <= '7'; i++) {
        if (number >> 60)
            return false;
        number = number << 3 | (uint64_t)(field[i] - '0');
    }
    for (; i < length; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return false;
    *ret_number = number;
    return true;
}

static bool
tar_is_sum_right(const uint8_t *block)
{
    uint64_t wanted, sum = 0;

    for (uint32_t i = 0; i < BH_TAR_BLOCK; i++)
        sum += i >= SUM && i < SUM + 8 ? ' ' : block[i];
    return tar_read_number(block + SUM, 8, &wanted) && wanted == sum;
}

static bool
tar_is_zero(const uint8_t *block)
{
    for (uint32_t i = 0; i < BH_TAR_BLOCK; i++)
        if (block[i])
            return false;
    return true;
}

static void
tar_copy_field(char *out, const uint8_t *field, size_t length)
{
    size_t used = strnlen((const char *)field, length);

    memcpy(out, field, used);
    out[used] = '\0';
}

/* ---- what may be ---- */

static bh_rc
tar_check_name(const char *name, struct bh_err *err)
{
    uint32_t depth = 0;

    if (!*name)
        return bh_err_set(err, BH_INVALID, "an entry without a name");
    for (const char *at = name; *at;) {
        size_t length = strcspn(at, "/");

        if (length == 2 && at[0] == '.' && at[1] == '.')
            return bh_err_set(err, BH_DENIED, "\"%.80s\" leads upward", name);
        if (length > 255)
            return bh_err_set(err, BH_DENIED, "\"%.80s\" has a part of over 255 bytes", name);
        depth += length > 0;
        at += length + (at[length] == '/');
    }
    if (depth > BH_TAR_DEPTH_MAX)
        return bh_err_set(err, BH_DENIED, "\"%.80s\" is over %d folders deep", name, BH_TAR_DEPTH_MAX);
    return BH_OK;
}

static bh_rc
tar_check_type(char type, const char *name, struct bh_err *err)
{
    switch (type) {
    case '\0':
    case '0':
    case '7':
    case '1':
    case '2':
    case '5':
    case '6':
        return BH_OK;
    case '3':
    case '4':
        bh_err_set(err, BH_DENIED, "\"%.80s\" is a device", name);
        return bh_err_hint(err, "build the image without device nodes; a job gets its own /dev");
    default:
        return bh_err_set(err, BH_DENIED, "\"%.80s\" is of a kind that no image has ('%c')", name,
                          type >= ' ' && type < 0x7f ? type : '?');
    }
}

static bh_rc
tar_check_ids(const struct bh_tar *tar, const char *name, struct bh_err *err)
{
    uint64_t uid, gid;

    if (!tar_read_number(tar->block + UID, 8, &uid) || !tar_read_number(tar->block + GID, 8, &gid))
        return bh_err_set(err, BH_INVALID, "\"%.80s\" has a damaged owner", name);
    uid = tar->has_uid ? tar->pax_uid : uid;
    gid = tar->has_gid ? tar->pax_gid : gid;
    if (uid <= ID_MAX && gid <= ID_MAX)
        return BH_OK;
    bh_err_set(err, BH_DENIED, "\"%.80s\" belongs to %s %" PRIu64, name, uid > ID_MAX ? "user" : "group",
               uid > ID_MAX ? uid : gid);
    return bh_err_hint(err, "a job has the ids 0 to %d: chown it in the image", ID_MAX);
}

/* ---- extended headers ---- */

static bh_rc
tar_damaged(struct bh_err *err)
{
    return bh_err_set(err, BH_INVALID, "an extended header is damaged");
}

static bool
tar_store_name(char *place, const char *value, size_t length)
{
    if (length > BH_TAR_NAME_MAX || memchr(value, '\0', length))
        return false;
    memcpy(place, value, length);
    place[length] = '\0';
    return true;
}

static bool
tar_store_number(const char *value, size_t length, uint64_t *ret_number, bool *ret_has)
{
    char text[24];
    struct bh_err ignored;

    if (length == 0 || length >= sizeof text)
        return false;
    memcpy(text, value, length);
    text[length] = '\0';
    *ret_has = true;
    return bh_parse_u64(text, ret_number, &ignored) == BH_OK;
}

/* "key=value" of one record. */
static bool
tar_store_record(struct bh_tar *tar, const char *key, size_t key_length, const char *value, size_t length)
{
#define IS(text) (key_length == sizeof(text) - 1 && memcmp(key, text, key_length) == 0)
    if (IS("path"))
        return tar_store_name(tar->name, value, length);
    if (IS("linkpath"))
        return tar_store_name(tar->link, value, length);
    if (IS("size"))
        return tar_store_number(value, length, &tar->pax_bytes, &tar->has_bytes);
    if (IS("uid"))
        return tar_store_number(value, length, &tar->pax_uid, &tar->has_uid);
    if (IS("gid"))
        return tar_store_number(value, length, &tar->pax_gid, &tar->has_gid);
    return key_length < 11 || memcmp(key, "GNU.sparse.", 11) != 0;
#undef IS
}

/* A header for all that follow says nothing that counts. */
static bool
tar_store_comment(struct bh_tar *tar, const char *key, size_t key_length, const char *value, size_t length)
{
    return key_length == 7 && memcmp(key, "comment", 7) == 0;
}

/* Records "LENGTH key=value\n"; LENGTH counts all of it. */
static bh_rc
tar_read_records(struct bh_tar *tar,
                 bool (*keep)(struct bh_tar *, const char *, size_t, const char *, size_t),
                 struct bh_err *err)
{
    const char *at = tar->extended, *end = at + tar->extended_length;

    while (at < end) {
        const char *start = at, *equals;
        size_t length = 0;

        for (; at < end && *at >= '0' && *at <= '9' && length <= BH_TAR_EXTENDED_MAX; at++)
            length = length * 10 + (size_t)(*at - '0');
        if (at == end || *at++ != ' ' || length > (size_t)(end - start) || length <= (size_t)(at - start)
            || start[length - 1] != '\n')
            return tar_damaged(err);
        equals = memchr(at, '=', (size_t)(start + length - at));
        if (!equals
            || !keep(tar, at, (size_t)(equals - at), equals + 1, (size_t)(start + length - 1 - equals - 1)))
            return tar_damaged(err);
        at = start + length;
    }
    return BH_OK;
}

/* What was collected describes the entry that follows. */
static bh_rc
tar_end_extended(struct bh_tar *tar, struct bh_err *err)
{
    char kind = tar->kind;
    size_t length = strnlen(tar->extended, tar->extended_length);

    tar->kind = 0;
    if (kind == 'x' || kind == 'g')
        return tar_read_records(tar, kind == 'x' ? tar_store_record : tar_store_comment, err);
    return tar_store_name(kind == 'L' ? tar->name : tar->link, tar->extended, length) ? BH_OK
                                                                                      : tar_damaged(err);
}

/* ---- headers ---- */

static void
tar_read_name(const struct bh_tar *tar, char *ret_name)
{
    char prefix[156] = "";

    if (tar->name[0]) {
        memcpy(ret_name, tar->name, strlen(tar->name) + 1);
        return;
    }
    if (memcmp(tar->block + MAGIC, "ustar\0", 6) == 0)
        tar_copy_field(prefix, tar->block + PREFIX, 155);
    if (!prefix[0]) {
        tar_copy_field(ret_name, tar->block + NAME, 100);
        return;
    }
    snprintf(ret_name, BH_TAR_NAME_MAX, "%s/", prefix);
    tar_copy_field(ret_name + strlen(ret_name), tar->block + NAME, 100);
}

static bh_rc
tar_spend(struct bh_tar *tar, uint64_t bytes, struct bh_err *err)
{
    if (tar->budget->files == 0)
        return bh_err_set(err, BH_FULL, "it has too many files");
    if (bytes > tar->budget->bytes) {
        bh_err_set(err, BH_FULL, "unpacked it is larger than a tenant's images may be");
        return bh_err_hint(err, "images_cap_mib of node.conf is the most");
    }
    tar->budget->files--;
    return BH_OK;
}

static bh_rc
tar_read_entry(struct bh_tar *tar, char type, uint64_t bytes, struct bh_err *err)
{
    char name[BH_TAR_NAME_MAX + 300];
    bh_rc rc;

    tar_read_name(tar, name);
    rc = tar_check_name(name, err);
    if (rc == BH_OK)
        rc = tar_check_type(type, name, err);
    if (rc == BH_OK)
        rc = tar_check_ids(tar, name, err);
    if (rc == BH_OK && type != '\0' && type != '0' && type != '7' && bytes > 0)
        rc = bh_err_set(err, BH_INVALID, "\"%.80s\" has a content and is no file", name);
    if (rc == BH_OK)
        rc = tar_spend(tar, bytes, err);
    tar->name[0] = tar->link[0] = '\0';
    tar->has_bytes = tar->has_uid = tar->has_gid = false;
    return rc;
}

static bh_rc
tar_read_header(struct bh_tar *tar, struct bh_err *err)
{
    uint64_t bytes;
    char type = (char)tar->block[TYPE];
    bool extended = type == 'x' || type == 'g' || type == 'L' || type == 'K';

    if (tar_is_zero(tar->block)) {
        tar->ended = true;
        return BH_OK;
    }
    if (!tar_is_sum_right(tar->block) || !tar_read_number(tar->block + SIZE, 12, &bytes))
        return bh_err_set(err, BH_INVALID, "it is no tar archive, or damaged");
    if (!extended && tar->has_bytes)
        bytes = tar->pax_bytes;
    if (bytes > (extended ? BH_TAR_EXTENDED_MAX : ENTRY_BYTES_MAX))
        return bh_err_set(err, BH_DENIED, "an entry claims %" PRIu64 " bytes", bytes);
    tar->left = bytes;
    tar->padding = (BH_TAR_BLOCK - bytes % BH_TAR_BLOCK) % BH_TAR_BLOCK;
    if (!extended)
        return tar_read_entry(tar, type, bytes, err);
    tar->kind = type;
    tar->extended_length = 0;
    tar->extended[0] = '\0';
    return bytes ? BH_OK : tar_end_extended(tar, err);
}

/* Content of the present entry: collected or passed over. */
static bh_rc
tar_read_content(struct bh_tar *tar, const uint8_t *bytes, size_t length, struct bh_err *err)
{
    tar->left -= length;
    if (!tar->kind)
        return BH_OK;
    memcpy(tar->extended + tar->extended_length, bytes, length);
    tar->extended_length += (uint32_t)length;
    tar->extended[tar->extended_length] = '\0';
    return tar->left ? BH_OK : tar_end_extended(tar, err);
}

static size_t
tar_least(size_t a, uint64_t b)
{
    return b < a ? (size_t)b : a;
}

bh_rc
bh_tar_feed(struct bh_tar *tar, const uint8_t *bytes, size_t length, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    while (length > 0 && rc == BH_OK) {
        size_t part;

        if (tar->ended) /* readers ignore what follows the end */
            return BH_OK;
        if (tar->left > 0) {
            part = tar_least(length, tar->left);
            rc = tar_read_content(tar, bytes, part, err);
        } else if (tar->padding > 0) {
            part = tar_least(length, tar->padding);
            tar->padding -= part;
        } else {
            part = tar_least(length, BH_TAR_BLOCK - tar->filled);
            memcpy(tar->block + tar->filled, bytes, part);
            tar->filled += (uint32_t)part;
            if (tar->filled == BH_TAR_BLOCK) {
                tar->filled = 0;
                rc = tar_read_header(tar, err);
            }
        }
        bytes += part;
        length -= part;
    }
    return rc;
}

bh_rc
bh_tar_finish(const struct bh_tar *tar, struct bh_err *err)
{
    if (tar->ended || (!tar->filled && !tar->left && !tar->padding && !tar->kind))
        return BH_OK;
    return bh_err_set(err, BH_INVALID, "it is cut off");
}
