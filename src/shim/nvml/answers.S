/* Calls that the view answers with one word, whatever they are given. */
.macro answer name, with
    .globl \name
    .type \name, %function
    .balign 16
\name:
#if defined(__x86_64__)
    endbr64
    jmp \with
#else
    hint 34 /* bti c */
    b \with
#endif
    .size \name, . - \name
.endm

    .text
#define VIEW_OWN(name)
#define VIEW_REFUSED(name) answer name, bh_nvml_refused;
#define VIEW_HIDDEN(name) answer name, bh_nvml_hidden;
#include "tables/nvml_view.tbl"

    .section .note.GNU-stack, "", %progbits
