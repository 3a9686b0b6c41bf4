#ifndef BH_BASE_ERR_H
#define BH_BASE_ERR_H

#include <stdbool.h>

#include "base/attr.h"

/* The result of every fallible function.  tables/errors.tbl gives each code its
 * HTTP status, exit status and one line of documentation.
 *
 * BH_UNCERTAIN is a real outcome: we asked a driver or a database and the
 * answer never came.  The caller re-reads the truth; it never retries blindly. */
typedef enum bh_rc {
#define BH_ERROR(code, name, http, exit_status, retryable, doc) BH_##code,
#include "tables/errors.tbl"
#undef BH_ERROR
} bh_rc;

/* Whose numbers `sys` in an error belongs to. */
enum bh_sys { BH_SYS_NONE, BH_SYS_ERRNO, BH_SYS_NVML, BH_SYS_CUDA, BH_SYS_SQL, BH_SYS_TLS };

/* Why a function failed, on the caller's stack: reporting a failure never
 * allocates.  `msg` is lower case without a full stop and names the object and
 * the cause; `hint`, where not empty, says what to do about it. */
struct bh_err {
    bh_rc rc;
    enum bh_sys sys_kind;
    int sys;
    char msg[240];
    char hint[160];
};

/* Fill `err` and return `rc`, so that `return bh_err_set(...)` reads as one.  Control
 * characters and broken UTF-8 in what is quoted become '?', and what is too long ends behind a word, with
 * "...".  The arguments must not lie in `err` itself: bh_err_wrap keeps its message. */
bh_rc bh_err_set(struct bh_err *err, bh_rc rc, const char *format, ...) BH_PRINTF(3, 4);

/* As bh_err_set, keeping a foreign number with the domain it belongs to. */
bh_rc bh_err_sys(struct bh_err *err, bh_rc rc, enum bh_sys kind, int number, const char *format, ...)
    BH_PRINTF(5, 6);

/* BH_IO from the present `errno`: "<message>: <strerror>".  EPERM and EACCES
 * become BH_DENIED, ENOENT becomes BH_NOT_FOUND, ENOSPC becomes BH_FULL. */
bh_rc bh_err_errno(struct bh_err *err, const char *format, ...) BH_PRINTF(2, 3);

/* Put "<message>: " before the message that is already there; returns err->rc. */
bh_rc bh_err_wrap(struct bh_err *err, const char *format, ...) BH_PRINTF(2, 3);

/* Say what the reader can do about the error; returns err->rc. */
bh_rc bh_err_hint(struct bh_err *err, const char *format, ...) BH_PRINTF(2, 3);

/* The code's name as users and the API see it, "over_quota"; never NULL. */
const char *bh_rc_name(bh_rc rc);

/* The code of that name, or BH_BUG when there is none. */
bh_rc bh_rc_find(const char *name);

/* The code's HTTP status, the CLI's exit status and its one-line explanation. */
int bh_rc_http(bh_rc rc);
int bh_rc_exit(bh_rc rc);
bool bh_rc_retryable(bh_rc rc);
const char *bh_rc_doc(bh_rc rc);

#endif
