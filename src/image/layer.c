#include "image/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/assert.h"
#include "base/fd.h"

enum { CHUNK = 64 << 10, WINDOW_GZIP = 15 + 16 };

struct layer {
    const struct bh_layer_request *request;
    struct bh_sha256 packed, plain;
    struct bh_tar tar;
    z_stream zip;
    uint64_t packed_bytes, plain_bytes;
    bool zipped, member_ended; /* between two members of a gzip file */
    uint8_t in[CHUNK], out[CHUNK];
};

static void
layer_put_hex(const uint8_t digest[32], char ret_hex[BH_IMAGE_HEX])
{
    for (int i = 0; i < 32; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

static bh_rc
layer_write_plain(struct layer *layer, const uint8_t *bytes, size_t length, struct bh_err *err)
{
    struct bh_tar_budget *budget = layer->request->budget;
    bh_rc rc;

    if (length > budget->bytes) {
        bh_err_set(err, BH_FULL, "unpacked it is larger than a tenant's images may be");
        return bh_err_hint(err, "images_cap_mib of node.conf is the most");
    }
    budget->bytes -= length;
    layer->plain_bytes += length;
    layer->request->crypto->sha256_put(&layer->plain, bytes, length);
    rc = bh_tar_feed(&layer->tar, bytes, length, err);
    return rc == BH_OK ? bh_fd_write_all(layer->request->to_fd, bytes, length, err) : rc;
}

/* One call of zlib, with all that it gives. */
static bh_rc
layer_inflate_more(struct layer *layer, struct bh_err *err)
{
    int status = layer->member_ended ? inflateReset(&layer->zip) : Z_OK;

    layer->zip.next_out = layer->out;
    layer->zip.avail_out = CHUNK;
    if (status == Z_OK)
        status = inflate(&layer->zip, Z_NO_FLUSH);
    layer->member_ended = status == Z_STREAM_END;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
        return bh_err_set(err, BH_INVALID, "its gzip is damaged");
    return layer_write_plain(layer, layer->out, CHUNK - layer->zip.avail_out, err);
}

/* What is in layer->in.  A gzip file may be several, one behind the other; and what did not
 * fit into `out` comes without new input. */
static bh_rc
layer_inflate_packed(struct layer *layer, size_t length, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (!layer->zipped)
        return layer_write_plain(layer, layer->in, length, err);
    layer->zip.next_in = layer->in;
    layer->zip.avail_in = (uInt)length;
    do
        rc = layer_inflate_more(layer, err);
    while (rc == BH_OK && (layer->zip.avail_in > 0 || (!layer->member_ended && layer->zip.avail_out == 0)));
    return rc;
}

static bh_rc
layer_read_blob(struct layer *layer, struct bh_err *err)
{
    const struct bh_image_blob *blob = layer->request->blob;
    bh_rc rc = BH_OK;

    while (rc == BH_OK) {
        ssize_t n = read(layer->request->from_fd, layer->in, CHUNK);

        if (n < 0)
            return bh_err_errno(err, "read it");
        if (n == 0)
            break;
        layer->packed_bytes += (uint64_t)n;
        if (layer->request->read_bytes)
            *layer->request->read_bytes += (uint64_t)n;
        if (layer->packed_bytes > blob->bytes)
            return bh_err_set(err, BH_INVALID, "it is longer than the manifest says");
        layer->request->crypto->sha256_put(&layer->packed, layer->in, (size_t)n);
        rc = layer_inflate_packed(layer, (size_t)n, err);
    }
    if (rc != BH_OK)
        return rc;
    if (layer->packed_bytes != blob->bytes)
        return bh_err_set(err, BH_INVALID, "it is shorter than the manifest says");
    if (layer->zipped && !layer->member_ended)
        return bh_err_set(err, BH_INVALID, "its gzip is cut off");
    return bh_tar_finish(&layer->tar, err);
}

static bh_rc
layer_check_digests(struct layer *layer, bh_rc rc, struct bh_err *err)
{
    uint8_t packed[32], plain[32];
    char hex[BH_IMAGE_HEX];

    layer->request->crypto->sha256_finish(&layer->packed, packed);
    layer->request->crypto->sha256_finish(&layer->plain, plain);
    if (rc != BH_OK)
        return rc;
    layer_put_hex(packed, hex);
    if (strcmp(hex, layer->request->blob->digest) != 0)
        return bh_err_set(err, BH_INVALID,
                          "its digest is sha256:%.19s..., the manifest says "
                          "another",
                          hex);
    layer_put_hex(plain, hex);
    if (strcmp(hex, layer->request->diff_id) != 0)
        return bh_err_set(err, BH_INVALID,
                          "unpacked its digest is sha256:%.19s..., the "
                          "configuration says another",
                          hex);
    return BH_OK;
}

bh_rc
bh_layer_unpack(const struct bh_layer_request *request, uint64_t *ret_bytes, struct bh_err *err)
{
    struct layer *layer = calloc(1, sizeof *layer);
    bh_rc rc = BH_OK;

    BH_ASSERT(layer);
    layer->request = request;
    layer->zipped = request->blob->media == BH_MEDIA_TAR_GZIP;
    bh_tar_init(&layer->tar, request->budget);
    request->crypto->sha256_begin(&layer->packed);
    request->crypto->sha256_begin(&layer->plain);
    if (layer->zipped && inflateInit2(&layer->zip, WINDOW_GZIP) != Z_OK)
        rc = bh_err_set(err, BH_FULL, "no memory to decompress it");
    if (rc == BH_OK)
        rc = layer_read_blob(layer, err);
    rc = layer_check_digests(layer, rc, err);
    if (layer->zipped)
        inflateEnd(&layer->zip);
    if (rc == BH_OK)
        *ret_bytes = layer->plain_bytes;
    free(layer);
    return rc;
}
