/* Feeds files to a fuzz target, so that a corpus replays as an ordinary test:
 *
 *     fuzz_json FILE-OR-FOLDER...
 *
 * One TAP line a file.  What breaks the target ends the program at its file. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/fd.h"
#include "tests/fuzz/fuzz.h"

enum { FILE_BYTES_MAX = 4 << 20 };

static int replayed;

/* The target gets a copy of just the right size: reading past it is noticed. */
static int
replay_file(const char *path, const char *name)
{
    struct bh_buf text;
    struct bh_err err;
    uint8_t *copy;

    bh_buf_init(&text, FILE_BYTES_MAX);
    if (bh_file_read(path, FILE_BYTES_MAX, &text, &err) != BH_OK) {
        fprintf(stderr, "%s\n", err.msg);
        bh_buf_fini(&text);
        return 1;
    }
    copy = malloc(text.length ? text.length : 1);
    if (!copy)
        abort();
    if (text.length)
        memcpy(copy, text.bytes, text.length);
    LLVMFuzzerTestOneInput(copy, text.length);
    free(copy);
    bh_buf_fini(&text);
    printf("ok %d - %s\n", ++replayed, name);
    fflush(stdout);
    return 0;
}

static int
is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int
replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, is_visible, alphasort), failed = count < 0;

    if (count < 0)
        perror(folder);
    for (int i = 0; i < count; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        failed |= replay_file(path, entries[i]->d_name);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed;
}

int
main(int argc, char **argv)
{
    int failed = 0;

    for (int i = 1; i < argc; i++) {
        struct stat found;

        if (stat(argv[i], &found) == 0 && S_ISDIR(found.st_mode))
            failed |= replay_folder(argv[i]);
        else
            failed |= replay_file(argv[i], argv[i]);
    }
    printf("1..%d\n", replayed);
    return failed || replayed == 0;
}
