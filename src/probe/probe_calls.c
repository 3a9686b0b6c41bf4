#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/io.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "probe/probe.h"

/* Each asks in a way that fails with another error, and harms nothing, where it is allowed. */

int
bh_try_io_uring(const struct bh_targets *targets)
{
    uint32_t params[30] = { 0 };

    return bh_probe_result(syscall(SYS_io_uring_setup, 1, params));
}

int
bh_try_aio(const struct bh_targets *targets)
{
    unsigned long context = 0;

    return bh_probe_result(syscall(SYS_io_setup, 1, &context));
}

int
bh_try_bpf(const struct bh_targets *targets)
{
    union bpf_attr attr = {
        .map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1
    };

    return bh_probe_result(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr));
}

int
bh_try_perf_event(const struct bh_targets *targets)
{
    struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
                                    .size = sizeof attr,
                                    .config = PERF_COUNT_SW_TASK_CLOCK };

    return bh_probe_result(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

BH_TRY(userfaultfd, bh_probe_result(syscall(SYS_userfaultfd, 0)))

int
bh_try_keyctl(const struct bh_targets *targets)
{
    enum { GET_KEYRING_ID = 0, SESSION_KEYRING = -3 };

    return bh_probe_result(syscall(SYS_keyctl, GET_KEYRING_ID, SESSION_KEYRING, 1));
}

int
bh_try_add_key(const struct bh_targets *targets)
{
    enum { PROCESS_KEYRING = -2 };

    return bh_probe_result(syscall(SYS_add_key, "user", "bulkhead-probe", "x", 1, PROCESS_KEYRING));
}

BH_TRY(request_key, bh_probe_result(syscall(SYS_request_key, "user", "bulkhead-probe", NULL, 0)))

int
bh_try_mount(const struct bh_targets *targets)
{
    int fault = bh_probe_result(mount("none", "/tmp", "tmpfs", 0, NULL));

    if (fault == 0)
        umount2("/tmp", MNT_DETACH);
    return fault;
}

BH_TRY(fsopen, bh_probe_result(syscall(SYS_fsopen, "tmpfs", 0)))

int
bh_try_open_tree(const struct bh_targets *targets)
{
    enum { CLONE = 1 };

    return bh_probe_result(syscall(SYS_open_tree, AT_FDCWD, "/", CLONE));
}

BH_TRY(move_mount, bh_probe_result(syscall(SYS_move_mount, -1, "", -1, "", 0)))

int
bh_try_mount_setattr(const struct bh_targets *targets)
{
    uint64_t attr[4] = { 0 };

    return bh_probe_result(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, attr, sizeof attr));
}

BH_TRY(umount, bh_probe_result(umount2("/usr/bin", 0)))
BH_TRY(pivot_root, bh_probe_result(syscall(SYS_pivot_root, "/tmp", "/tmp")))
BH_TRY(chroot, bh_probe_result(chroot("/tmp")))
BH_TRY(unshare_user, bh_probe_result(unshare(CLONE_NEWUSER)))
BH_TRY(unshare_mount, bh_probe_result(unshare(CLONE_NEWNS)))

int
bh_try_clone_user(const struct bh_targets *targets)
{
    long child = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);

    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid((pid_t)child, NULL, 0);
    return bh_probe_result(child);
}

int
bh_try_clone3(const struct bh_targets *targets)
{
    uint64_t arguments[8] = { [0] = CLONE_NEWUSER, [4] = SIGCHLD };
    long child = syscall(SYS_clone3, arguments, sizeof arguments);

    if (child == 0)
        _exit(0);
    if (child > 0)
        waitpid((pid_t)child, NULL, 0);
    return bh_probe_result(child);
}

BH_TRY(setns, bh_probe_result(setns(open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC), CLONE_NEWUTS)))
BH_TRY(ptrace, bh_probe_result(ptrace(PTRACE_TRACEME, 0, NULL, NULL)))

static char nearby[16] = "bulkhead-probe";

int
bh_try_process_vm_read(const struct bh_targets *targets)
{
    char bytes[16];
    struct iovec here = { bytes, sizeof bytes }, there = { nearby, sizeof nearby };

    return bh_probe_result(process_vm_readv(getppid(), &here, 1, &there, 1, 0));
}

int
bh_try_process_vm_write(const struct bh_targets *targets)
{
    struct iovec here = { nearby, sizeof nearby }, there = { nearby, sizeof nearby };

    return bh_probe_result(process_vm_writev(getppid(), &here, 1, &there, 1, 0));
}

int
bh_try_pidfd_getfd(const struct bh_targets *targets)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);

    return bh_probe_result(syscall(SYS_pidfd_getfd, pidfd, 1, 0));
}

int
bh_try_process_madvise(const struct bh_targets *targets)
{
    enum { COLD = 20 };
    int pidfd = (int)syscall(SYS_pidfd_open, getppid(), 0);
    struct iovec there = { nearby, sizeof nearby };

    return bh_probe_result(syscall(SYS_process_madvise, pidfd, &there, 1, COLD, 0));
}

BH_TRY(kcmp, bh_probe_result(syscall(SYS_kcmp, getpid(), getppid(), 1, 0, 0)))

int
bh_try_name_to_handle(const struct bh_targets *targets)
{
    uint32_t handle[36] = { 128 };
    int mount_id;

    return bh_probe_result(syscall(SYS_name_to_handle_at, AT_FDCWD, "/", handle, &mount_id, 0));
}

int
bh_try_open_by_handle(const struct bh_targets *targets)
{
    uint32_t handle[36] = { 8, 1, 2 };

    return bh_probe_result(syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY));
}

BH_TRY(kexec, bh_probe_result(syscall(SYS_kexec_load, 0, 1000, NULL, 0)))
BH_TRY(kexec_file, bh_probe_result(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0)))
BH_TRY(init_module, bh_probe_result(syscall(SYS_init_module, NULL, 0, NULL)))
BH_TRY(finit_module, bh_probe_result(syscall(SYS_finit_module, -1, "", 0)))
BH_TRY(delete_module, bh_probe_result(syscall(SYS_delete_module, "bulkhead_no_such_module", O_NONBLOCK)))
BH_TRY(reboot, bh_probe_result(syscall(SYS_reboot, 0, 0, 0, NULL)))

int
bh_try_set_clock(const struct bh_targets *targets)
{
    struct timex now = { 0 }, same;

    (void)!syscall(SYS_clock_adjtime, 0, &now);
    same = (struct timex){ .modes = ADJ_TICK, .tick = now.tick ? now.tick : 10000 };
    return bh_probe_result(syscall(SYS_clock_adjtime, 0, &same));
}

BH_TRY(personality, bh_probe_result(personality(ADDR_NO_RANDOMIZE)))
BH_TRY(memfd_secret, bh_probe_result(syscall(SYS_memfd_secret, 0)))

int
bh_try_quotactl(const struct bh_targets *targets)
{
    enum { SYNC = 0x800001 };

    return bh_probe_result(syscall(SYS_quotactl, SYNC << 8, "/dev/bulkhead-no-such-disk", 0, NULL));
}

BH_TRY(swapon, bh_probe_result(syscall(SYS_swapon, "/tmp/bulkhead-no-such-file", 0)))
BH_TRY(acct, bh_probe_result(syscall(SYS_acct, "/tmp/bulkhead-no-such-file")))

int
bh_try_syslog(const struct bh_targets *targets)
{
    enum { READ_ALL = 3 };
    char text[64];

    return bh_probe_result(syscall(SYS_syslog, READ_ALL, text, sizeof text));
}

int
bh_try_io_privilege(const struct bh_targets *targets)
{
#ifdef __x86_64__
    return ioperm(0x80, 1, 1) == 0 ? 0 : bh_probe_result(iopl(3));
#else
    return EPERM;
#endif
}

BH_TRY(fanotify, bh_probe_result(syscall(SYS_fanotify_init, 0, O_RDONLY)))

int
bh_try_modify_ldt(const struct bh_targets *targets)
{
#ifdef __x86_64__
    char table[16];

    return bh_probe_result(syscall(SYS_modify_ldt, 0, table, sizeof table));
#else
    return ENOSYS;
#endif
}

BH_TRY(hostname, bh_probe_result(sethostname("bulkhead-probe", 14)))

int
bh_try_real_time(const struct bh_targets *targets)
{
    struct sched_param one = { .sched_priority = 1 };

    /* the C library's own is a stub in a static program with another meaning */
    return bh_probe_result(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &one));
}

BH_TRY(lower_nice, bh_probe_result(setpriority(PRIO_PROCESS, 0, -20)))
BH_TRY(become_root, bh_probe_result(syscall(SYS_setresuid, 0, 0, 0)))

int
bh_try_gain_capability(const struct bh_targets *targets)
{
    struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
    struct __user_cap_data_struct caps[2] = { { .effective = 1U << CAP_SYS_ADMIN,
                                                .permitted = 1U << CAP_SYS_ADMIN } };

    return bh_probe_result(syscall(SYS_capset, &head, caps));
}

int
bh_try_raise_limit(const struct bh_targets *targets)
{
    struct rlimit limit;

    getrlimit(RLIMIT_CORE, &limit);
    if (limit.rlim_max != RLIM_INFINITY)
        return bh_probe_result(setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, limit.rlim_max + 1 }));
    getrlimit(RLIMIT_NOFILE, &limit);
    return bh_probe_result(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 64, limit.rlim_max + 1 }));
}

int
bh_try_call_i386(const struct bh_targets *targets)
{
#ifdef __x86_64__
    long answer = 20; /* getpid */

    __asm__ volatile("int $0x80" : "+a"(answer) : : "memory");
    if (answer < 0)
        errno = (int)-answer;
    return answer < 0 ? errno : 0;
#else
    raise(SIGSYS);
    return 0;
#endif
}

int
bh_try_call_x32(const struct bh_targets *targets)
{
#ifdef __x86_64__
    return bh_probe_result(syscall(0x40000000L + SYS_getpid));
#else
    raise(SIGSYS);
    return 0;
#endif
}
