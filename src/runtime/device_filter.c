#include "runtime/device_filter.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

struct device_filter_program {
    struct bpf_insn *code;
    uint32_t count;
};

static void
device_filter_put(struct device_filter_program *program, struct bpf_insn instruction)
{
    BH_ASSERT(program->count < BH_DEVICE_FILTER_MAX);
    program->code[program->count++] = instruction;
}

/* r0 = value; exit: 1 allows, 0 refuses */
static void
device_filter_put_answer(struct device_filter_program *program, int value)
{
    device_filter_put(program,
                      (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = value });
    device_filter_put(program, (struct bpf_insn){ .code = BPF_JMP | BPF_EXIT });
}

static void
device_filter_put_load(struct device_filter_program *program, uint8_t to, int16_t offset)
{
    device_filter_put(
        program, (struct bpf_insn){
                     .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = to & 0xf, .src_reg = 1, .off = offset });
}

/* Leave this device's rule, `skip` instructions on, unless register == value. */
static void
put_unless(struct device_filter_program *program, uint8_t reg, uint32_t value, int16_t skip)
{
    device_filter_put(program, (struct bpf_insn){ .code = BPF_JMP | BPF_JNE | BPF_K,
                                                  .dst_reg = reg & 0xf,
                                                  .off = skip,
                                                  .imm = (int32_t)value });
}

/* r2 type, r3 access, r4 major, r5 minor */
static void
put_rule(struct device_filter_program *program, const struct bh_sandbox_device *device)
{
    int16_t rest = (int16_t)(2 + (device->write ? 0 : 1) + (device->minor == BH_DEVICE_ANY_MINOR ? 0 : 1));

    put_unless(program, 4, device->major, rest--);
    if (device->minor != BH_DEVICE_ANY_MINOR)
        put_unless(program, 5, device->minor, rest--);
    if (!device->write)
        device_filter_put(program, (struct bpf_insn){ .code = BPF_JMP | BPF_JSET | BPF_K,
                                                      .dst_reg = 3,
                                                      .off = rest,
                                                      .imm = BPF_DEVCG_ACC_WRITE });
    device_filter_put_answer(program, 1);
}

uint32_t
bh_device_filter_program(const struct bh_sandbox_device *devices, uint32_t count,
                         struct bpf_insn ret_program[BH_DEVICE_FILTER_MAX])
{
    struct device_filter_program program = { ret_program, 0 };

    device_filter_put_load(&program, 2, 0); /* access_type: access << 16 | type */
    device_filter_put(&program,
                      (struct bpf_insn){ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 3, .src_reg = 2 });
    device_filter_put(&program,
                      (struct bpf_insn){ .code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 3, .imm = 16 });
    device_filter_put(&program,
                      (struct bpf_insn){ .code = BPF_ALU64 | BPF_AND | BPF_K, .dst_reg = 2, .imm = 0xffff });
    device_filter_put_load(&program, 4, 4);
    device_filter_put_load(&program, 5, 8);
    /* making a node is never allowed, opening one by the list */
    put_unless(&program, 2, BPF_DEVCG_DEV_CHAR, 2);
    device_filter_put(&program, (struct bpf_insn){ .code = BPF_JMP | BPF_JSET | BPF_K,
                                                   .dst_reg = 3,
                                                   .off = 1,
                                                   .imm = BPF_DEVCG_ACC_MKNOD });
    device_filter_put(&program, (struct bpf_insn){ .code = BPF_JMP | BPF_JA, .off = 2 });
    device_filter_put_answer(&program, 0);
    for (uint32_t i = 0; i < count; i++)
        put_rule(&program, &devices[i]);
    device_filter_put_answer(&program, 0);
    return program.count;
}

bh_rc
bh_device_filter_load(const struct bh_sandbox_device *devices, uint32_t count, int *ret_program,
                      struct bh_err *err)
{
    struct bpf_insn code[BH_DEVICE_FILTER_MAX];
    union bpf_attr load = { 0 };

    load.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
    load.insn_cnt = bh_device_filter_program(devices, count, code);
    load.insns = (uint64_t)(uintptr_t)code;
    load.license = (uint64_t)(uintptr_t) "Apache-2.0";
    *ret_program = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &load, sizeof load);
    return *ret_program < 0 ? bh_err_errno(err, "load a device filter") : BH_OK;
}

bh_rc
bh_device_filter_attach(const char *folder, const struct bh_sandbox_device *devices, uint32_t count,
                        struct bh_err *err)
{
    union bpf_attr attach = { 0 };
    BH_AUTO(bh_fd_close) int group = -1;
    BH_AUTO(bh_fd_close) int program = -1;
    bh_rc rc = bh_device_filter_load(devices, count, &program, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", folder);
    group = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    attach.target_fd = (uint32_t)group;
    attach.attach_bpf_fd = (uint32_t)program;
    attach.attach_type = BPF_CGROUP_DEVICE;
    if (group < 0 || syscall(SYS_bpf, BPF_PROG_ATTACH, &attach, sizeof attach) != 0)
        return bh_err_errno(err, "attach the device filter to %s", folder);
    return BH_OK;
}
