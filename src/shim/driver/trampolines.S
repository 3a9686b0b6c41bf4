/* The names of a library of the driver's, each a jump to where its slot points: those of
 * SHIM_NAMES, or those of libcuda.so.1.
 *
 * A slot first points to a few instructions that look the call up in the driver's library,
 * fill the slot and go on there, with every argument as it came.  The names are weak: a call
 * that another file defines takes the name, and its slot is how the hook reaches the driver. */
#ifndef SHIM_NAMES
#define SHIM_NAMES "tables/cuda_names.tbl"
#endif

#if defined(__x86_64__)
#define LANDING endbr64
#elif defined(__aarch64__)
#define LANDING hint 34 /* bti c */
#else
#error "the CUDA shim knows x86-64 and aarch64"
#endif

.macro slot name
    .globl bh_real_\name
    .hidden bh_real_\name
    .type bh_real_\name, %object
    .size bh_real_\name, 8
bh_real_\name:
    .quad lazy_\name
.endm

    .data
    .balign 64
    .globl bh_driver_slots
    .hidden bh_driver_slots
    .type bh_driver_slots, %object
bh_driver_slots:
#define CUDA_NAME(name) slot name;
#define NVML_NAME(name) slot name;
#include SHIM_NAMES
#undef CUDA_NAME
#undef NVML_NAME
    .size bh_driver_slots, . - bh_driver_slots

.macro trampoline name
    .weak \name
    .type \name, %function
    .balign 16
\name:
    LANDING
#if defined(__x86_64__)
    jmp *bh_real_\name(%rip)
#else
    adrp x16, bh_real_\name
    ldr x16, [x16, #:lo12:bh_real_\name]
    br x16
#endif
    .size \name, . - \name
    .type lazy_\name, %function
lazy_\name:
    LANDING
#if defined(__x86_64__)
    leaq bh_real_\name(%rip), %r11
    jmp find
#else
    adrp x16, bh_real_\name
    add x16, x16, #:lo12:bh_real_\name
    b find
#endif
    .size lazy_\name, . - lazy_\name
.endm

    .text
#define CUDA_NAME(name) trampoline name;
#define NVML_NAME(name) trampoline name;
#include SHIM_NAMES
#undef CUDA_NAME
#undef NVML_NAME

/* Ask bh_driver_find(slot), which never fails, and jump to what it says. */
    .balign 16
    .type find, %function
find:
    .cfi_startproc
#if defined(__x86_64__)
    pushq %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq %rdi
    pushq %rsi
    pushq %rdx
    pushq %rcx
    pushq %r8
    pushq %r9
    pushq %rax
    pushq %r10
    subq $128, %rsp
    movups %xmm0, (%rsp)
    movups %xmm1, 16(%rsp)
    movups %xmm2, 32(%rsp)
    movups %xmm3, 48(%rsp)
    movups %xmm4, 64(%rsp)
    movups %xmm5, 80(%rsp)
    movups %xmm6, 96(%rsp)
    movups %xmm7, 112(%rsp)
    movq %r11, %rdi
    call bh_driver_find
    movq %rax, %r11
    movups (%rsp), %xmm0
    movups 16(%rsp), %xmm1
    movups 32(%rsp), %xmm2
    movups 48(%rsp), %xmm3
    movups 64(%rsp), %xmm4
    movups 80(%rsp), %xmm5
    movups 96(%rsp), %xmm6
    movups 112(%rsp), %xmm7
    addq $128, %rsp
    popq %r10
    popq %rax
    popq %r9
    popq %r8
    popq %rcx
    popq %rdx
    popq %rsi
    popq %rdi
    popq %rbp
    .cfi_def_cfa %rsp, 8
    jmp *%r11
#else
    stp x29, x30, [sp, #-224]!
    .cfi_def_cfa_offset 224
    .cfi_offset x29, -224
    .cfi_offset x30, -216
    mov x29, sp
    stp x0, x1, [sp, #16]
    stp x2, x3, [sp, #32]
    stp x4, x5, [sp, #48]
    stp x6, x7, [sp, #64]
    str x8, [sp, #80]
    stp q0, q1, [sp, #96]
    stp q2, q3, [sp, #128]
    stp q4, q5, [sp, #160]
    stp q6, q7, [sp, #192]
    mov x0, x16
    bl bh_driver_find
    mov x16, x0
    ldp q0, q1, [sp, #96]
    ldp q2, q3, [sp, #128]
    ldp q4, q5, [sp, #160]
    ldp q6, q7, [sp, #192]
    ldp x0, x1, [sp, #16]
    ldp x2, x3, [sp, #32]
    ldp x4, x5, [sp, #48]
    ldp x6, x7, [sp, #64]
    ldr x8, [sp, #80]
    ldp x29, x30, [sp], #224
    .cfi_def_cfa_offset 0
    br x16
#endif
    .cfi_endproc
    .size find, . - find

    .section .note.GNU-stack, "", %progbits
