#ifndef BH_NODE_COMMON_CONF_H
#define BH_NODE_COMMON_CONF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/params.h"

/* node.conf: what the administrator lets Bulkhead do on this machine.  Whatever
 * bulkheadd orders is checked against it.  tables/node_params.tbl has the parameters. */

enum { BH_CONF_BYTES_MAX = 64 << 10, BH_CONF_PATH_MAX = 200 };

struct bh_conf {
#define BH_CONF_TEXT const char *
#define BH_CONF_TEXTS struct bh_param_list
#define BH_CONF_COUNT uint32_t
#define BH_NODE_PARAM(name, type, unit, min, max, fallback, sentence) BH_CONF_##type name;
#include "tables/node_params.tbl"
#undef BH_NODE_PARAM
};

/* The parameters in `text`, the others by default; texts live in `arena`.
 * BH_INVALID, BH_RANGE, BH_FULL: the message begins with the file and names the line or
 * the key. */
BH_MUST_USE bh_rc bh_conf_parse(const char *file, const char *text, struct bh_arena *arena,
                                struct bh_conf *ret_conf, struct bh_err *err);

/* The same from a file.  When the reader is root, the file must belong to root and be writable by root alone
 * (BH_DENIED): a program that can write it controls the machine. daemon_user is looked up; BH_NOT_FOUND:
 * there is no such user. */
BH_MUST_USE bh_rc bh_conf_read(const char *path, struct bh_arena *arena, struct bh_conf *ret_conf,
                               struct bh_err *err);

/* The parameters, their units, limits, defaults and meanings, on standard output. */
void bh_conf_help(void);

/* Whether Bulkhead may change this GPU. */
bool bh_conf_gpu_allowed(const struct bh_conf *conf, const char *uuid);

#endif
