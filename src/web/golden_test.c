#include "web/golden_test.h"

#include <stdio.h>
#include <string.h>

#include "web/assets.h"

/* Assets' addresses change with every change of their files; goldens have their names. */
static void
golden_name_assets(const char *text, struct bh_buf *out)
{
    while (*text) {
        const struct bh_asset *asset = bh_assets;

        while (asset->name && strncmp(text, asset->path, strlen(asset->path)) != 0)
            asset++;
        if (asset->name) {
            bh_buf_printf(out, "/assets/%s", asset->name);
            text += strlen(asset->path);
        } else {
            bh_buf_putc(out, *text++);
        }
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
