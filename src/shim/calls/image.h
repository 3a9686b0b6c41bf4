/* How much device memory an image of code can take: what is charged for a module before the
 * driver loads it.
 *
 * An image is what cuModuleLoadData takes: a cubin, PTX, or a fat binary of several of both,
 * with or without its wrapper.  The vendor does not document their layout; it is read as the
 * tools of CUDA 13.0 write it.  Of a cubin the sections that are loaded count; of PTX, which
 * the driver compiles, its variables and four times its text; of a fat binary the one image
 * that the driver would choose.  Not seen is zeroed memory that a compressed cubin asks for.
 *
 * Nothing is believed: what is not mapped is not read, and what makes no sense counts as
 * BH_IMAGE_UNKNOWN_BYTES. */
#ifndef BH_SHIM_CALLS_IMAGE_H
#define BH_SHIM_CALLS_IMAGE_H

#include <stdint.h>

#define BH_IMAGE_UNKNOWN_BYTES (UINT64_C(2) << 20)

/* Bytes on a device of this compute capability (90: 9.0; 0: not known, the largest image
 * counts). */
uint64_t bh_image_bytes(const void *image, unsigned capability);

/* The same of a file; 0: it cannot be read, and so not be loaded. */
uint64_t bh_image_file_bytes(const char *path, unsigned capability);

#endif
