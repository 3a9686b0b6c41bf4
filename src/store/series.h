#ifndef BH_STORE_SERIES_H
#define BH_STORE_SERIES_H

#include "ports/series.h"

/* Series in an SQLite file of their own (WAL, synchronous=NORMAL): one writer, one reader that callers take
 * turns at.  ADR 0082.
 *
 * Open the file at `path`; its folder exists.  `log` names the log that the numbers in it belong to: a file
 * of another log, one that is damaged and one of another version is emptied first, which `ret_emptied` says.
 * Close with ret_store->ops->close.  BH_FULL, BH_IO, BH_UNAVAILABLE. */
BH_MUST_USE bh_rc bh_store_series_open(const char *path, const char *log, struct bh_series_store *ret_store,
                                       bool *ret_emptied, struct bh_err *err);

#endif
