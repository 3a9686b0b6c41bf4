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

/* The job of that name: as the engine has it, or, after its end, as it was reported
 * (`ret_view->lease` is 0 then).  BH_NOT_FOUND: no such name, or never submitted. */
BH_MUST_USE bh_rc bh_scenario_run_job(const struct bh_scenario_run *run, const char *name,
                                      struct bh_job_view *ret_view, struct bh_err *err);

/* The GPU of that name ("gpu1/0"), as the engine has it. */
BH_MUST_USE bh_rc bh_scenario_run_gpu(const struct bh_scenario_run *run, const char *name,
                                      struct bh_gpu_view *ret_view, struct bh_err *err);

/* The GPU of that name as an event that changes nothing yet. */
BH_MUST_USE bh_rc bh_scenario_run_report(const struct bh_scenario_run *run, const char *name,
                                         struct bh_event *ret_event, struct bh_err *err);

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

/* The statements, by theme; each list ends with a word that is NULL. */
extern const struct bh_statement bh_site_statements[];     /* nodes, GPUs, SKUs */
extern const struct bh_statement bh_settings_statements[]; /* of the whole site, and forecasts */
extern const struct bh_statement bh_tenant_statements[];   /* tenants */
extern const struct bh_statement bh_job_statements[];      /* jobs */
extern const struct bh_statement bh_time_statements[];     /* time, failures, crashes */
extern const struct bh_statement bh_expect_statements[];   /* what must be true now */
extern const struct bh_statement bh_whatif_statements[];   /* what would be */
extern const struct bh_statement bh_defrag_statements[];   /* moves */
extern const struct bh_statement bh_layout_statements[];   /* declared layouts of GPUs */
extern const struct bh_statement bh_share_statements[];    /* shares of GPUs */
extern const struct bh_statement bh_health_statements[];   /* faults, cordons */
extern const struct bh_statement bh_frame_statements[];    /* on other statements */

/* A row of a SKU: "H100-80GB=1g.10gb", "H100-80GB=whole", or a share, "H100-80GB=1/4,18Gi+hard",
 * with bytes rounded up to parts.  BH_INVALID, BH_RANGE: the model has no such partition. */
BH_MUST_USE bh_rc bh_scenario_parse_sku_row(const char *word, struct bh_sku_model *ret_row,
                                            struct bh_err *err);
BH_MUST_USE bh_rc bh_scenario_parse_share(enum bh_gpu_model model, const char *text, uint32_t *ret_profile,
                                          struct bh_err *err);

#endif
