#include "model/image.h"

#include <string.h>

#include "base/buf.h"
#include "model/path.h"

static bool
is_word(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           c == '_';
}

static bool
is_tag(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if (!is_word(text[i]) && (i == 0 || (text[i] != '.' && text[i] != '-')))
            return false;
    return length > 0 && length <= BH_IMAGE_TAG_MAX;
}

bool
bh_image_is_digest(const char *text)
{
    return strlen(text) == BH_IMAGE_DIGEST_CHARS &&
           strspn(text, "0123456789abcdef") == BH_IMAGE_DIGEST_CHARS;
}

/* What stands behind the path: ":TAG", "@sha256:HEX", "@sha256", or nothing. */
static const char *
read_version(const char *text, struct bh_image *image)
{
    if (*text == '\0')
        return NULL;
    if (*text == ':') {
        if (!is_tag(text + 1))
            return "has a tag that is none";
        memcpy(image->tag, text + 1, strlen(text + 1) + 1);
        return NULL;
    }
    image->pinned = true;
    if (strcmp(text, "@sha256") == 0)
        return NULL;
    if (strncmp(text, "@sha256:", 8) != 0 || !bh_image_is_digest(text + 8))
        return "has a digest that is not sha256: and 64 hexadecimal digits";
    memcpy(image->digest, text + 8, sizeof image->digest);
    return NULL;
}

static const char *
read_path(const char *text, size_t length, struct bh_image *image)
{
    if (length > BH_IMAGE_PATH_MAX)
        return "is too long";
    memcpy(image->path, text, length);
    image->path[length] = '\0';
    return bh_file_path_fault(image->path);
}

const char *
bh_image_parse_entry(const char *text, struct bh_image *ret_entry)
{
    struct bh_image entry = { .kind = BH_IMAGE_HOST };
    const char *fault;

    if (strncmp(text, "dir:", 4) == 0) {
        entry.kind = BH_IMAGE_DIR;
        fault = read_path(text + 4, strlen(text + 4), &entry);
    } else if (strncmp(text, "oci:", 4) == 0) {
        size_t path = strcspn(text + 4, ":@");

        entry.kind = BH_IMAGE_OCI;
        fault = read_path(text + 4, path, &entry);
        if (!fault)
            fault = read_version(text + 4 + path, &entry);
    } else if (strncmp(text, "sha256:", 7) == 0) {
        entry = (struct bh_image) { .kind = BH_IMAGE_OCI, .pinned = true };
        fault = bh_image_is_digest(text + 7) ? NULL
                                             : "is not sha256: and 64 hexadecimal digits";
        if (!fault)
            memcpy(entry.digest, text + 7, sizeof entry.digest);
    } else {
        fault = strcmp(text, "host") == 0 ? NULL : "is not known";
    }
    if (!fault)
        *ret_entry = entry;
    return fault;
}

const char *
bh_image_parse(const char *text, struct bh_image *ret_image)
{
    struct bh_image image;
    const char *fault = bh_image_parse_entry(text, &image);

    if (fault)
        return fault;
    if (image.kind == BH_IMAGE_OCI && !image.path[0])
        return "has no path";
    if (image.kind == BH_IMAGE_OCI && !image.tag[0] && !image.digest[0])
        return "has no tag";
    *ret_image = image;
    return NULL;
}

bool
bh_image_allows(const struct bh_image *entry, const struct bh_image *image)
{
    if (entry->kind != image->kind)
        return false;
    if (entry->path[0] &&
        (!image->path[0] || !bh_file_path_within(entry->path, image->path)))
        return false;
    if (entry->tag[0] && strcmp(entry->tag, image->tag) != 0)
        return false;
    if (entry->digest[0] && strcmp(entry->digest, image->digest) != 0)
        return false;
    return !entry->pinned || image->pinned;
}
