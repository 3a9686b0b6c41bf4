/* The part of NVIDIA's driver API ABI (CUDA 13) that Bulkhead uses: its calls.
 *
 * Written from the published layout, so that Bulkhead builds without NVIDIA's
 * header.  x86-64 and aarch64 LP64.  The names are the vendor's; the calls are listed in
 * tables/cuda*.tbl.  Used by bulkhead-scrub, which finds each call with dlsym, by the
 * shim, which stands in for some, and by the simulated library, which exports them. */
#ifndef BULKHEAD_CUDA_ABI_H
#define BULKHEAD_CUDA_ABI_H

#include "bulkhead/cuda_work.h"

#define CUDA_CALL(name, base, version, parameters) CUresult name parameters;
#include "tables/cuda.tbl"
#include "tables/cuda_context.tbl"
#include "tables/cuda_memory.tbl"
#include "tables/cuda_work.tbl"
#undef CUDA_CALL

#endif
