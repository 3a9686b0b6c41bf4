#include "signer/own.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/num.h"

enum { LINE_BYTES = 2 * 32 + 1, FILE_BYTES = BH_OWN_MAX * LINE_BYTES, PATH_BYTES = 4096 };

static void
path_of(const char *folder, char ret_path[PATH_BYTES])
{
    snprintf(ret_path, PATH_BYTES, "%s/audit.public", folder);
}

static bool
own_parse(const struct bh_buf *text, struct bh_own *ret_own)
{
    const char *bytes = text->bytes;
    struct bh_own own = { .count = (uint32_t)(text->length / LINE_BYTES) };

    if (own.count == 0 || text->length % LINE_BYTES != 0)
        return false;
    for (uint32_t i = 0; i < own.count; i++) {
        char line[LINE_BYTES] = "";

        memcpy(line, bytes + (size_t)i * LINE_BYTES, LINE_BYTES - 1);
        if (!bh_parse_hex(line, own.keys[i], sizeof own.keys[i])
            || bytes[(size_t)(i + 1) * LINE_BYTES - 1] != '\n')
            return false;
    }
    *ret_own = own;
    return true;
}

bh_rc
bh_own_load(const char *folder, struct bh_own *ret_own, struct bh_err *err)
{
    char path[PATH_BYTES], memory[FILE_BYTES + 2];
    struct bh_buf text;
    bh_rc rc;

    path_of(folder, path);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    rc = bh_file_read(path, sizeof memory - 1, &text, err);
    *ret_own = (struct bh_own){ 0 };
    if (rc == BH_NOT_FOUND)
        return BH_OK;
    if (rc == BH_FULL || (rc == BH_OK && (text.length > FILE_BYTES || !own_parse(&text, ret_own)))) {
        bh_err_set(err, BH_INVALID, "%s does not name the signer's keys", path);
        return bh_err_hint(err, "put it back from a backup of the folder; without one remove it: bulkheadd "
                                "still holds the key against its audit.vkey");
    }
    return rc;
}

bh_rc
bh_own_save(const char *folder, const struct bh_own *own, struct bh_err *err)
{
    char path[PATH_BYTES], memory[FILE_BYTES + 1];
    struct bh_buf text;

    path_of(folder, path);
    bh_buf_init_fixed(&text, memory, sizeof memory);
    for (uint32_t i = 0; i < own->count; i++) {
        bh_buf_put_hex(&text, own->keys[i], sizeof own->keys[i]);
        bh_buf_putc(&text, '\n');
    }
    return bh_file_replace(path, text.bytes, text.length, 0600, err);
}

bh_rc
bh_own_forget(const char *folder, struct bh_err *err)
{
    char path[PATH_BYTES];

    path_of(folder, path);
    return unlink(path) == 0 || errno == ENOENT ? BH_OK : bh_err_errno(err, "%s", path);
}
