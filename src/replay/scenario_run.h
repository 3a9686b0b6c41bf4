#ifndef BH_REPLAY_SCENARIO_RUN_H
#define BH_REPLAY_SCENARIO_RUN_H

#include "replay/names.h"
#include "replay/supposed.h"
#include "base/words.h"
#include "replay/world.h"

/* One scenario being played: the world, what things are called, and the refusal that
 * the scenario expects next. */
struct bh_scenario_run {
    struct bh_world *world;
    struct bh_names *names;
    char expected_refusal[40]; /* a reason's name; "" none */
    bool refused;              /* the engine refused this statement's event, because of: */
    enum bh_reason_code refusal;
    struct bh_supposed *supposed; /* by the last `whatif`; NULL: nothing yet */
    bool supposing;               /* statements go to its copy */
};

/* A run with an empty site, in the caller's memory. */
void bh_scenario_run_init(struct bh_scenario_run *run);
void bh_scenario_run_fini(struct bh_scenario_run *run);

/* Send a command to the engine; notes a refusal.  Fails as bh_world_send. */
BH_MUST_USE bh_rc bh_scenario_run_send(struct bh_scenario_run *run, struct bh_event *event,
                                       struct bh_err *err);

/* What the daemon does now and then: with defrag: on, the present plan is carried out. */
BH_MUST_USE bh_rc bh_scenario_run_defragment(struct bh_scenario_run *run, struct bh_err *err);

/* The job of that name: as the engine has it, or, after its end, as it was told
 * (`ret_view->lease` is 0 then).  BH_NOT_FOUND: no such name, or never submitted. */
BH_MUST_USE bh_rc bh_scenario_run_job(const struct bh_scenario_run *run, const char *name,
                                      struct bh_job_view *ret_view, struct bh_err *err);

/* The GPU of that name ("gpu1/0"), as the engine has it. */
BH_MUST_USE bh_rc bh_scenario_run_gpu(const struct bh_scenario_run *run, const char *name,
                                      struct bh_gpu_view *ret_view, struct bh_err *err);

/* The tenant of that path, as the engine has it. */
BH_MUST_USE bh_rc bh_scenario_run_tenant(const struct bh_scenario_run *run, const char *path,
                                         struct bh_tenant_view *ret_view, struct bh_err *err);

/* A statement of the language: its word, how many words follow it, how it is written
 * and what it does. */
struct bh_statement {
    const char *word;
    uint32_t least, most;
    const char *usage;
    bh_rc (*play)(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err);
};

/* Options of a statement: words from at[first] on, each followed by its values. */
struct bh_scenario_option {
    const char *word;
    uint32_t values;
    bh_rc (*take)(struct bh_scenario_run *run, const char *const *values, void *into, struct bh_err *err);
};
struct bh_scenario_options {
    uint32_t first;
    const struct bh_scenario_option *rows;
    uint32_t count;
};

/* Read them into `into`.  BH_INVALID: an unknown word, a value that is missing. */
BH_MUST_USE bh_rc bh_scenario_options_read(struct bh_scenario_run *run, const struct bh_words *words,
                                           const struct bh_scenario_options *options, void *into,
                                           struct bh_err *err);

/* The statements, by theme; each list ends with a word that is NULL. */
extern const struct bh_statement bh_site_statements[];   /* nodes, GPUs, tenants, SKUs */
extern const struct bh_statement bh_job_statements[];    /* jobs */
extern const struct bh_statement bh_time_statements[];   /* time, failures, crashes */
extern const struct bh_statement bh_expect_statements[]; /* what must be true now */
extern const struct bh_statement bh_whatif_statements[]; /* what would be */
extern const struct bh_statement bh_defrag_statements[]; /* moves */
extern const struct bh_statement bh_layout_statements[]; /* what shall stand on GPUs */
extern const struct bh_statement bh_share_statements[];  /* shares of GPUs */
/* A share of a SKU's row as a profile's number: "1/4", or "25%,18Gi+hard", bytes rounded up to
 * parts.  BH_INVALID, BH_RANGE: there is no such share of the model. */
BH_MUST_USE bh_rc bh_scenario_parse_share(enum bh_gpu_model model, const char *text, uint32_t *ret_profile,
                                          struct bh_err *err);

/* `settings burn-in SPAN`, as struct bh_scenario_option takes it. */
bh_rc bh_scenario_read_burn_in(struct bh_scenario_run *run, const char *const *values, void *into,
                               struct bh_err *err);

extern const struct bh_statement bh_health_statements[]; /* faults, cordons */
extern const struct bh_statement bh_frame_statements[];  /* on other statements */

#endif
