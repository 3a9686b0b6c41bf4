/* bulkhead-probe: tries to get out of the sandbox that it runs in, in every way that
 * tables/escapes.tbl names, and says what came of each attempt. */

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/probe.h"

enum { TIMEOUT_MS = 5000, EXIT_USAGE = 2, EXIT_BREACHED = 1 };

static const struct attempt {
    const char *name, *category, *answers, *passed, *needs, *bare, *sentence;
    int (*try)(const struct bh_targets *targets);
} attempts[] = {
#define BH_ESCAPE(name, category, answers, passed, needs, bare, sentence)                                    \
    { #name, #category, answers, passed, needs, #bare, sentence, bh_try_##name },
#include "tables/escapes.tbl"
#undef BH_ESCAPE
};
enum { ATTEMPTS = sizeof attempts / sizeof *attempts };

static const struct {
    const char *name;
    int value;
} faults[] = {
#define NAME(fault)                                                                                          \
    {                                                                                                        \
#fault, fault                                                                                        \
    }
    NAME(EPERM),      NAME(ENOENT),       NAME(ESRCH),         NAME(EINTR),           NAME(EIO),
    NAME(ENXIO),      NAME(E2BIG),        NAME(ENOEXEC),       NAME(EBADF),           NAME(ECHILD),
    NAME(EAGAIN),     NAME(ENOMEM),       NAME(EACCES),        NAME(EFAULT),          NAME(ENOTBLK),
    NAME(EBUSY),      NAME(EEXIST),       NAME(EXDEV),         NAME(ENODEV),          NAME(ENOTDIR),
    NAME(EISDIR),     NAME(EINVAL),       NAME(ENFILE),        NAME(EMFILE),          NAME(ENOTTY),
    NAME(ETXTBSY),    NAME(EFBIG),        NAME(ENOSPC),        NAME(EROFS),           NAME(ENOSYS),
    NAME(EOVERFLOW),  NAME(ENODATA),      NAME(ENOKEY),        NAME(EPROTONOSUPPORT), NAME(ESOCKTNOSUPPORT),
    NAME(EOPNOTSUPP), NAME(EAFNOSUPPORT), NAME(EADDRNOTAVAIL), NAME(ENETUNREACH),     NAME(EHOSTUNREACH),
    NAME(ETIMEDOUT),  NAME(ECONNREFUSED), NAME(ESTALE),        NAME(ENOMEDIUM),
#undef NAME
};

/* ---- what the attempts use ---- */

int
bh_probe_result(long result)
{
    return result < 0 ? errno : 0;
}

int
bh_probe_open(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC, 0600), fault = errno;

    if (fd >= 0)
        close(fd);
    return fd < 0 ? fault : 0;
}

int
bh_probe_open_any(const char *const *paths, int flags)
{
    int answer = ENOENT;

    for (; *paths && answer != 0; paths++) {
        int fault = bh_probe_open(*paths, flags);

        if (fault == 0 || answer == ENOENT)
            answer = fault;
    }
    return answer;
}

int
bh_probe_is_lent(const struct bh_targets *targets, const char *path)
{
    size_t length = strlen(path);

    for (const char *at = targets->lent; at && (at = strstr(at, path)); at += length) {
        if ((at == targets->lent || at[-1] == ',') && (!at[length] || at[length] == ','))
            return 1;
    }
    return 0;
}

/* ---- one attempt ---- */

/* Whether `word` stands in a list of words. */
static bool
probe_is_in(const char *list, const char *word)
{
    size_t length = strlen(word);

    for (const char *at = list; (at = strstr(at, word)); at += length) {
        if ((at == list || at[-1] == ' ') && (!at[length] || at[length] == ' '))
            return true;
    }
    return false;
}

static void
probe_name_fault(int fault, char *ret_name, size_t size)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (faults[i].value == fault) {
            snprintf(ret_name, size, "%s", faults[i].name);
            return;
        }
    }
    snprintf(ret_name, size, "errno-%d", fault);
}

/* When memory runs out, it is the attempt that goes and not its parent. */
static void
probe_go_first(void)
{
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)!write(fd, "1000", 4);
        close(fd);
    }
}

static _Noreturn void
probe_attempt_it(const struct attempt *attempt, const struct bh_targets *targets, int pipe_fd)
{
    static const struct rlimit no_core;
    char number[16];
    int answer;

    setpgid(0, 0);
    probe_go_first();
    setrlimit(RLIMIT_CORE, &no_core);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    snprintf(number, sizeof number, "%d", pipe_fd);
    setenv("BULKHEAD_PROBE_PIPE", number, 1);
    answer = attempt->try(targets);
    (void)!write(pipe_fd, &answer, sizeof answer);
    _exit(0);
}

struct probe_options {
    struct bh_targets targets;
    const char *only, *but;
    bool bare;
    int patience_ms; /* for one attempt */
};

/* "open", the error that it was refused with, or the signal that ended it. */
static void
probe_run(const struct probe_options *options, const struct attempt *attempt, char *ret_answer, size_t size)
{
    int ends[2], answer, status = 0;
    struct pollfd polled;
    bool answered;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0 || (child = fork()) < 0) {
        snprintf(ret_answer, size, "no-process");
        return;
    }
    if (child == 0) {
        close(ends[0]);
        probe_attempt_it(attempt, &options->targets, ends[1]);
    }
    close(ends[1]);
    polled = (struct pollfd){ .fd = ends[0], .events = POLLIN };
    if (poll(&polled, 1, options->patience_ms) <= 0) {
        kill(-child, SIGKILL);
        snprintf(ret_answer, size, "hung");
    }
    answered = read(ends[0], &answer, sizeof answer) == sizeof answer;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (answered && answer == 0)
        snprintf(ret_answer, size, "open");
    else if (answered)
        probe_name_fault(answer, ret_answer, size);
    else if (polled.revents)
        snprintf(ret_answer, size, "SIG%s",
                 WIFSIGNALED(status) && sigabbrev_np(WTERMSIG(status)) ? sigabbrev_np(WTERMSIG(status))
                                                                       : "?");
}

/* Held: refused by the limit that is meant.  Breached: it succeeded, or passed the limit.
 * Otherwise: refused by something else, which proves nothing. */
static const char *
probe_judge(const struct attempt *attempt, const char *answer)
{
    if (strcmp(answer, "open") == 0 || probe_is_in(attempt->passed, answer))
        return "breached";
    return probe_is_in(attempt->answers, answer) ? "held" : "otherwise";
}

/* ---- all of them ---- */

/* clang-format off */
#define TARGETS(X) \
    X(pid) X(file) X(tmp) X(socket) X(port) X(abstract) X(address) X(memory) X(pids) X(inode) \
    X(device) X(lent)
/* clang-format on */

static const char *
probe_target_named(const struct bh_targets *targets, const char *name)
{
#define ONE(field)                                                                                           \
    if (strcmp(name, #field) == 0)                                                                           \
        return targets->field;
    TARGETS(ONE)
#undef ONE
    return NULL;
}

static bool
probe_is_named(const char *list, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = list; at && (at = strstr(at, name)); at += length) {
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ','))
            return true;
    }
    return false;
}

/* Why it is not tried, or NULL. */
static const char *
probe_spared(const struct probe_options *options, const struct attempt *attempt)
{
    if ((options->only && !probe_is_named(options->only, attempt->name))
        || probe_is_named(options->but, attempt->name))
        return "left-out";
    if (*attempt->needs && !probe_target_named(&options->targets, attempt->needs))
        return "no-target";
    return options->bare && strcmp(attempt->bare, "SAFE") != 0 ? "not-safe" : NULL;
}

static int
probe_run_all(const struct probe_options *options)
{
    int status = 0;

    for (size_t i = 0; i < ATTEMPTS; i++) {
        const struct attempt *attempt = &attempts[i];
        const char *why_not = probe_spared(options, attempt), *verdict = "skipped";
        char answer[32];

        if (options->only && why_not && strcmp(why_not, "left-out") == 0)
            continue;
        snprintf(answer, sizeof answer, "%s", why_not ? why_not : "");
        if (!why_not) {
            printf("%s ", attempt->name); /* an attempt that ends the whole probe is named */
            fflush(stdout);
            probe_run(options, attempt, answer, sizeof answer);
            verdict = probe_judge(attempt, answer);
            printf("%s %s\n", verdict, answer);
        } else {
            printf("%s %s %s\n", attempt->name, verdict, answer);
        }
        fflush(stdout);
        if (strcmp(verdict, "breached") == 0 || strcmp(verdict, "otherwise") == 0)
            status = EXIT_BREACHED;
    }
    printf("end\n");
    return status;
}

static int
probe_list_all(void)
{
    for (size_t i = 0; i < ATTEMPTS; i++)
        printf("%s\t%s\t%s\t%s\t%s\t%s\n", attempts[i].name, attempts[i].category, attempts[i].answers,
               attempts[i].needs, attempts[i].bare, attempts[i].sentence);
    return 0;
}

static const char usage[] =
    "usage: bulkhead-probe [--only NAME,...] [--but NAME,...] [--bare] [--patience MS]\n"
    "                      [--TARGET=VALUE...]\n"
    "       bulkhead-probe --list\n"
    "\n"
    "Tries to get out of the sandbox that it runs in; a line for each attempt: NAME VERDICT\n"
    "ANSWER, where the verdict is held, breached, otherwise (refused, but not by the limit\n"
    "that is meant) or skipped.  Exit status 1 when one did not hold.\n"
    "\n"
    "  --bare   only what does no harm without a sandbox\n"
    "  --patience  an attempt that takes longer than that many milliseconds hangs (5000)\n"
    "  --list   the attempts with the answers that are expected\n"
    "  targets  pid file tmp socket port abstract address memory pids inode device\n"
    "           lent\n";

int
main(int argc, char **argv)
{
#define ONE(field) { #field, required_argument, NULL, 't' },
    static const struct option names[] = { { "only", required_argument, NULL, 'o' },
                                           { "but", required_argument, NULL, 'x' },
                                           { "bare", no_argument, NULL, 'b' },
                                           { "patience", required_argument, NULL, 'p' },
                                           { "list", no_argument, NULL, 'l' },
                                           { "help", no_argument, NULL, 'h' },
                                           TARGETS(ONE){ 0 } };
#undef ONE
    struct probe_options options = { .patience_ms = TIMEOUT_MS };
    int at = 0;

    for (int option; (option = getopt_long(argc, argv, "", names, &at)) != -1;) {
        switch (option) {
        case 'o':
            options.only = optarg;
            break;
        case 'x':
            options.but = optarg;
            break;
        case 'b':
            options.bare = true;
            break;
        case 'p':
            options.patience_ms = (int)strtol(optarg, NULL, 10);
            break;
        case 'l':
            return probe_list_all();
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 't':
#define ONE(field)                                                                                           \
    if (strcmp(names[at].name, #field) == 0)                                                                 \
        options.targets.field = optarg;
            TARGETS(ONE)
#undef ONE
            break;
        default:
            fputs(usage, stderr);
            return EXIT_USAGE;
        }
    }
    return probe_run_all(&options);
}
