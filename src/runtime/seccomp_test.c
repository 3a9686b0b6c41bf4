#include "runtime/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/json.h"
#include "base/test.h"

#if defined __x86_64__
#define NATIVE AUDIT_ARCH_X86_64
#else
#define NATIVE AUDIT_ARCH_AARCH64
#endif

/* Run the program as the kernel would: the few instructions that it is made of. */
static uint32_t
judge_in(enum bh_seccomp_profile profile, const struct seccomp_data *call)
{
    static struct sock_filter program[BH_SECCOMP_PROGRAM_MAX];
    uint32_t count = bh_seccomp_program(profile, program), value = 0;

    for (uint32_t at = 0; at < count; at++) {
        const struct sock_filter *code = &program[at];
        bool yes = false;

        switch (code->code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(code->k + 4 <= sizeof *call);
            memcpy(&value, (const char *)call + code->k, 4);
            continue;
        case BPF_RET | BPF_K:
            return code->k;
        case BPF_ALU | BPF_AND | BPF_K:
            value &= code->k;
            continue;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = value == code->k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = value >= code->k;
            break;
        case BPF_JMP | BPF_JGT | BPF_K:
            yes = value > code->k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (value & code->k) != 0;
            break;
        default:
            fail_msg("unknown instruction %x", code->code);
        }
        at += yes ? code->jt : code->jf;
    }
    fail_msg("ran past the end");
    return 0;
}

static uint32_t
seccomp_test_judge(const struct seccomp_data *call)
{
    return judge_in(BH_SECCOMP_DEFAULT, call);
}

#define REFUSED(number) (SECCOMP_RET_ERRNO | (number))

static void
test_verdicts(void **state)
{
    static const struct {
        const char *name;
        struct seccomp_data call;
        uint32_t verdict;
    } cases[] = {
        { "read", { .nr = SYS_read, .arch = NATIVE }, SECCOMP_RET_ALLOW },
        { "mount", { .nr = SYS_mount, .arch = NATIVE }, REFUSED(EPERM) },
        { "bpf", { .nr = SYS_bpf, .arch = NATIVE }, REFUSED(EPERM) },
        { "ptrace", { .nr = SYS_ptrace, .arch = NATIVE }, REFUSED(EPERM) },
        { "keyctl", { .nr = SYS_keyctl, .arch = NATIVE }, REFUSED(EPERM) },
        { "clone3", { .nr = SYS_clone3, .arch = NATIVE }, REFUSED(ENOSYS) },
        { "io_uring", { .nr = SYS_io_uring_setup, .arch = NATIVE }, REFUSED(ENOSYS) },
        { "memfd_secret", { .nr = 447, .arch = NATIVE }, REFUSED(ENOSYS) },
        { "a call to come", { .nr = 5000, .arch = NATIVE }, REFUSED(ENOSYS) },
        { "another machine", { .nr = SYS_read, .arch = AUDIT_ARCH_I386 }, SECCOMP_RET_KILL_PROCESS },
        { "x32", { .nr = 0x40000000 | SYS_read, .arch = NATIVE }, SECCOMP_RET_KILL_PROCESS },
        { "fork", { .nr = SYS_clone, .arch = NATIVE, .args = { 17 } }, SECCOMP_RET_ALLOW },
        { "thread", { .nr = SYS_clone, .arch = NATIVE, .args = { 0x3d0f00 } }, SECCOMP_RET_ALLOW },
        { "new user namespace",
          { .nr = SYS_clone, .arch = NATIVE, .args = { CLONE_NEWUSER } },
          REFUSED(EPERM) },
        { "new network", { .nr = SYS_clone, .arch = NATIVE, .args = { CLONE_NEWNET | 17 } }, REFUSED(EPERM) },
        { "unix", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_UNIX } }, SECCOMP_RET_ALLOW },
        { "tcp",
          { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET, 1 | 02000000, 6 } },
          SECCOMP_RET_ALLOW },
        { "tcp6", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET6, 1, 0 } }, SECCOMP_RET_ALLOW },
        { "udp", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET, 2, 17 } }, SECCOMP_RET_ALLOW },
        { "ping",
          { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET6, 2 | 04000, 58 } },
          SECCOMP_RET_ALLOW },
        { "sctp",
          { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET, 1, 132 } },
          REFUSED(EPROTONOSUPPORT) },
        { "mptcp",
          { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET6, 1, 262 } },
          REFUSED(EPROTONOSUPPORT) },
        { "dccp", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET, 6, 0 } }, REFUSED(EPROTONOSUPPORT) },
        { "raw", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_INET, 3, 1 } }, REFUSED(EPROTONOSUPPORT) },
        { "aio", { .nr = SYS_io_setup, .arch = NATIVE }, REFUSED(ENOSYS) },
        { "route", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_NETLINK, 3, 0 } }, SECCOMP_RET_ALLOW },
        { "netfilter",
          { .nr = SYS_socket, .arch = NATIVE, .args = { AF_NETLINK, 3, 12 } },
          REFUSED(EAFNOSUPPORT) },
        { "alg", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_ALG } }, REFUSED(EAFNOSUPPORT) },
        { "vsock", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_VSOCK } }, REFUSED(EAFNOSUPPORT) },
        { "packet", { .nr = SYS_socket, .arch = NATIVE, .args = { AF_PACKET } }, REFUSED(EAFNOSUPPORT) },
        { "high bits do not hide",
          { .nr = SYS_socket, .arch = NATIVE, .args = { UINT64_C(1) << 32 | AF_ALG } },
          REFUSED(EAFNOSUPPORT) },
        { "pair of packets",
          { .nr = SYS_socketpair, .arch = NATIVE, .args = { AF_PACKET } },
          REFUSED(EAFNOSUPPORT) },
        { "plain personality", { .nr = SYS_personality, .arch = NATIVE, .args = { 0 } }, SECCOMP_RET_ALLOW },
        { "asking", { .nr = SYS_personality, .arch = NATIVE, .args = { UINT32_MAX } }, SECCOMP_RET_ALLOW },
        { "no randomisation",
          { .nr = SYS_personality, .arch = NATIVE, .args = { 0x40000 } },
          REFUSED(EPERM) },
    };

    for (size_t i = 0; i < BH_COUNT(cases); i++)
        BH_CHECK_EQ(cases[i].name, seccomp_test_judge(&cases[i].call), cases[i].verdict);
    BH_CHECK_DONE();
}

/* Each row of the table is decided by its own rule, whatever its neighbours are. */
static void
test_every_row(void **state)
{
    enum { RULE_ALLOW, RULE_REFUSE, RULE_SPLICE, RULE_SOCKET, RULE_CLONE, RULE_PERSONALITY, RULE_FADVISE };
    static const struct {
        const char *name;
        int number, rule;
    } rows[] = {
#define BH_SYSCALL(name, rule) { #name, SYS_##name, RULE_##rule },
#include "tables/syscalls.tbl"
#undef BH_SYSCALL
    };
    bool listed[1024] = { false };

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        struct seccomp_data call = { .nr = rows[i].number, .arch = NATIVE };

        BH_CHECK(rows[i].name, !listed[rows[i].number]);
        listed[rows[i].number] = true;
        if (rows[i].rule == RULE_ALLOW || rows[i].rule == RULE_REFUSE)
            BH_CHECK_EQ(rows[i].name, seccomp_test_judge(&call),
                        rows[i].rule == RULE_ALLOW ? SECCOMP_RET_ALLOW : REFUSED(EPERM));
    }
    for (int number = 0; number < 1024; number++) {
        struct seccomp_data call = { .nr = number, .arch = NATIVE };

        if (!listed[number])
            BH_CHECK_EQ("not listed", seccomp_test_judge(&call), REFUSED(ENOSYS));
    }
    BH_CHECK_DONE();
}

/* All advice but to forget: all programs share the page cache. */
static void
test_advice(void **state)
{
    for (uint32_t advice = 0; advice < 8; advice++) {
        struct seccomp_data call = { .nr = SYS_fadvise64, .arch = NATIVE, .args = { 3, 0, 0, advice } };

        BH_CHECK_EQ("advice", seccomp_test_judge(&call),
                    advice == POSIX_FADV_DONTNEED || advice > POSIX_FADV_NOREUSE ? REFUSED(EPERM)
                                                                                 : SECCOMP_RET_ALLOW);
    }
    BH_CHECK_DONE();
}

/* The family by which page cache was written over. */
static void
test_strict(void **state)
{
    static const int calls[] = { SYS_splice, SYS_vmsplice, SYS_tee };

    for (size_t i = 0; i < BH_COUNT(calls); i++) {
        struct seccomp_data call = { .nr = calls[i], .arch = NATIVE };

        BH_CHECK_EQ("allowed", judge_in(BH_SECCOMP_DEFAULT, &call), SECCOMP_RET_ALLOW);
        BH_CHECK_EQ("missing", judge_in(BH_SECCOMP_STRICT, &call), SECCOMP_RET_ERRNO | ENOSYS);
    }
    BH_CHECK_EQ("the rest is as it was",
                judge_in(BH_SECCOMP_STRICT, &(struct seccomp_data){ .nr = SYS_read, .arch = NATIVE }),
                SECCOMP_RET_ALLOW);
    BH_CHECK_DONE();
}

static void
test_document(void **state)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_buf text;
    struct bh_err err;
    bh_json_value root;

    bh_buf_init(&text, 1 << 20);
    bh_seccomp_put_oci(BH_SECCOMP_DEFAULT, &text);
    assert_int_equal(bh_json_parse(text.bytes, text.length, &json, &err), BH_OK);
    root = bh_json_root(json);
    BH_CHECK_STR("default", bh_json_text(bh_json_get(root, "defaultAction"), ""), "SCMP_ACT_ERRNO");
    BH_CHECK_EQ("one machine type", bh_json_count(bh_json_get(root, "architectures")), 1);
    BH_CHECK_EQ("rules", bh_json_count(bh_json_get(root, "syscalls")), 25);
    bh_buf_fini(&text);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_verdicts), cmocka_unit_test(test_every_row), cmocka_unit_test(test_advice),
    cmocka_unit_test(test_strict),   cmocka_unit_test(test_document),
};

BH_TEST_MAIN(tests)
