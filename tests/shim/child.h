/* What runs in a child of a test: a check that fails ends it with a line on standard error.
 */
#ifndef BH_SHIM_CHILD_H
#define BH_SHIM_CHILD_H

#include <stdio.h>

#include "bulkhead/cuda_abi.h"

#define CHECK(condition)                                                                                     \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                  \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

/* A sanitizer's runtime must be a program's first library, and the only one of its kind: no
 * program without it can load the library, and no namespace of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

#define GOOD(call) CHECK((call) == CUDA_SUCCESS)

#define MIB (UINT64_C(1) << 20)

/* cuInit and device 0's primary context. */
static inline int
child_begin(void)
{
    CUcontext context;

    GOOD(cuInit(0));
    GOOD(cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cuCtxSetCurrent(context));
    return 0;
}

#define BEGIN()                                                                                              \
    do {                                                                                                     \
        if (child_begin() != 0)                                                                              \
            return 1;                                                                                        \
    } while (0)

#endif
