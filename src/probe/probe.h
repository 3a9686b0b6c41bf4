#ifndef BH_PROBE_PROBE_H
#define BH_PROBE_PROBE_H

#include <stdint.h>

/* What an attempt may aim at, from the command line: --pid=17.  Empty or 0: not said. */
struct bh_targets {
    const char *pid;      /* of a process of another tenant, as the machine numbers it */
    const char *file;     /* a file of the machine's that another tenant owns */
    const char *tmp;      /* name of a file in another tenant's /tmp and /dev/shm */
    const char *socket;   /* path of bulkhead-node's socket */
    const char *port;     /* of a service on the machine's loopback */
    const char *abstract; /* name of an abstract socket of the machine */
    const char *address;  /* IPv4 address of another tenant's job */
    const char *memory;   /* bytes that the sandbox may have */
    const char *pids;     /* processes that it may have */
    const char *inode;    /* of the machine's /usr/bin: "DEVICE:INODE", as numbers */
    const char *device;   /* number of the device that the machine's /dev/null lies on */
    const char *lent;     /* device nodes that were lent: "/dev/nvidia0,/dev/nvidiactl" */
};

/* Each attempt returns 0 when it succeeded, which must not be, and otherwise the errno that it
 * was refused with.  It runs in a process of its own and need not clean up what ends with that. */
#define BH_ESCAPE(name, category, answers, passed, needs, bare, sentence)                                    \
    int bh_try_##name(const struct bh_targets *targets);
#include "tables/escapes.tbl"
#undef BH_ESCAPE

/* 0 when `path` opens with these flags, else errno. */
int bh_probe_open(const char *path, int flags);

/* 0 when any of the paths opens; else ENOENT when none is there, or why the first that is did
 * not open.  The list ends with NULL. */
int bh_probe_open_any(const char *const *paths, int flags);

/* 0 for a result that is not negative, else errno. */
int bh_probe_result(long result);

/* Whether the node was lent to this sandbox. */
int bh_probe_is_lent(const struct bh_targets *targets, const char *path);

/* An attempt that is one expression of `targets`; one that opens any of these paths. */
#define BH_TRY(name, ...)                                                                                    \
    int bh_try_##name(const struct bh_targets *targets)                                                      \
    {                                                                                                        \
        return __VA_ARGS__;                                                                                  \
    }
#define BH_TRY_OPEN_ANY(name, flags, ...)                                                                    \
    BH_TRY(name, bh_probe_open_any((const char *const[]){ __VA_ARGS__, NULL }, flags))

#endif
