#include "runtime/device_filter.h"

#include "base/test.h"

struct context {
    uint32_t access_type, major, minor;
};

/* Run the program as the kernel would: the few instructions that it is made of. */
static int
device_filter_test_judge(const struct bpf_insn *program, uint32_t count, const struct context *context)
{
    uint64_t regs[11] = { 0 };

    for (uint32_t at = 0; at < count; at++) {
        const struct bpf_insn *code = &program[at];
        uint64_t *to = &regs[code->dst_reg], k = (uint64_t)(int64_t)code->imm;

        switch (code->code) {
        case BPF_LDX | BPF_MEM | BPF_W: {
            uint32_t word;

            assert_true((size_t)code->off + 4 <= sizeof *context);
            memcpy(&word, (const char *)context + code->off, 4);
            *to = word;
            break;
        }
        case BPF_ALU64 | BPF_MOV | BPF_X:
            *to = regs[code->src_reg];
            break;
        case BPF_ALU64 | BPF_MOV | BPF_K:
            *to = k;
            break;
        case BPF_ALU64 | BPF_RSH | BPF_K:
            *to >>= k;
            break;
        case BPF_ALU64 | BPF_AND | BPF_K:
            *to &= k;
            break;
        case BPF_JMP | BPF_JNE | BPF_K:
            at += *to != k ? (uint32_t)code->off : 0;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            at += *to & k ? (uint32_t)code->off : 0;
            break;
        case BPF_JMP | BPF_JA:
            at += (uint32_t)code->off;
            break;
        case BPF_JMP | BPF_EXIT:
            return (int)regs[0];
        default:
            fail_msg("unknown instruction %x", code->code);
        }
    }
    fail_msg("ran past the end");
    return -1;
}

static void
test_verdicts(void **state)
{
    static const struct bh_sandbox_device devices[] = {
        { "null", 1, 3, true },
        { "pts", 136, BH_DEVICE_ANY_MINOR, true },
        { "nvidia0", 195, 0, true },
        { "cap", 235, 66, false },
    };
    static const struct {
        const char *name;
        uint32_t type, access, major, minor;
        int allowed;
    } cases[] = {
        { "null", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE, 1, 3, 1 },
        { "zero is not listed", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 1, 5, 0 },
        { "any terminal", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 136, 17, 1 },
        { "the lent GPU", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_WRITE, 195, 0, 1 },
        { "another GPU", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 195, 1, 0 },
        { "modeset", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 195, 254, 0 },
        { "capability to read", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 235, 66, 1 },
        { "capability to write", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_WRITE, 235, 66, 0 },
        { "another capability", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_READ, 235, 1, 0 },
        { "making a node", BPF_DEVCG_DEV_CHAR, BPF_DEVCG_ACC_MKNOD, 1, 3, 0 },
        { "a disk", BPF_DEVCG_DEV_BLOCK, BPF_DEVCG_ACC_READ, 1, 3, 0 },
    };
    static struct bpf_insn program[BH_DEVICE_FILTER_MAX];
    uint32_t count = bh_device_filter_program(devices, BH_COUNT(devices), program);

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct context context = { cases[i].access << 16 | cases[i].type, cases[i].major, cases[i].minor };

        BH_CHECK_EQ(cases[i].name, device_filter_test_judge(program, count, &context), cases[i].allowed);
    }
    BH_CHECK_DONE();
}

/* Of the drivers' majors nothing opens but what is listed, whatever the minor. */
static void
test_every_minor(void **state)
{
    static const struct bh_sandbox_device devices[] = { { "nvidia2", 195, 2, true },
                                                        { "ctl", 195, 255, true },
                                                        { "cap", 235, 66, false } };
    static const uint32_t majors[] = { 1, 4, 5, 10, 195, 234, 235, 236, 240 };
    static struct bpf_insn program[BH_DEVICE_FILTER_MAX];
    uint32_t count = bh_device_filter_program(devices, BH_COUNT(devices), program), opened = 0;

    for (size_t m = 0; m < BH_COUNT(majors); m++)
        for (uint32_t minor = 0; minor < 4096; minor++) {
            struct context context = { BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_CHAR, majors[m], minor };

            opened += device_filter_test_judge(program, count, &context) == 1;
        }
    BH_CHECK_EQ("so many open", opened, BH_COUNT(devices));
    BH_CHECK_DONE();
}

static void
test_nothing_listed(void **state)
{
    static struct bpf_insn program[BH_DEVICE_FILTER_MAX];
    struct context context = { BPF_DEVCG_ACC_READ << 16 | BPF_DEVCG_DEV_CHAR, 1, 3 };

    BH_CHECK_EQ("refused",
                device_filter_test_judge(program, bh_device_filter_program(NULL, 0, program), &context), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(test_verdicts),
    cmocka_unit_test(test_every_minor),
    cmocka_unit_test(test_nothing_listed),
};

BH_TEST_MAIN(tests)
