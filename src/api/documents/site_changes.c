#include "api/documents/site_changes.h"

#include <string.h>

#include "model/site_edits.h"

struct changes_finding {
    struct bh_site_changes *changes;
    const struct bh_crypto_ops *crypto;
    struct bh_sha256 hash;
    struct bh_buf text;
};

static void
site_changes_parse_line(void *self, const char *text, size_t length)
{
    struct changes_finding *finding = self;

    finding->crypto->sha256_put(&finding->hash, text, length);
    finding->crypto->sha256_put(&finding->hash, "\n", 1);
    finding->changes->count++;
    if (finding->changes->listed + 1 < finding->changes->count
        || finding->text.length + length + 1 > BH_SITE_CHANGES_BYTES_MAX)
        return; /* the list ends with the first that is left out */
    finding->changes->listed++;
    bh_buf_put(&finding->text, text, length);
    bh_buf_putc(&finding->text, '\n');
}

void
bh_site_changes_find(const struct bh_crypto_ops *crypto, const struct bh_site *from, const struct bh_site *to,
                     struct bh_arena *arena, struct bh_site_changes *ret_changes)
{
    struct changes_finding finding = { .changes = ret_changes, .crypto = crypto };

    *ret_changes = (struct bh_site_changes){ 0 };
    bh_buf_init(&finding.text, BH_SITE_CHANGES_BYTES_MAX + 1);
    crypto->sha256_begin(&finding.hash);
    bh_site_edits(from, to, site_changes_parse_line, &finding);
    crypto->sha256_finish(&finding.hash, ret_changes->digest);
    if (ret_changes->listed && bh_buf_text(&finding.text))
        ret_changes->lines = bh_arena_strdup(arena, bh_buf_text(&finding.text));
    if (!ret_changes->lines)
        ret_changes->listed = 0;
    bh_buf_fini(&finding.text);
}
