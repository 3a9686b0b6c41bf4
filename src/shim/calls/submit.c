/* Submissions of work: each passes the gate. */
#include "shim/calls/graph.h"
#include "shim/driver/driver.h"
#include "shim/time_slice/gate.h"

/* Smaller copies and fills delay no other lease. */
#define LARGE_BYTES ((size_t)1 << 20)

#define HOOK(name)
#define SUBMIT(name, when, stream_, own, work_, parameters, arguments)                                       \
    CUresult name parameters                                                                                 \
    {                                                                                                        \
        struct bh_pass pass;                                                                                 \
        CUresult rc;                                                                                         \
                                                                                                             \
        if (!(when))                                                                                         \
            return REAL(name) arguments;                                                                     \
        if (__builtin_expect(bh_gate_quick(), 1)) {                                                          \
            rc = REAL(name) arguments;                                                                       \
            bh_gate_step(bh_gate_me, (uint32_t)-1);                                                          \
            return rc;                                                                                       \
        }                                                                                                    \
        pass.stream = (stream_);                                                                             \
        pass.work = (uint64_t)(uintptr_t)(work_);                                                            \
        pass.per_thread = (own);                                                                             \
        bh_gate_enter(&pass);                                                                                \
        rc = REAL(name) arguments;                                                                           \
        bh_gate_leave(&pass, rc);                                                                            \
        return rc;                                                                                           \
    }
#include "tables/hooks.tbl"
#undef SUBMIT
#undef HOOK

/* A graph is one submission; its first launch brings its memory. */
static CUresult
launch_graph(CUresult (*real)(CUgraphExec, CUstream), CUgraphExec exec, struct bh_pass *pass)
{
    struct bh_graph_call call;
    CUresult rc = bh_graph_begin(exec, &call);

    if (rc != CUDA_SUCCESS)
        return rc;
    bh_gate_enter(pass);
    rc = real(exec, pass->stream);
    bh_gate_leave(pass, rc);
    bh_graph_end(exec, &call, rc);
    return rc;
}

#define LAUNCH_GRAPH(name, own)                                                                              \
    CUresult name(CUgraphExec graph, CUstream stream)                                                        \
    {                                                                                                        \
        struct bh_pass pass = { .stream = stream, .work = (uintptr_t)graph, .per_thread = (own) };           \
                                                                                                             \
        if (bh_graph_is_simple() && bh_gate_quick()) {                                                       \
            CUresult rc = REAL(name)(graph, stream);                                                         \
                                                                                                             \
            bh_gate_step(bh_gate_me, (uint32_t)-1);                                                          \
            return rc;                                                                                       \
        }                                                                                                    \
        return launch_graph(REAL(name), graph, &pass);                                                       \
    }

LAUNCH_GRAPH(cuGraphLaunch, false)
LAUNCH_GRAPH(cuGraphLaunch_ptsz, true)
