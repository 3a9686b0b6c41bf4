/* Device memory of modules: the code and the variables of an image, in each context that it
 * is loaded into. */
#ifndef BH_SIM_CUDA_WORK_CODE_H
#define BH_SIM_CUDA_WORK_CODE_H

#include "sim/cuda/cuda.h"

/* Whether it is PTX, which is text. */
bool sim_image_is_text(const char *image);

/* Bytes that an image takes on a device of this compute capability (90: 9.0): of a cubin the
 * sections that are loaded, of PTX its text and its variables, of a fat binary what fits the
 * device best.  At most `limit` bytes of it are read.  Any other image takes a block of
 * 4 KiB. */
size_t sim_image_bytes(const char *image, size_t limit, unsigned capability);

/* All code of a context lies together in whole pages.  OUT_OF_MEMORY; nothing was taken. */
CUresult sim_code_take(struct CUctx_st *context, size_t bytes);
void sim_code_give(struct CUctx_st *context, size_t bytes);

/* The context ends: all of it.  Under sim_memory_lock(). */
void sim_code_drop(struct CUctx_st *context);

#endif
