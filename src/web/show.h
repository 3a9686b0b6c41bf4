#ifndef BH_WEB_SHOW_H
#define BH_WEB_SHOW_H

#include "base/json.h"
#include "base/time.h"
#include "web/html.h"

/* How pages show what the API says: moments, spans, amounts, states, links.  A figure that is not
 * known is shown as "unavailable" with the reason, never as 0. */

/* Members of an object of the API: "" and 0 for what is absent. */
const char *bh_show_text_of(bh_json_value object, const char *name);
uint64_t bh_show_number_of(bh_json_value object, const char *name);
bool bh_show_truth_of(bh_json_value object, const char *name);

/* A moment: its UTC text, which live.js turns into the reader's zone; the exact one is its title then.
 * 0 is "never". */
void bh_show_time(struct bh_html *html, bh_ns at);

/* Of when figures are that a node reported, where it has not for a while: else nothing, so that they have
 * the same bytes while they are the same.  `at` 0: not known. */
void bh_show_age(struct bh_html *html, bh_ns at, bh_ns now);

/* A moment that is only estimated: to the minute. */
void bh_show_about(struct bh_html *html, bh_ns at);

/* A span of time in two units at most: "3m 20s". */
void bh_show_span(struct bh_html *html, bh_ns span);

/* MiB as "9.8 GiB" or "512 MiB", in one decimal. */
void bh_show_mib(struct bh_html *html, uint64_t mib);

/* Parts, 4200 to a GPU, as GPUs in two decimals: "12.43", "2". */
void bh_show_parts(struct bh_html *html, uint64_t parts);

/* Why there is no figure. */
void bh_show_unavailable(struct bh_html *html, const char *why);

/* A sentence of the API, with what it writes between backticks as code. */
void bh_show_sentence(struct bh_html *html, const char *text);

/* A state as a word in its colour: class "state STATE". */
void bh_show_state(struct bh_html *html, const char *state);

/* Whether it is cordoned, draining or, `empty`, drained, by the API's `cordon`; nothing where it is neither.
 */
void bh_show_cordon(struct bh_html *html, const char *cordon, bool empty);

/* The same of a node, which is drained when nothing is promised to jobs. */
void bh_node_put_cordon(struct bh_html *html, bh_json_value node);

/* A link within the site: `folder` ("/jobs/") and a name, encoded but for its slashes. */
void bh_show_link(struct bh_html *html, const char *folder, const char *name, const char *text);
void bh_show_job(struct bh_html *html, uint64_t job);
/* A record of the audit log, by its number. */
void bh_show_record(struct bh_html *html, uint64_t record);
void bh_show_tenant(struct bh_html *html, const char *path);
/* By its UUID, shown short as the command line shows it. */
void bh_show_gpu(struct bh_html *html, const char *uuid);

/* Where a job is or was, "GPU-3f2a1bd7 1g.10gb@2, n2/GPU-77aa0000 whole": GPUs lead to their pages. */
void bh_show_partitions(struct bh_html *html, bh_json_value job);

/* A link to the records of the audit log with that. */
void bh_show_search(struct bh_html *html, const char *parameter, const char *value, const char *text);

/* A number of an address; 0 for anything else. */
uint64_t bh_show_number_in(const char *text);

/* A table of figures: <dl> with a row each. */
void bh_show_fact_begin(struct bh_html *html, const char *name);
void bh_show_fact_end(struct bh_html *html);
void bh_show_fact(struct bh_html *html, const char *name, const char *text);

/* The head of a table: names up to a NULL. */
void bh_show_table(struct bh_html *html, const char *caption, const char *const *columns);
void bh_show_table_end(struct bh_html *html);
void bh_show_cell(struct bh_html *html, const char *text);

#endif
