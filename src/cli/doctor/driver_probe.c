#include "cli/doctor/driver_probe.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

enum { SECONDS_MAX = 10 };

/* What the child says: of one size, and small enough to be written at once. */
struct probe_answer {
    uint32_t loaded;
    int32_t code; /* of nvmlInit_v2, or of the count */
    uint32_t gpus;
};

static struct probe_answer
driver_probe_ask(const char *library)
{
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    int (*init)(void) = handle ? (int (*)(void))dlsym(handle, "nvmlInit_v2") : NULL;
    int (*count)(unsigned *) = handle ? (int (*)(unsigned *))dlsym(handle, "nvmlDeviceGetCount_v2") : NULL;
    struct probe_answer answer = { .loaded = init && count };
    unsigned gpus = 0;

    if (answer.loaded)
        answer.code = init();
    if (answer.loaded && answer.code == 0)
        answer.code = count(&gpus);
    answer.gpus = gpus;
    return answer;
}

static _Noreturn void
run_child(const char *library, char *environment, int to)
{
    struct probe_answer answer;

    alarm(SECONDS_MAX);
    if (*environment)
        putenv(environment);
    answer = driver_probe_ask(library);
    _exit(write(to, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
}

bh_rc
bh_driver_probe(const char *library, const char *environment, uint32_t *ret_gpus, struct bh_err *err)
{
    char variable[4096];
    struct probe_answer answer;
    ssize_t length;
    int ends[2];
    pid_t pid;

    snprintf(variable, sizeof variable, "%s", environment);
    if (pipe2(ends, O_CLOEXEC) != 0 || (pid = fork()) < 0)
        return bh_err_errno(err, "starting a child");
    if (pid == 0)
        run_child(library, variable, ends[1]);
    bh_fd_close(ends[1]);
    length = read(ends[0], &answer, sizeof answer);
    bh_fd_close(ends[0]);
    waitpid(pid, NULL, 0);
    if (length != (ssize_t)sizeof answer)
        return bh_err_set(err, BH_TIMEOUT, "%s does not answer", library);
    if (!answer.loaded)
        return bh_err_set(err, BH_NOT_FOUND, "%s cannot be loaded", library);
    if (answer.code != 0)
        return bh_err_sys(err, BH_UNAVAILABLE, BH_SYS_NVML, answer.code, "%s refuses with NVML code %d",
                          library, answer.code);
    *ret_gpus = answer.gpus;
    return BH_OK;
}
