#ifndef BH_API_SITE_DATASETS_H
#define BH_API_SITE_DATASETS_H

#include "api/request/call.h"
#include "base/json.h"
#include "ports/store.h"

/* GET /v1/datasets: those that the caller may see, with what it may do.  A caller sees
 * one, with what the site file says of it, where it holds dataset.view on the tenant whose it is, and
 * where a grant names it, for a tenant that it may submit jobs to. */
bh_rc bh_datasets_list(struct bh_call *call, struct bh_err *err);

/* What to do about a folder that the tenant may not mount. */
void bh_datasets_hint(const struct bh_call *call, const char *tenant, const char *path, struct bh_err *err);

/* Why a job's dataset is denied now, in the caller's words: the sentence and the next step of a job
 * that ended for that.  False: it would be allowed now. */
bool bh_datasets_why(const struct bh_call *call, const struct bh_job_row *row, struct bh_err *ret_words);

#endif
