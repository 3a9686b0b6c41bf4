#include "signer/filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/assert.h"

#if defined __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this machine type yet"
#endif

enum { PROGRAM_MAX = 160 };

/* What reading a question, replacing the mark, signing and logging take. */
static const uint32_t allowed[] = {
    SYS_read,         SYS_write,          SYS_openat,      SYS_close,           SYS_fsync,
    SYS_fchmod,       SYS_fstat,          SYS_newfstatat,  SYS_lseek,           SYS_renameat,
    SYS_renameat2,    SYS_unlinkat,       SYS_accept4,     SYS_getsockopt,      SYS_recvfrom,
    SYS_sendto,       SYS_shutdown,       SYS_brk,         SYS_munmap,          SYS_madvise,
    SYS_mremap,       SYS_futex,          SYS_getrandom,   SYS_clock_gettime,   SYS_getpid,
    SYS_rt_sigreturn, SYS_rt_sigprocmask, SYS_sigaltstack, SYS_restart_syscall, SYS_exit,
    SYS_exit_group,
#ifdef SYS_open
    SYS_open,         SYS_rename,         SYS_unlink,
#endif
};

/* Allowed where the third argument asks for no memory that can be executed. */
static const uint32_t maps[] = { SYS_mmap, SYS_mprotect };

struct signer_filter_program {
    struct sock_filter code[PROGRAM_MAX];
    unsigned short count;
};

static void
filter_put(struct signer_filter_program *program, uint16_t code, uint32_t k)
{
    BH_ASSERT(program->count < PROGRAM_MAX);
    program->code[program->count++] = (struct sock_filter){ .code = code, .k = k };
}

/* Return `action` when the test holds for the loaded value, else continue behind it. */
static void
put_return_if(struct signer_filter_program *program, uint16_t test, uint32_t value, uint32_t action)
{
    filter_put(program, (uint16_t)(BPF_JMP | test | BPF_K), value);
    program->code[program->count - 1].jf = 1;
    filter_put(program, BPF_RET | BPF_K, action);
}

static void
filter_put_load(struct signer_filter_program *program, size_t offset)
{
    filter_put(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

static void
put_map(struct signer_filter_program *program, uint32_t number)
{
    filter_put(program, BPF_JMP | BPF_JEQ | BPF_K, number);
    program->code[program->count - 1].jf = 4;
    filter_put_load(program, offsetof(struct seccomp_data, args[2]));
    put_return_if(program, BPF_JSET, PROT_EXEC, SECCOMP_RET_ERRNO | EPERM);
    filter_put(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
}

/* Calls of another machine type (i386, x32) are never its own. */
static void
make_program(struct signer_filter_program *program)
{
    filter_put_load(program, offsetof(struct seccomp_data, arch));
    filter_put(program, BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH);
    program->code[program->count - 1].jt = 1;
    filter_put(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    filter_put_load(program, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < BH_COUNT(allowed); i++)
        put_return_if(program, BPF_JEQ, allowed[i], SECCOMP_RET_ALLOW);
    for (size_t i = 0; i < BH_COUNT(maps); i++)
        put_map(program, maps[i]);
    filter_put(program, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
}

bh_rc
bh_signer_drop(struct bh_err *err)
{
    static const struct rlimit none = { 0, 0 };

    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0
        || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return bh_err_errno(err, "cannot give up rights");
    return BH_OK;
}

bh_rc
bh_signer_filter(struct bh_err *err)
{
    struct signer_filter_program program = { .count = 0 };
    struct sock_fprog filter = { 0, program.code };

    make_program(&program);
    filter.len = program.count;
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) != 0)
        return bh_err_errno(err, "cannot set the system call filter");
    return BH_OK;
}
