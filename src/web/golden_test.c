#include "web/golden_test.h"

#include <stdio.h>
#include <string.h>

#include "web/assets.h"

/* How much of the text is an asset's address or digest, whose name is appended instead; 0: neither. */
static size_t
golden_name_asset(const char *text, struct bh_buf *out)
{
    for (const struct bh_asset *asset = bh_assets; asset->name; asset++) {
        size_t path = strlen(asset->path), digest = strlen(asset->digest);

        if (strncmp(text, asset->path, path) == 0) {
            bh_buf_printf(out, "/assets/%s", asset->name);
            return path;
        }
        if (strncmp(text, asset->digest, digest) == 0) {
            bh_buf_printf(out, "(digest of %s)", asset->name);
            return digest;
        }
    }
    return 0;
}

/* Both change with every change of the file; goldens have its name. */
static void
golden_name_assets(const char *text, struct bh_buf *out)
{
    while (*text) {
        size_t named = golden_name_asset(text, out);

        if (named == 0)
            bh_buf_putc(out, *text);
        text += named ? named : 1;
    }
}

void
bh_golden_read(const char *path, struct bh_buf *out)
{
    char bytes[4096];
    size_t length;
    FILE *file = fopen(path, "r");

    while (file && (length = fread(bytes, 1, sizeof bytes, file)) > 0)
        bh_buf_put(out, bytes, length);
    if (file)
        fclose(file);
}

static void
golden_write(const char *folder, const char *name, const struct bh_buf *page)
{
    char path[1024];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s.html", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(page->bytes, 1, page->length, file), page->length);
    fclose(file);
    fprintf(stderr, "%s differs: see %s\n", name, path);
}

bool
bh_golden_matches(const char *golden_folder, const char *build_folder, const char *name, const char *page)
{
    BH_AUTO(bh_buf_fini) struct bh_buf named = { .max = 1 << 20 };
    BH_AUTO(bh_buf_fini) struct bh_buf want = { .max = 1 << 20 };
    char path[1024];
    bool same;

    golden_name_assets(page, &named);
    snprintf(path, sizeof path, "%s/%s.html", golden_folder, name);
    bh_golden_read(path, &want);
    same = named.length == want.length && memcmp(named.bytes, want.bytes, want.length) == 0;
    if (!same)
        golden_write(build_folder, name, &named);
    return same;
}
