#include "runtime/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "base/assert.h"
#include "base/base64.h"
#include "base/json.h"

#if defined __x86_64__
#define NATIVE_ARCH AUDIT_ARCH_X86_64
#define NATIVE_OCI "SCMP_ARCH_X86_64"
#elif defined __aarch64__
#define NATIVE_ARCH AUDIT_ARCH_AARCH64
#define NATIVE_OCI "SCMP_ARCH_AARCH64"
#else
#error "no system call filter for this machine type yet"
#endif

enum { X32_BIT = 0x40000000, SOCKET_TYPE = 0xf /* without SOCK_CLOEXEC, SOCK_NONBLOCK */ };
#define NEW_NAMESPACES                                                                                       \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID              \
     | CLONE_NEWNET | 0x80 /* CLONE_NEWTIME */)

enum seccomp_rule {
    RULE_ALLOW,
    RULE_REFUSE,
    RULE_SPLICE,
    RULE_SOCKET,
    RULE_CLONE,
    RULE_PERSONALITY,
    RULE_FADVISE,
    RULES
};

struct seccomp_call {
    uint32_t number;
    enum seccomp_rule rule;
    const char *name;
};

static const struct seccomp_call calls[] = {
#define BH_SYSCALL(name, rule) { SYS_##name, RULE_##rule, #name },
#include "tables/syscalls.tbl"
#undef BH_SYSCALL
};

/* ---- the kernel's program ---- */

struct seccomp_program {
    struct sock_filter *code;
    uint32_t count;
};

static void
seccomp_put(struct seccomp_program *program, struct sock_filter instruction)
{
    BH_ASSERT(program->count < BH_SECCOMP_PROGRAM_MAX);
    program->code[program->count++] = instruction;
}

static void
seccomp_put_load(struct seccomp_program *program, uint32_t offset)
{
    seccomp_put(program, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset));
}

static void
seccomp_put_answer(struct seccomp_program *program, uint32_t action)
{
    seccomp_put(program, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action));
}

/* Skip `skip` instructions unless what was loaded equals `value`. */
static void
seccomp_put_unless(struct seccomp_program *program, uint32_t value, uint8_t skip)
{
    seccomp_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skip));
}

static uint32_t
seccomp_low_word(uint32_t argument)
{
    return (uint32_t)(offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t));
}

static void
seccomp_put_allow_if(struct seccomp_program *program, uint32_t value)
{
    seccomp_put_unless(program, value, 1);
    seccomp_put_answer(program, SECCOMP_RET_ALLOW);
}

/* Other protocols would let any job load kernel modules that are otherwise unused. */
static const struct {
    uint32_t type, protocols[4];
    uint8_t count;
} internet[] = {
    { SOCK_STREAM, { 0, IPPROTO_TCP }, 2 },
    { SOCK_DGRAM, { 0, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6 }, 4 },
};

static void
seccomp_put_internet_rule(struct seccomp_program *program)
{
    seccomp_put_load(program, seccomp_low_word(1));
    seccomp_put(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SOCKET_TYPE));
    for (size_t i = 0; i < BH_COUNT(internet); i++) {
        seccomp_put_unless(program, internet[i].type, (uint8_t)(2 + 2 * internet[i].count));
        seccomp_put_load(program, seccomp_low_word(2));
        for (uint8_t p = 0; p < internet[i].count; p++)
            seccomp_put_allow_if(program, internet[i].protocols[p]);
        seccomp_put_answer(program, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
    }
    seccomp_put_answer(program, SECCOMP_RET_ERRNO | EPROTONOSUPPORT);
}

/* The kernel reads the family, the type and the protocol as int: the low words decide. */
static void
seccomp_put_socket_rule(struct seccomp_program *program)
{
    seccomp_put_load(program, seccomp_low_word(0));
    seccomp_put_allow_if(program, AF_UNIX);
    seccomp_put_unless(program, AF_NETLINK, 4);
    seccomp_put_load(program, seccomp_low_word(2));
    seccomp_put_allow_if(program, 0);
    seccomp_put_answer(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    seccomp_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET, 2, 0));
    seccomp_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 1, 0));
    seccomp_put_answer(program, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
    seccomp_put_internet_rule(program);
}

static void
seccomp_put_clone_rule(struct seccomp_program *program)
{
    seccomp_put_load(program, seccomp_low_word(0));
    seccomp_put(program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1));
    seccomp_put_answer(program, SECCOMP_RET_ERRNO | EPERM);
    seccomp_put_answer(program, SECCOMP_RET_ALLOW);
}

/* All but POSIX_FADV_DONTNEED. */
static const uint32_t advices[] = { POSIX_FADV_NORMAL, POSIX_FADV_RANDOM, POSIX_FADV_SEQUENTIAL,
                                    POSIX_FADV_WILLNEED, POSIX_FADV_NOREUSE };

static void
seccomp_put_personality_rule(struct seccomp_program *program)
{
    seccomp_put_load(program, seccomp_low_word(0));
    seccomp_put_allow_if(program, 0);
    seccomp_put_allow_if(program, UINT32_MAX);
    seccomp_put_answer(program, SECCOMP_RET_ERRNO | EPERM);
}

static void
seccomp_put_fadvise_rule(struct seccomp_program *program)
{
    seccomp_put_load(program, seccomp_low_word(3));
    for (size_t i = 0; i < BH_COUNT(advices); i++)
        seccomp_put_allow_if(program, advices[i]);
    seccomp_put_answer(program, SECCOMP_RET_ERRNO | EPERM);
}

static bool
seccomp_is_allowed(enum seccomp_rule rule, enum bh_seccomp_profile profile)
{
    return rule == RULE_ALLOW || (rule == RULE_SPLICE && profile == BH_SECCOMP_DEFAULT);
}

static void
seccomp_put_rule(struct seccomp_program *program, enum seccomp_rule rule, enum bh_seccomp_profile profile)
{
    static void (*const special[RULES])(struct seccomp_program *) = {
        [RULE_SOCKET] = seccomp_put_socket_rule,
        [RULE_CLONE] = seccomp_put_clone_rule,
        [RULE_PERSONALITY] = seccomp_put_personality_rule,
        [RULE_FADVISE] = seccomp_put_fadvise_rule,
    };

    if (special[rule])
        special[rule](program);
    else
        seccomp_put_answer(program, seccomp_is_allowed(rule, profile) ? SECCOMP_RET_ALLOW
                                    : rule == RULE_SPLICE             ? SECCOMP_RET_ERRNO | (uint32_t)ENOSYS
                                                                      : SECCOMP_RET_ERRNO | (uint32_t)EPERM);
}

static int
seccomp_by_number(const void *a, const void *b)
{
    uint32_t x = ((const struct seccomp_call *)a)->number, y = ((const struct seccomp_call *)b)->number;

    return x < y ? -1 : x > y;
}

/* Neighbouring numbers under one rule are one range: low <= number <= high. */
static void
seccomp_put_ranges(struct seccomp_program *program, const struct seccomp_call *sorted, size_t count,
                   enum bh_seccomp_profile profile)
{
    for (size_t first = 0, last; first < count; first = last + 1) {
        uint32_t body;

        for (last = first; last + 1 < count && sorted[last + 1].rule == sorted[first].rule
                           && sorted[last + 1].number == sorted[last].number + 1;)
            last++;
        seccomp_put(program,
                    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, sorted[first].number, 0, 0));
        seccomp_put(program,
                    (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, sorted[last].number, 0, 0));
        body = program->count;
        seccomp_put_rule(program, sorted[first].rule, profile);
        BH_ASSERT(program->count - body < UINT8_MAX);
        program->code[body - 2].jf = (uint8_t)(program->count - body + 1);
        program->code[body - 1].jt = (uint8_t)(program->count - body);
    }
}

uint32_t
bh_seccomp_program(enum bh_seccomp_profile profile, struct sock_filter ret_program[BH_SECCOMP_PROGRAM_MAX])
{
    struct seccomp_program program = { ret_program, 0 };
    struct seccomp_call sorted[BH_COUNT(calls)];

    for (size_t i = 0; i < BH_COUNT(calls); i++)
        sorted[i] = calls[i];
    qsort(sorted, BH_COUNT(calls), sizeof sorted[0], seccomp_by_number);

    seccomp_put_load(&program, offsetof(struct seccomp_data, arch));
    seccomp_put(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NATIVE_ARCH, 1, 0));
    seccomp_put_answer(&program, SECCOMP_RET_KILL_PROCESS);
    seccomp_put_load(&program, offsetof(struct seccomp_data, nr));
    seccomp_put(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1));
    seccomp_put_answer(&program, SECCOMP_RET_KILL_PROCESS);
    seccomp_put_ranges(&program, sorted, BH_COUNT(calls), profile);
    seccomp_put_answer(&program, SECCOMP_RET_ERRNO | ENOSYS);
    return program.count;
}

void
bh_seccomp_put_base64(enum bh_seccomp_profile profile, struct bh_buf *out)
{
    struct sock_filter program[BH_SECCOMP_PROGRAM_MAX];
    uint32_t count = bh_seccomp_program(profile, program);

    bh_base64_encode(out, program, count * sizeof program[0]);
}

/* ---- the OCI object ---- */

static void
seccomp_put_names(struct bh_json_writer *w, enum seccomp_rule rule)
{
    bh_json_open(w, "names", '[');
    for (size_t i = 0; i < BH_COUNT(calls); i++) {
        if (calls[i].rule == rule)
            bh_json_str(w, NULL, calls[i].name);
    }
    bh_json_close(w, ']');
}

struct condition {
    uint32_t argument;
    uint64_t value, mask; /* mask 0: equal */
};

static void
seccomp_put_oci_rule(struct bh_json_writer *w, enum seccomp_rule rule, const struct condition *conditions,
                     size_t count)
{
    bh_json_open(w, NULL, '{');
    seccomp_put_names(w, rule);
    bh_json_str(w, "action", rule == RULE_REFUSE ? "SCMP_ACT_ERRNO" : "SCMP_ACT_ALLOW");
    if (rule == RULE_REFUSE)
        bh_json_u64(w, "errnoRet", EPERM);
    if (count > 0)
        bh_json_open(w, "args", '[');
    for (size_t i = 0; i < count; i++) {
        bool masked = conditions[i].mask != 0;

        bh_json_open(w, NULL, '{');
        bh_json_u64(w, "index", conditions[i].argument);
        bh_json_u64(w, "value", masked ? conditions[i].mask : conditions[i].value);
        if (masked)
            bh_json_u64(w, "valueTwo", conditions[i].value);
        bh_json_str(w, "op", masked ? "SCMP_CMP_MASKED_EQ" : "SCMP_CMP_EQ");
        bh_json_close(w, '}');
    }
    if (count > 0)
        bh_json_close(w, ']');
    bh_json_close(w, '}');
}

static void
seccomp_put_oci_internet(struct bh_json_writer *w, uint32_t family)
{
    for (size_t i = 0; i < BH_COUNT(internet); i++) {
        for (uint8_t p = 0; p < internet[i].count; p++) {
            const struct condition conditions[] = { { 0, family, 0 },
                                                    { 1, internet[i].type, SOCKET_TYPE },
                                                    { 2, internet[i].protocols[p], 0 } };

            seccomp_put_oci_rule(w, RULE_SOCKET, conditions, BH_COUNT(conditions));
        }
    }
}

void
bh_seccomp_put_oci(enum bh_seccomp_profile profile, struct bh_buf *out)
{
    static const struct {
        enum seccomp_rule rule;
        struct condition conditions[3];
        size_t count;
    } rows[] = {
        { RULE_ALLOW, { { 0 } }, 0 },
        { RULE_REFUSE, { { 0 } }, 0 },
        { RULE_SOCKET, { { 0, AF_UNIX, 0 } }, 1 },
        { RULE_SOCKET, { { 0, AF_NETLINK, 0 }, { 2, 0, 0 } }, 2 },
        { RULE_CLONE, { { 0, 0, NEW_NAMESPACES } }, 1 },
        { RULE_PERSONALITY, { { 0, 0, 0 } }, 1 },
        { RULE_PERSONALITY, { { 0, UINT32_MAX, 0 } }, 1 },
    };
    struct bh_json_writer w = bh_json_begin(out);

    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "defaultAction", "SCMP_ACT_ERRNO");
    bh_json_u64(&w, "defaultErrnoRet", ENOSYS);
    bh_json_open(&w, "architectures", '[');
    bh_json_str(&w, NULL, NATIVE_OCI);
    bh_json_close(&w, ']');
    bh_json_open(&w, "syscalls", '[');
    for (size_t i = 0; i < BH_COUNT(rows); i++)
        seccomp_put_oci_rule(&w, rows[i].rule, rows[i].conditions, rows[i].count);
    if (profile == BH_SECCOMP_DEFAULT)
        seccomp_put_oci_rule(&w, RULE_SPLICE, NULL, 0);
    seccomp_put_oci_internet(&w, AF_INET);
    seccomp_put_oci_internet(&w, AF_INET6);
    for (size_t i = 0; i < BH_COUNT(advices); i++)
        seccomp_put_oci_rule(&w, RULE_FADVISE, &(struct condition){ 3, advices[i], 0 }, 1);
    bh_json_close(&w, ']');
    bh_json_close(&w, '}');
}
