#include "model/image.h"

#include <string.h>

#include "base/buf.h"
#include "model/path.h"

static bool
image_is_word(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

static bool
image_is_tag(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++)
        if (!image_is_word(text[i]) && (i == 0 || (text[i] != '.' && text[i] != '-')))
            return false;
    return length > 0 && length <= BH_IMAGE_TAG_MAX;
}

bool
bh_image_is_digest(const char *text)
{
    return strlen(text) == BH_IMAGE_DIGEST_CHARS && strspn(text, "0123456789abcdef") == BH_IMAGE_DIGEST_CHARS;
}

bool
bh_image_is_packed(const char *text)
{
    return strncmp(text, "oci:", 4) == 0 || strncmp(text, BH_IMAGE_DOCKER, strlen(BH_IMAGE_DOCKER)) == 0;
}

bool
bh_image_is_own(const char *text)
{
    return text && (strncmp(text, "dir:", 4) == 0 || bh_image_is_packed(text));
}

/* What stands behind the path: ":TAG", "@sha256:HEX", "@sha256", or nothing. */
static const char *
image_read_version(const char *text, struct bh_image *image)
{
    if (*text == '\0')
        return NULL;
    if (*text == ':') {
        if (!image_is_tag(text + 1))
            return "has an invalid tag";
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
image_read_path(const char *text, size_t length, struct bh_image *image)
{
    if (length > BH_IMAGE_PATH_MAX)
        return "is too long";
    memcpy(image->path, text, length);
    image->path[length] = '\0';
    return bh_file_path_fault(image->path);
}

/* ---- registries ---- */

static bool
image_is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* Words of small letters and digits with '.', '-' or, in repositories, '_' between them. */
static bool
image_are_words(const char *text, size_t length, const char *between)
{
    if (length == 0 || !image_is_small(text[0]) || !image_is_small(text[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!image_is_small(text[i]) && !memchr(between, text[i], strlen(between)))
            return false;
    return true;
}

/* As Docker has it: without a dot or a port it would be a user of Docker Hub. */
const char *
bh_image_host_fault(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;
    uint32_t port = 0;

    if (!colon && !memchr(text, '.', length))
        return "names no registry: write it in full, as docker.io/library/debian:12";
    if (!image_are_words(text, name, ".-") || name > BH_IMAGE_HOST_MAX)
        return "has an invalid registry";
    for (size_t i = name + 1; colon && i < length; i++) {
        port = text[i] >= '0' && text[i] <= '9' ? 10 * port + (uint32_t)(text[i] - '0') : 65536;
        if (port > 65535)
            break;
    }
    return colon && (port == 0 || port > 65535) ? "has an invalid port" : NULL;
}

const char *
bh_image_repository_fault(const char *text, size_t length)
{
    for (size_t at = 0; at <= length;) {
        const char *slash = memchr(text + at, '/', length - at);
        size_t end = slash ? (size_t)(slash - text) : length;

        if (!image_are_words(text + at, end - at, "._-"))
            return "has an invalid repository";
        at = end + 1;
    }
    return length > BH_IMAGE_REPOSITORY_MAX ? "is too long" : NULL;
}

/* "HOST[:PORT]/REPOSITORY" and what stands behind it; an entry may be a host alone. */
static const char *
image_read_registry(const char *text, struct bh_image *image)
{
    size_t host = strcspn(text, "/@"), repository;
    const char *fault = bh_image_host_fault(text, host);

    if (fault)
        return fault;
    repository = text[host] == '/' ? strcspn(text + host + 1, ":@") : 0;
    if (text[host] == '/')
        fault = bh_image_repository_fault(text + host + 1, repository);
    if (fault)
        return fault;
    host += text[host] == '/' ? 1 + repository : 0;
    memcpy(image->path, text, host);
    image->path[host] = '\0';
    return image_read_version(text + host, image);
}

const char *
bh_image_parse_entry(const char *text, struct bh_image *ret_entry)
{
    struct bh_image entry = { .kind = BH_IMAGE_HOST };
    const char *fault;

    if (strncmp(text, "dir:", 4) == 0) {
        entry.kind = BH_IMAGE_DIR;
        fault = image_read_path(text + 4, strlen(text + 4), &entry);
    } else if (strncmp(text, "oci:", 4) == 0) {
        size_t path = strcspn(text + 4, ":@");

        entry.kind = BH_IMAGE_OCI;
        fault = image_read_path(text + 4, path, &entry);
        if (!fault)
            fault = image_read_version(text + 4 + path, &entry);
    } else if (strncmp(text, BH_IMAGE_DOCKER, strlen(BH_IMAGE_DOCKER)) == 0) {
        entry.kind = BH_IMAGE_REGISTRY;
        fault = image_read_registry(text + strlen(BH_IMAGE_DOCKER), &entry);
    } else if (strncmp(text, "sha256:", 7) == 0) {
        entry = (struct bh_image){ .kind = BH_IMAGE_OCI, .pinned = true };
        fault = bh_image_is_digest(text + 7) ? NULL : "is not sha256: and 64 hexadecimal digits";
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
    if (image.kind == BH_IMAGE_REGISTRY && !strchr(image.path, '/'))
        return "has no repository";
    if (image.kind >= BH_IMAGE_OCI && !image.tag[0] && !image.digest[0])
        return "has no tag";
    *ret_image = image;
    return NULL;
}

bool
bh_image_allows(const struct bh_image *entry, const struct bh_image *image)
{
    bool anywhere = entry->kind == BH_IMAGE_OCI && !entry->path[0]; /* sha256:HEX */

    if (entry->kind != image->kind && !(anywhere && image->kind == BH_IMAGE_REGISTRY))
        return false;
    if (entry->path[0] && (!image->path[0] || !bh_file_path_within(entry->path, image->path)))
        return false;
    if (entry->tag[0] && strcmp(entry->tag, image->tag) != 0)
        return false;
    if (entry->digest[0] && strcmp(entry->digest, image->digest) != 0)
        return false;
    return !entry->pinned || image->pinned;
}
