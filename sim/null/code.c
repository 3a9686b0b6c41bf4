#include "sim/null/code.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
uint64_t bh_null_library_bytes;

/* A context's modules lie in whole units together. */
void
bh_null_code_change(struct CUctx_st *context, uint64_t more, uint64_t less)
{
    uint64_t before, after;

    pthread_mutex_lock(&lock);
    before = bh_null_up(context->code, NULL_UNIT);
    context->code += more - less;
    after = bh_null_up(context->code, NULL_UNIT);
    if (after > before)
        bh_null_take(context->device, after - before);
    else
        bh_null_give(context->device, before - after);
    pthread_mutex_unlock(&lock);
}

void
bh_null_code_begin(struct CUctx_st *context)
{
    context->code = 0;
    bh_null_code_change(context, bh_null_library_bytes, 0);
}

void
bh_null_code_end(struct CUctx_st *context)
{
    bh_null_code_change(context, 0, context->code);
}
