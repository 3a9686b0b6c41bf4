#ifndef BH_BASE_LOG_H
#define BH_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* The programs' own log, on standard error: one line an event, text for users or
 * JSON with one flag.  Libraries below the mains do not log; they return errors.
 * Event names come from tables/events.tbl, so a log can be searched by name. */
enum bh_log_level { BH_LOG_ERROR, BH_LOG_WARN, BH_LOG_INFO, BH_LOG_DEBUG };

enum bh_log_event {
#define BH_EVENT(id, level, doc) BH_EVENT_##id,
#include "tables/events.tbl"
#undef BH_EVENT
};

enum bh_log_kind { BH_LOG_END, BH_LOG_STR, BH_LOG_U64 };

struct bh_log_field {
    enum bh_log_kind kind;
    const char *name, *text;
    uint64_t number;
};

#define BH_STR(key, value) ((struct bh_log_field){ BH_LOG_STR, (key), (value), 0 })
#define BH_U64(key, value) ((struct bh_log_field){ BH_LOG_U64, (key), NULL, (value) })

/* bh_log(LEASE_STARTED, BH_U64("lease", id), BH_STR("gpu", uuid)); */
#define bh_log(event, ...)                                                                                   \
    bh_log_write(BH_EVENT_##event,                                                                           \
                 (const struct bh_log_field[]){ __VA_ARGS__ __VA_OPT__(, ){ .kind = BH_LOG_END } })

/* One line by one write.  A line over 2 KiB has its texts cut, never its syntax. */
void bh_log_write(enum bh_log_event event, const struct bh_log_field *fields);

/* Report an error that ends here: its message, hint and foreign number. */
#define BH_ERRLOG(err) BH_STR("why", (err)->msg)

/* How the log looks, once at start: program name, JSON or text, least level. */
void bh_log_setup(const char *program, bool json, enum bh_log_level level);

#endif
