#ifndef BH_WEB_RECORD_H
#define BH_WEB_RECORD_H

#include "base/json.h"
#include "web/html.h"

/* Records of the audit log in words, as GET /v1/records says them. */

/* A row: number, time, actor, verb, object, tenant, result. */
void bh_record_put_row(struct bh_html *html, bh_json_value record);

/* Its object as a link to its page or, where it has none, to the records about it. */
void bh_record_put_object(struct bh_html *html, bh_json_value record);

/* Who did it, without what identified them. */
void bh_record_put_actor(struct bh_html *html, bh_json_value record);

/* "denied", or the result with what the node answered. */
void bh_record_put_result(struct bh_html *html, bh_json_value record);

/* What the verb means, from tables/operations.tbl; NULL: no operation has it. */
const char *bh_record_meaning(const char *verb);

#endif
