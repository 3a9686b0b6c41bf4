#include "daemon/nodes/link_report.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/time.h"

enum { JSON_MAX = 8 << 20 };

void
bh_link_report_set(struct bh_link_report *report, struct bh_mutex *mutex, const struct bh_fields *fields,
                   const void *message)
{
    struct bh_buf json;
    char *copy = NULL;

    if (message) {
        bh_buf_init(&json, JSON_MAX);
        bh_json_encode(&json, fields, message);
        copy = bh_buf_text(&json) ? strdup(bh_buf_text(&json)) : NULL;
        bh_buf_fini(&json);
    }
    bh_mutex_lock(mutex);
    free(report->json);
    *report = (struct bh_link_report){ copy, bh_time_now() };
    bh_mutex_unlock(mutex);
}
