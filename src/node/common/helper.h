#ifndef BH_NODE_COMMON_HELPER_H
#define BH_NODE_COMMON_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attr.h"
#include "base/err.h"

/* Programs that the node starts beside itself for what takes long. */

enum { BH_HELPER_WORDS = 96, BH_HELPER_WORD_MAX = 640, BH_HELPER_FD = 3 };
#define BH_HELPER_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

/* A program by its path, or by its name where programs are; false: there is none. */
bool bh_helper_find(const char *name, char *ret_path, size_t size);

/* Its command line; the first word is the program. */
struct bh_helper {
    char text[BH_HELPER_WORDS][BH_HELPER_WORD_MAX];
    char *argv[BH_HELPER_WORDS + 1];
    uint32_t count;
};

/* Texts that the node makes, whose length is bounded: that they fit is asserted. */
void bh_helper_word(struct bh_helper *helper, const char *format, ...) BH_PRINTF(2, 3);

/* Start it with `output` as its standard output and `fd` as descriptor BH_HELPER_FD (-1:
 * without), and the node's standard error. */
BH_MUST_USE bh_rc bh_helper_start(struct bh_helper *helper, int output, int fd, pid_t *ret_pid,
                                  struct bh_err *err);

#endif
