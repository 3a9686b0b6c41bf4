#include "checkpoint/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/assert.h"

#if defined __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this machine type yet"
#endif

enum { PROGRAM_MAX = 256, X32_BIT = 0x40000000 };

#define NAMESPACES                                                                                           \
    (CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET                 \
     | CLONE_NEWCGROUP)

static const int refused[] = {
#define BH_CHECKPOINT_SYSCALL(name) SYS_##name,
#include "tables/checkpoint_syscalls.tbl"
#undef BH_CHECKPOINT_SYSCALL
};

struct filter_program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short count;
};

static void
filter_put(struct filter_program *program, const struct sock_filter code)
{
    BH_ASSERT(program->count < PROGRAM_MAX);
    program->code[program->count++] = code;
}

static void
filter_put_answer(struct filter_program *program, uint32_t action)
{
    filter_put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

static void
filter_put_load(struct filter_program *program, size_t offset)
{
    filter_put(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

/* The answer to call `number`, and nothing to others. */
static void
put_call(struct filter_program *program, uint32_t number, uint32_t action)
{
    filter_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1));
    filter_put_answer(program, action);
}

/* Only sockets within the machine: the helper's network is empty anyway. */
static void
put_socket(struct filter_program *program)
{
    filter_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 4));
    filter_put_load(program, offsetof(struct seccomp_data, args[0]));
    filter_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0));
    filter_put_answer(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

/* Threads and not namespaces. */
static void
put_clone(struct filter_program *program)
{
    filter_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    filter_put_load(program, offsetof(struct seccomp_data, args[0]));
    filter_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NAMESPACES, 0, 1));
    filter_put_answer(program, SECCOMP_RET_ERRNO | EPERM);
    filter_put_answer(program, SECCOMP_RET_ALLOW);
}

bh_rc
bh_checkpoint_filter_load(struct bh_err *err)
{
    struct filter_program program = { .count = 0 };
    struct sock_fprog filter = { .filter = program.code };

    filter_put_load(&program, offsetof(struct seccomp_data, arch));
    filter_put(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    filter_put_answer(&program, SECCOMP_RET_KILL_PROCESS);
    filter_put_load(&program, offsetof(struct seccomp_data, nr));
    filter_put(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    filter_put_answer(&program, SECCOMP_RET_KILL_PROCESS);
    for (size_t i = 0; i < BH_COUNT(refused); i++)
        put_call(&program, (uint32_t)refused[i], SECCOMP_RET_ERRNO | EPERM);
    put_call(&program, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS); /* its flags cannot be read */
    put_socket(&program);
    put_clone(&program);
    filter_put_answer(&program, SECCOMP_RET_ALLOW);
    filter.len = program.count;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0
               ? BH_OK
               : bh_err_errno(err, "load the helper's filter of system calls");
}
