#include "fetch/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"

#if defined __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this machine type yet"
#endif

enum { PROGRAM_MAX = 512, X32_BIT = 0x40000000 };

enum filter_rule {
    RULE_ALLOW,
    RULE_READ,
    RULE_SOCKET,
    RULE_PAIR,
    RULE_COUNT,
    RULE_THREAD,
    RULE_SELF,
    RULE_NAME,
    RULE_MAP,
    RULE_DATA,
    RULE_KILL,
    RULES
};

struct filter_call {
    uint32_t number;
    enum filter_rule rule;
};

static const struct filter_call calls[] = {
#define BH_FETCH_SYSCALL(name, rule) { SYS_##name, RULE_##rule },
#include "tables/fetch_syscalls.tbl"
#undef BH_FETCH_SYSCALL
};

struct fetch_filter_program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short count;
};

static void
filter_put(struct fetch_filter_program *program, uint16_t code, uint32_t k)
{
    BH_ASSERT(program->count < PROGRAM_MAX);
    program->code[program->count++] = (struct sock_filter){ .code = code, .k = k };
}

/* Skip the next instruction unless the test holds for what was loaded. */
static void
filter_put_test(struct fetch_filter_program *program, uint16_t test, uint32_t value)
{
    filter_put(program, (uint16_t)(BPF_JMP | test | BPF_K), value);
    program->code[program->count - 1].jf = 1;
}

static void
filter_put_answer(struct fetch_filter_program *program, uint32_t action)
{
    filter_put(program, BPF_RET | BPF_K, action);
}

static void
filter_put_allow_if(struct fetch_filter_program *program, uint16_t test, uint32_t value)
{
    filter_put_test(program, test, value);
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

static void
filter_put_refuse_if(struct fetch_filter_program *program, uint16_t test, uint32_t value)
{
    filter_put_test(program, test, value);
    filter_put_answer(program, SECCOMP_RET_ERRNO | EACCES);
}

/* The low word of an argument: the flags and numbers here have no more. */
static void
filter_put_load(struct fetch_filter_program *program, uint32_t argument)
{
    filter_put(program, BPF_LD | BPF_W | BPF_ABS,
               (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t)));
}

/* O_TMPFILE comes with a mode that writes. */
static void
filter_put_read(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, number == SYS_openat ? 2 : 1);
    filter_put_refuse_if(program, BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND);
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

/* A socket of AF_UNIX could be connected to the daemon's own, or the node's: the resolver
 * does without. */
static void
filter_put_socket(struct fetch_filter_program *program, uint32_t number)
{
    enum { TYPE = 0xf };

    filter_put_load(program, 1);
    filter_put(program, BPF_ALU | BPF_AND | BPF_K, TYPE);
    filter_put(program, BPF_JMP | BPF_JEQ | BPF_K, SOCK_STREAM);
    program->code[program->count - 1].jt = 2;
    filter_put(program, BPF_JMP | BPF_JEQ | BPF_K, SOCK_DGRAM);
    program->code[program->count - 1].jt = 1;
    filter_put_answer(program, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    filter_put_load(program, 0);
    filter_put_allow_if(program, BPF_JEQ, AF_INET);
    filter_put_allow_if(program, BPF_JEQ, AF_INET6);
    filter_put_answer(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

static void
filter_put_pair(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 0);
    filter_put_allow_if(program, BPF_JEQ, AF_UNIX);
    filter_put_answer(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

/* Others reach a terminal, or the kernel's devices. */
static void
filter_put_count(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 1);
    filter_put_allow_if(program, BPF_JEQ, FIONREAD);
    filter_put_allow_if(program, BPF_JEQ, FIONBIO);
    filter_put_answer(program, SECCOMP_RET_ERRNO | ENOTTY);
}

static void
filter_put_thread(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 0);
    filter_put_allow_if(program, BPF_JSET, CLONE_THREAD);
    filter_put_answer(program, SECCOMP_RET_ERRNO | EACCES);
}

static void
filter_put_self(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 0);
    filter_put_allow_if(program, BPF_JEQ, (uint32_t)getpid());
    filter_put_answer(program, SECCOMP_RET_ERRNO | EACCES);
}

static void
filter_put_name(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 0);
    filter_put_allow_if(program, BPF_JEQ, PR_SET_NAME);
    filter_put_answer(program, SECCOMP_RET_ERRNO | EACCES);
}

/* A library that the resolver loads is mapped executable, from a file that this process cannot
 * write. */
static void
filter_put_map(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 2);
    filter_put(program, BPF_ALU | BPF_AND | BPF_K, PROT_WRITE | PROT_EXEC);
    filter_put_refuse_if(program, BPF_JEQ, PROT_WRITE | PROT_EXEC);
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

static void
filter_put_data(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_load(program, 2);
    filter_put_refuse_if(program, BPF_JSET, PROT_EXEC);
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

static void
filter_put_allow(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

static void
filter_put_kill(struct fetch_filter_program *program, uint32_t number)
{
    filter_put_answer(program, SECCOMP_RET_KILL_PROCESS);
}

static void (*const rules[RULES])(struct fetch_filter_program *program, uint32_t number) = {
    [RULE_ALLOW] = filter_put_allow, [RULE_READ] = filter_put_read,   [RULE_SOCKET] = filter_put_socket,
    [RULE_PAIR] = filter_put_pair,   [RULE_COUNT] = filter_put_count, [RULE_THREAD] = filter_put_thread,
    [RULE_SELF] = filter_put_self,   [RULE_NAME] = filter_put_name,   [RULE_MAP] = filter_put_map,
    [RULE_DATA] = filter_put_data,   [RULE_KILL] = filter_put_kill,
};

static void
filter_put_call(struct fetch_filter_program *program, const struct filter_call *call)
{
    unsigned short test = program->count;

    filter_put(program, BPF_JMP | BPF_JEQ | BPF_K, call->number);
    rules[call->rule](program, call->number);
    BH_ASSERT(program->count - test - 1 < UINT8_MAX);
    program->code[test].jf = (uint8_t)(program->count - test - 1);
}

static void
filter_make(struct fetch_filter_program *program)
{
    filter_put(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    filter_put(program, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH);
    program->code[program->count - 1].jt = 1;
    filter_put_answer(program, SECCOMP_RET_KILL_PROCESS);
    filter_put(program, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    filter_put_test(program, BPF_JGE, X32_BIT);
    filter_put_answer(program, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < BH_COUNT(calls); i++)
        filter_put_call(program, &calls[i]);
    filter_put_answer(program, SECCOMP_RET_ERRNO | ENOSYS);
}

bh_rc
bh_fetch_filter_load(struct bh_err *err)
{
    struct fetch_filter_program program = { .count = 0 };
    struct sock_fprog loaded = { .filter = program.code };

    filter_make(&program);
    loaded.len = program.count;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &loaded, 0, 0) != 0)
        return bh_err_errno(err, "cannot load the system call filter");
    return BH_OK;
}
