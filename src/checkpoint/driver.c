#include "checkpoint/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>

enum { PATH_SIZE = 512 };

/* Each call with its real type. */
/* clang-format off */
#define CALLS(X) \
    X(cuInit) X(cuGetErrorName) X(cuCheckpointProcessGetState) X(cuCheckpointProcessLock) \
    X(cuCheckpointProcessCheckpoint) X(cuCheckpointProcessRestore) X(cuCheckpointProcessUnlock)
/* clang-format on */

static struct {
#define CALL(name) __typeof__(name) *name;
    CALLS(CALL)
#undef CALL
} cuda;

static CUresult
get_state(void *self, int pid, CUprocessState *ret_state)
{
    return cuda.cuCheckpointProcessGetState(pid, ret_state);
}

static CUresult
driver_lock(void *self, int pid, unsigned timeout_ms)
{
    CUcheckpointLockArgs args = { .timeoutMs = timeout_ms };

    return cuda.cuCheckpointProcessLock(pid, &args);
}

static CUresult
driver_checkpoint(void *self, int pid)
{
    return cuda.cuCheckpointProcessCheckpoint(pid, NULL);
}

static CUresult
driver_restore(void *self, int pid)
{
    return cuda.cuCheckpointProcessRestore(pid, NULL);
}

static CUresult
driver_unlock(void *self, int pid)
{
    return cuda.cuCheckpointProcessUnlock(pid, NULL);
}

static const char *
driver_name_of(void *self, CUresult rc)
{
    const char *name = NULL;

    return cuda.cuGetErrorName(rc, &name) == CUDA_SUCCESS && name ? name : "unknown error";
}

static bool
driver_lives(void *self, int pid)
{
    return kill(pid, 0) == 0 || errno != ESRCH;
}

bh_rc
bh_checkpoint_driver_load(const char *folder, struct bh_checkpoint_driver *ret_driver, struct bh_err *err)
{
    char path[PATH_SIZE];
    const char *why = NULL;
    void *library;

    snprintf(path, sizeof path, "%s%slibcuda.so.1", folder ? folder : "", folder && *folder ? "/" : "");
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        why = dlerror();
    if (!library)
        return bh_err_set(err, BH_UNAVAILABLE, "no libcuda.so.1: %.150s", why ? why : path);
#define CALL(name)                                                                                           \
    cuda.name = (__typeof__(name) *)dlsym(library, #name);                                                   \
    if (!cuda.name)                                                                                          \
        return bh_err_set(err, BH_UNAVAILABLE, "libcuda.so.1 has no " #name);
    CALLS(CALL)
#undef CALL
    *ret_driver = (struct bh_checkpoint_driver){ .state = get_state,
                                                 .lock = driver_lock,
                                                 .checkpoint = driver_checkpoint,
                                                 .restore = driver_restore,
                                                 .unlock = driver_unlock,
                                                 .name = driver_name_of,
                                                 .lives = driver_lives };
    return BH_OK;
}

bh_rc
bh_checkpoint_driver_init(const struct bh_checkpoint_driver *driver, struct bh_err *err)
{
    CUresult rc = cuda.cuInit(0);

    if (rc == CUDA_SUCCESS)
        return BH_OK;
    return bh_err_set(err, BH_IO, "cuInit: %s (%d)", driver->name(driver->self, rc), (int)rc);
}
