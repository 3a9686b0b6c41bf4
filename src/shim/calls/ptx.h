/* The variables of PTX: how much memory those take that the text declares. */
#ifndef BH_SHIM_CALLS_PTX_H
#define BH_SHIM_CALLS_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zero at first. */
struct bh_ptx {
    uint64_t read;      /* bytes of text so far */
    uint64_t variables; /* bytes that its variables take; UINT64_MAX: more than there is */
    /* the statement that is being read, as far as it says something */
    unsigned length, word; /* of it; of its last word */
    bool skips;            /* what comes until its end says nothing */
    bool slash;            /* the last character was one */
    bool commented;        /* to the end of the line */
    char statement[256];
};

/* The next part of the text.  False: it ended here, with a zero. */
bool bh_ptx_read(struct bh_ptx *ptx, const char *text, size_t bytes);

#endif
