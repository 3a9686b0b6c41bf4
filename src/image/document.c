#include "image/document.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "model/image.h"

enum { LIST_MAX = 1024, TEXT_MAX = 65536 };
#define BLOB_BYTES_MAX (UINT64_C(1) << 40)
#define REF_NAME "org.opencontainers.image.ref.name"

/* What may be read, in the words of OCI and of Docker; only index, manifest and
 * configuration that OCI defines, and layers that are in the layout. */
static const struct {
    const char *name;
    enum bh_image_media media;
} medias[] = {
    { "application/vnd.oci.image.index.v1+json", BH_MEDIA_INDEX },
    { "application/vnd.docker.distribution.manifest.list.v2+json", BH_MEDIA_INDEX },
    { "application/vnd.oci.image.manifest.v1+json", BH_MEDIA_MANIFEST },
    { "application/vnd.docker.distribution.manifest.v2+json", BH_MEDIA_MANIFEST },
    { "application/vnd.oci.image.config.v1+json", BH_MEDIA_CONFIG },
    { "application/vnd.docker.container.image.v1+json", BH_MEDIA_CONFIG },
    { "application/vnd.oci.image.layer.v1.tar", BH_MEDIA_TAR },
    { "application/vnd.docker.image.rootfs.diff.tar", BH_MEDIA_TAR },
    { "application/vnd.oci.image.layer.v1.tar+gzip", BH_MEDIA_TAR_GZIP },
    { "application/vnd.docker.image.rootfs.diff.tar.gzip", BH_MEDIA_TAR_GZIP },
};

static enum bh_image_media
document_media_of(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(medias); i++)
        if (strcmp(medias[i].name, name) == 0)
            return medias[i].media;
    return BH_MEDIA_OTHER;
}

/* ---- descriptors ---- */

static bh_rc
document_read_digest(const char *text, char ret_hex[BH_IMAGE_HEX], struct bh_err *err)
{
    if (strncmp(text, "sha256:", 7) != 0 || !bh_image_is_digest(text + 7))
        return bh_err_set(err, BH_INVALID,
                          "digest \"%.80s\" is not sha256: and 64 hexadecimal "
                          "digits",
                          text);
    memcpy(ret_hex, text + 7, BH_IMAGE_HEX);
    return BH_OK;
}

static bh_rc
document_read_blob(bh_json_value value, struct bh_image_blob *ret_blob, struct bh_err *err)
{
    struct bh_image_blob blob = { .media =
                                      document_media_of(bh_json_text(bh_json_get(value, "mediaType"), "")) };
    bh_rc rc = document_read_digest(bh_json_text(bh_json_get(value, "digest"), ""), blob.digest, err);

    if (rc != BH_OK)
        return rc;
    blob.bytes = bh_json_number(bh_json_get(value, "size"), UINT64_MAX);
    if (blob.bytes > BLOB_BYTES_MAX)
        return bh_err_set(err, BH_RANGE, "size of %.19s is missing or absurd", blob.digest);
    *ret_blob = blob;
    return BH_OK;
}

static bh_rc
open_document(const struct bh_buf *text, const char *what, struct bh_json **ret_json, struct bh_err *err)
{
    bh_rc rc = bh_json_parse((const char *)text->bytes, text->length, ret_json, err);

    if (rc == BH_OK && bh_json_kind(bh_json_root(*ret_json)) != BH_JSON_OBJECT)
        rc = bh_err_set(err, BH_INVALID, "is no object");
    if (rc == BH_OK && bh_json_number(bh_json_get(bh_json_root(*ret_json), "schemaVersion"), 2) != 2)
        rc = bh_err_set(err, BH_INVALID, "schemaVersion is not 2");
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", what);
}

static const char *
document_ref_name(bh_json_value descriptor)
{
    return bh_json_text(bh_json_get(bh_json_get(descriptor, "annotations"), REF_NAME), "");
}

static bool
document_is_wanted(bh_json_value descriptor, const char *tag, const char *digest)
{
    const char *found = bh_json_text(bh_json_get(descriptor, "digest"), "");

    if (digest[0])
        return strncmp(found, "sha256:", 7) == 0 && strcmp(found + 7, digest) == 0;
    return strcmp(document_ref_name(descriptor), tag) == 0;
}

static bh_rc
document_missing_err(bh_json_value manifests, const char *tag, const char *digest, struct bh_err *err)
{
    char list[120] = "";
    struct bh_buf out;

    bh_buf_init_fixed(&out, list, sizeof list);
    for (size_t i = 0; i < bh_json_count(manifests) && i < LIST_MAX && !out.overflow; i++)
        bh_buf_printf(&out, "%s%.40s", i ? ", " : "", document_ref_name(bh_json_at(manifests, i)));
    (void)bh_buf_text(&out);
    bh_err_set(err, BH_NOT_FOUND, "the layout has no image %s%.70s", digest[0] ? "sha256:" : "",
               digest[0] ? digest : tag);
    return bh_err_hint(err, list[0] ? "its tags: %s" : "it has no tags%s", list);
}

bh_rc
bh_image_find(const struct bh_buf *index, const char *tag, const char *digest, struct bh_image_blob *ret_blob,
              struct bh_err *err)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_image_blob blob = { .media = BH_MEDIA_OTHER };
    bh_json_value manifests;
    size_t found = 0;
    bh_rc rc = open_document(index, "index.json", &json, err);

    if (rc != BH_OK)
        return rc;
    manifests = bh_json_get(bh_json_root(json), "manifests");
    for (size_t i = 0; i < bh_json_count(manifests) && rc == BH_OK; i++) {
        struct bh_image_blob before = blob;

        if (!document_is_wanted(bh_json_at(manifests, i), tag, digest))
            continue;
        rc = document_read_blob(bh_json_at(manifests, i), &blob, err);
        if (rc == BH_OK && found++ && strcmp(before.digest, blob.digest) != 0)
            rc = bh_err_set(err, BH_CONFLICT, "the tag %.60s is there twice", tag);
    }
    if (rc != BH_OK)
        return bh_err_wrap(err, "index.json");
    if (found == 0)
        return document_missing_err(manifests, tag, digest, err);
    if (blob.media != BH_MEDIA_INDEX && blob.media != BH_MEDIA_MANIFEST)
        return bh_err_set(err, BH_INVALID, "index.json: what it lists is no image manifest");
    *ret_blob = blob;
    return BH_OK;
}

static const char *
document_machine(void)
{
#if defined(__x86_64__)
    return "amd64";
#elif defined(__aarch64__)
    return "arm64";
#else
    return "this machine's";
#endif
}

bh_rc
bh_image_find_platform(const struct bh_buf *index, struct bh_image_blob *ret_blob, struct bh_err *err)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    bh_rc rc = open_document(index, "index", &json, err);
    bh_json_value manifests;

    if (rc != BH_OK)
        return rc;
    manifests = bh_json_get(bh_json_root(json), "manifests");
    for (size_t i = 0; i < bh_json_count(manifests); i++) {
        bh_json_value platform = bh_json_get(bh_json_at(manifests, i), "platform");

        if (strcmp(bh_json_text(bh_json_get(platform, "os"), ""), "linux") != 0
            || strcmp(bh_json_text(bh_json_get(platform, "architecture"), ""), document_machine()) != 0)
            continue;
        rc = document_read_blob(bh_json_at(manifests, i), ret_blob, err);
        if (rc == BH_OK && ret_blob->media != BH_MEDIA_MANIFEST)
            rc = bh_err_set(err, BH_INVALID, "what it lists is no image manifest");
        return rc == BH_OK ? rc : bh_err_wrap(err, "index");
    }
    return bh_err_set(err, BH_NOT_FOUND, "the image has no version for linux on %s", document_machine());
}

bh_rc
bh_image_is_index(const struct bh_buf *text, bool *ret_index, struct bh_err *err)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    bool manifests, layers;
    bh_rc rc = open_document(text, "manifest", &json, err);

    if (rc != BH_OK)
        return rc;
    manifests = bh_json_get(bh_json_root(json), "manifests") != NULL;
    layers = bh_json_get(bh_json_root(json), "layers") != NULL;
    if (manifests == layers)
        return bh_err_set(err, BH_INVALID, "manifest: it lists %s",
                          layers ? "layers and manifests at once" : "no layers");
    *ret_index = manifests;
    return BH_OK;
}

/* ---- the manifest ---- */

/* A layer that is fetched from elsewhere is not the image's. */
static bh_rc
document_read_layer(bh_json_value value, struct bh_image_blob *ret_layer, struct bh_err *err)
{
    bh_rc rc = document_read_blob(value, ret_layer, err);

    if (rc == BH_OK && bh_json_get(value, "urls"))
        rc = bh_err_set(err, BH_INVALID, "is to be fetched from elsewhere (urls)");
    if (rc != BH_OK || ret_layer->media == BH_MEDIA_TAR || ret_layer->media == BH_MEDIA_TAR_GZIP)
        return rc;
    bh_err_set(err, BH_INVALID, "\"%.70s\" is no layer that can be unpacked",
               bh_json_text(bh_json_get(value, "mediaType"), ""));
    return bh_err_hint(err, "write it again: skopeo copy --dest-compress-format gzip SOURCE oci:PATH:TAG");
}

bh_rc
bh_image_read_manifest(const struct bh_buf *text, struct bh_image_manifest *ret_manifest, struct bh_err *err)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    struct bh_image_manifest manifest = { .layer_count = 0 };
    bh_json_value layers;
    bh_rc rc = open_document(text, "manifest", &json, err);

    if (rc != BH_OK)
        return rc;
    rc = document_read_blob(bh_json_get(bh_json_root(json), "config"), &manifest.config, err);
    if (rc == BH_OK && manifest.config.media != BH_MEDIA_CONFIG)
        rc = bh_err_set(err, BH_INVALID, "is no image's");
    if (rc != BH_OK)
        return bh_err_wrap(err, "manifest: config");
    layers = bh_json_get(bh_json_root(json), "layers");
    if (bh_json_count(layers) == 0 || bh_json_count(layers) > BH_IMAGE_LAYERS_MAX)
        return bh_err_set(err, BH_RANGE, "manifest: %zu layers, 1 to %d may be", bh_json_count(layers),
                          BH_IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < bh_json_count(layers) && rc == BH_OK; i++) {
        rc = document_read_layer(bh_json_at(layers, i), &manifest.layers[manifest.layer_count++], err);
        if (rc != BH_OK)
            bh_err_wrap(err, "manifest: layers[%zu]", i);
    }
    if (rc != BH_OK)
        return rc;
    *ret_manifest = manifest;
    return BH_OK;
}

/* ---- the configuration ---- */

static bh_rc
document_read_texts(bh_json_value list, const char *key, struct bh_arena *arena, struct bh_texts *ret_texts,
                    struct bh_err *err)
{
    size_t count = bh_json_count(list);
    struct bh_texts texts = { 0 };

    if (count > LIST_MAX)
        return bh_err_set(err, BH_RANGE, "%s: more than %d entries", key, LIST_MAX);
    texts.items = bh_arena_alloc(arena, (count + 1) * sizeof *texts.items);
    for (size_t i = 0; texts.items && i < count; i++) {
        const char *text = bh_json_text(bh_json_at(list, i), NULL);

        if (!text || strlen(text) > TEXT_MAX)
            return bh_err_set(err, BH_INVALID, "%s[%zu] is no text", key, i);
        texts.items[texts.count] = bh_arena_strdup(arena, text);
        if (!texts.items[texts.count++])
            return bh_err_set(err, BH_FULL, "%s is too long", key);
    }
    *ret_texts = texts;
    return texts.items ? BH_OK : bh_err_set(err, BH_FULL, "%s is too long", key);
}

static bh_rc
document_read_diff_ids(bh_json_value list, struct bh_image_config *config, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (bh_json_count(list) == 0 || bh_json_count(list) > BH_IMAGE_LAYERS_MAX)
        return bh_err_set(err, BH_RANGE, "rootfs.diff_ids: %zu, 1 to %d may be", bh_json_count(list),
                          BH_IMAGE_LAYERS_MAX);
    for (size_t i = 0; i < bh_json_count(list) && rc == BH_OK; i++)
        rc = document_read_digest(bh_json_text(bh_json_at(list, i), ""),
                                  config->diff_ids[config->diff_id_count++], err);
    return rc;
}

static const char *
document_store_text(bh_json_value value, struct bh_arena *arena)
{
    const char *text = bh_json_text(value, "");

    return strlen(text) <= TEXT_MAX ? bh_arena_strdup(arena, text) : NULL;
}

bh_rc
bh_image_read_config(const struct bh_buf *text, struct bh_arena *arena, struct bh_image_config *ret_config,
                     struct bh_err *err)
{
    BH_AUTO(bh_json_free)
    struct bh_json *json = NULL;
    bh_json_value config, root;
    bh_rc rc = open_document(text, "configuration", &json, err);

    if (rc != BH_OK)
        return rc;
    memset(ret_config, 0, sizeof *ret_config);
    root = bh_json_root(json);
    config = bh_json_get(root, "config");
    rc = document_read_diff_ids(bh_json_get(bh_json_get(root, "rootfs"), "diff_ids"), ret_config, err);
    if (rc == BH_OK)
        rc = document_read_texts(bh_json_get(config, "Entrypoint"), "Entrypoint", arena,
                                 &ret_config->entrypoint, err);
    if (rc == BH_OK)
        rc = document_read_texts(bh_json_get(config, "Cmd"), "Cmd", arena, &ret_config->cmd, err);
    if (rc == BH_OK)
        rc = document_read_texts(bh_json_get(config, "Env"), "Env", arena, &ret_config->env, err);
    ret_config->working_dir = document_store_text(bh_json_get(config, "WorkingDir"), arena);
    ret_config->user = document_store_text(bh_json_get(config, "User"), arena);
    if (rc == BH_OK && (!ret_config->working_dir || !ret_config->user))
        rc = bh_err_set(err, BH_FULL, "WorkingDir or User is too long");
    return rc == BH_OK ? rc : bh_err_wrap(err, "configuration");
}

/* ---- what umoci gets ---- */

static void
document_put_digest(struct bh_json_writer *w, const char *key, const char *hex)
{
    char text[80];

    snprintf(text, sizeof text, "sha256:%s", hex);
    bh_json_str(w, key, text);
}

void
bh_image_put_config(struct bh_buf *out, const struct bh_image_config *config)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "architecture", document_machine());
    bh_json_str(&w, "os", "linux");
    bh_json_open(&w, "rootfs", '{');
    bh_json_open(&w, "diff_ids", '[');
    for (uint32_t i = 0; i < config->diff_id_count; i++)
        document_put_digest(&w, NULL, config->diff_ids[i]);
    bh_json_close(&w, ']');
    bh_json_str(&w, "type", "layers");
    bh_json_close(&w, '}');
    bh_json_close(&w, '}');
}

static void
document_put_blob(struct bh_json_writer *w, const char *key, const struct bh_image_blob *blob,
                  const char *tag)
{
    const char *name = "";

    for (size_t i = 0; i < BH_COUNT(medias) && !*name; i++)
        if (medias[i].media == blob->media && !strstr(medias[i].name, "docker"))
            name = medias[i].name;
    bh_json_open(w, key, '{');
    if (tag) {
        bh_json_open(w, "annotations", '{');
        bh_json_str(w, REF_NAME, tag);
        bh_json_close(w, '}');
    }
    document_put_digest(w, "digest", blob->digest);
    bh_json_str(w, "mediaType", name);
    bh_json_u64(w, "size", blob->bytes);
    bh_json_close(w, '}');
}

void
bh_image_put_manifest(struct bh_buf *out, const struct bh_image_manifest *manifest)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    document_put_blob(&w, "config", &manifest->config, NULL);
    bh_json_open(&w, "layers", '[');
    for (uint32_t i = 0; i < manifest->layer_count; i++)
        document_put_blob(&w, NULL, &manifest->layers[i], NULL);
    bh_json_close(&w, ']');
    bh_json_u64(&w, "schemaVersion", 2);
    bh_json_close(&w, '}');
}

void
bh_image_put_index(struct bh_buf *out, const struct bh_image_blob *manifest, const char *tag)
{
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    bh_json_open(&w, "manifests", '[');
    document_put_blob(&w, NULL, manifest, tag);
    bh_json_close(&w, ']');
    bh_json_u64(&w, "schemaVersion", 2);
    bh_json_close(&w, '}');
}
