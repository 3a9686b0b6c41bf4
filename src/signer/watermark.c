#include "signer/watermark.h"

#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "signer/message.h"

static const char file[] = "audit.signed";

bh_rc
bh_watermark_load(const char *folder, struct bh_merkle_frontier *ret_watermark, bool *ret_found,
                  struct bh_err *err)
{
    char path[4096], memory[BH_MERKLE_TEXT_MAX + 2];
    struct bh_buf text;
    bh_rc rc;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, sizeof memory - 1, &text, err);
    *ret_found = rc == BH_OK;
    *ret_watermark = (struct bh_merkle_frontier){ 0 };
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc != BH_OK)
        return rc;
    if (text.length > 0 && memory[text.length - 1] == '\n')
        text.length--;
    bh_buf_putc(&text, '\0');
    rc = bh_merkle_frontier_parse(memory, ret_watermark, err);
    if (rc == BH_OK)
        return rc;
    bh_err_wrap(err, "%s", path);
    return bh_err_hint(err, BH_SIGNER_GO_BACK);
}

bh_rc
bh_watermark_save(const char *folder, const struct bh_merkle_frontier *watermark, struct bh_err *err)
{
    char path[4096], memory[BH_MERKLE_TEXT_MAX + 2];
    struct bh_buf text;

    snprintf(path, sizeof path, "%s/%s", folder, file);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    bh_merkle_frontier_format(&text, watermark);
    bh_buf_putc(&text, '\n');
    return bh_file_replace(path, text.bytes, text.length, 0600, err);
}
