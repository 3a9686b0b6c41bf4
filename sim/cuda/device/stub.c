/* Every name that the vendor's library exports, so that a program that links one finds it.
 * Those that no other file defines answer NOT_SUPPORTED. */
#define CUDA_NAME(name)                                                                                      \
    __attribute__((weak, visibility("default"))) int name(void);                                             \
    int name(void)                                                                                           \
    {                                                                                                        \
        return 801;                                                                                          \
    }
#include "tables/cuda_names.tbl"
#undef CUDA_NAME
