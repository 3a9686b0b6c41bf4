/* Which processes use which simulated device memory.
 *
 * A process has a context on an instance while it maps the `memory` file of
 * the instance's view.  One that maps it from its beginning uses as many bytes as it mapped;
 * one that maps the page whose number is a slot of the ledger (sim/machine/ledger.h), what that
 * slot has.  This is read from /proc as the caller sees it: nothing is registered, so nothing can be left
 * behind, and a process that dies gives its memory back by dying.
 *
 * Reading all of /proc costs milliseconds, several times for each job.  So a file that no process
 * has open is not looked for.  That is the kernel's word (fcntl_locking(2), leases) and not the
 * process's: no mapping of it escapes.  It is given to the owner of the file, root; where it is
 * not given, as in a job, all of /proc is read.
 *
 * What a mapping means is the job's word: a process can use the memory of its instance, whose
 * files it may write, and map no page here, or a slot's that says that it was checkpointed. */
#ifndef BH_SIM_MACHINE_CONTEXTS_H
#define BH_SIM_MACHINE_CONTEXTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file as /proc/<pid>/maps names it; stat() answers otherwise on some file
 * systems. */
struct sim_mapping {
    uint64_t device, inode;
};

struct sim_context {
    struct sim_mapping file;
    uint64_t bytes, cpu_ns, started_ns; /* CPU time used; start, by CLOCK_BOOTTIME */
    uint32_t pid;
    uint32_t slot; /* in the ledger, below SIM_SLOTS_MAX; its pages come to `bytes`; 0: none */
};

/* How the file at `path` shows in maps; false when it cannot be mapped. */
bool sim_mapping_find(const char *path, struct sim_mapping *ret_mapping);

/* May a process have a context on the file at `path`?  False is certain: none maps it. */
bool sim_contexts_any(const char *path);

/* A descriptor that keeps every other process from opening the file until it is closed: they wait. -1: a
 * process has it open, or the file does not exist. */
int sim_contexts_hold(const char *path);

/* All contexts on these files, one entry per process and file, whatever else and however often
 * it maps.  Returns how many there are, at most `most`. */
size_t sim_contexts_scan(const struct sim_mapping *files, size_t file_count, struct sim_context *contexts,
                         size_t most);

/* Bytes that all contexts of the file at `path` use; `room` for `most` of them is the caller's. */
uint64_t sim_contexts_used(const char *path, struct sim_context *room, size_t most);

#endif
