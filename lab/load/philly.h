#ifndef BH_LAB_LOAD_PHILLY_H
#define BH_LAB_LOAD_PHILLY_H

#include "lab/load/load.h"

/* Jobs of Microsoft's Philly cluster as Gavel publishes them, by virtual cluster: the file
 * philly_vc_jobs.csv with the columns vc, submit_s, gpus, duration_s_v100, assigned_model.
 *
 * Each virtual cluster is an organization of its own, on 64 nodes of 8 GPUs; a job wants
 * 1 to 8 whole GPUs of one node and runs for its duration on a V100. */

enum { BH_PHILLY_NODES = 64, BH_PHILLY_GPUS = 8 };

/* Read the file at `path` into an empty load, in order of submission.  Messages name the
 * file and the line.
 *   BH_NOT_FOUND, BH_DENIED, BH_IO  the file cannot be read
 *   BH_INVALID, BH_RANGE            a line is not what it should be */
BH_MUST_USE bh_rc bh_philly_read(const char *path, struct bh_load *load, struct bh_err *err);

#endif
