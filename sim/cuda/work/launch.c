/* Launches: kernels as work of known length. */
#include "sim/cuda/work/graph.h"

#define THREADS_MAX 1024u
#define GRID_X_MAX 0x7fffffffu
#define GRID_YZ_MAX 65535u

struct shape {
    unsigned grid[3], block[3];
};

static CUresult
check_shape(const struct shape *shape)
{
    for (unsigned i = 0; i < 3; i++)
        if (shape->grid[i] == 0 || shape->block[i] == 0 || shape->block[i] > THREADS_MAX
            || shape->grid[i] > (i == 0 ? GRID_X_MAX : GRID_YZ_MAX))
            return CUDA_ERROR_INVALID_VALUE;
    return shape->block[0] * shape->block[1] * shape->block[2] > THREADS_MAX ? CUDA_ERROR_INVALID_VALUE
                                                                             : CUDA_SUCCESS;
}

static CUresult
launch_launch(struct sim_stream_name name, CUfunction function, void **parameters, void **extra)
{
    struct sim_deed deed;
    CUresult rc = sim_kernel_deed(function, parameters, extra, &deed);

    return rc == CUDA_SUCCESS ? sim_cuda_do(name, &deed) : rc;
}

#define SHAPE                                                                                                \
    {                                                                                                        \
        { grid_x, grid_y, grid_z },                                                                          \
        {                                                                                                    \
            block_x, block_y, block_z                                                                        \
        }                                                                                                    \
    }
#define SHAPE_PARAMETERS                                                                                     \
    unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x,                     \
        unsigned int block_y, unsigned int block_z, unsigned int shared_bytes

#define LAUNCHES(suffix, own)                                                                                \
    CUDA_API CUresult cuLaunchKernel##suffix(CUfunction function, SHAPE_PARAMETERS, CUstream stream,         \
                                             void **parameters, void **extra)                                \
    {                                                                                                        \
        const struct shape shape = SHAPE;                                                                    \
        CUresult rc = check_shape(&shape);                                                                   \
                                                                                                             \
        (void)shared_bytes;                                                                                  \
        return rc != CUDA_SUCCESS                                                                            \
                   ? rc                                                                                      \
                   : launch_launch((struct sim_stream_name){ stream, own }, function, parameters, extra);    \
    }                                                                                                        \
    CUDA_API CUresult cuLaunchCooperativeKernel##suffix(CUfunction function, SHAPE_PARAMETERS,               \
                                                        CUstream stream, void **parameters)                  \
    {                                                                                                        \
        const struct shape shape = SHAPE;                                                                    \
        CUresult rc = check_shape(&shape);                                                                   \
                                                                                                             \
        (void)shared_bytes;                                                                                  \
        return rc != CUDA_SUCCESS                                                                            \
                   ? rc                                                                                      \
                   : launch_launch((struct sim_stream_name){ stream, own }, function, parameters, NULL);     \
    }                                                                                                        \
    CUDA_API CUresult cuLaunchKernelEx##suffix(const CUlaunchConfig *config, CUfunction function,            \
                                               void **parameters, void **extra)                              \
    {                                                                                                        \
        return launch_config(config, own, function, parameters, extra);                                      \
    }

static CUresult
launch_config(const CUlaunchConfig *config, bool own, CUfunction function, void **parameters, void **extra)
{
    CUresult rc;

    if (config == NULL || (config->numAttrs > 0 && config->attrs == NULL))
        return CUDA_ERROR_INVALID_VALUE;
    rc = check_shape(&(struct shape){ { config->gridDimX, config->gridDimY, config->gridDimZ },
                                      { config->blockDimX, config->blockDimY, config->blockDimZ } });
    if (rc != CUDA_SUCCESS)
        return rc;
    return launch_launch((struct sim_stream_name){ config->hStream, own }, function, parameters, extra);
}

LAUNCHES(, false)
LAUNCHES(_ptsz, true)

CUDA_API CUresult
cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launch_params_list, unsigned int num_devices,
                                     unsigned int flags)
{
    CUresult rc =
        launch_params_list == NULL || num_devices == 0 || flags > 3 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

    for (unsigned i = 0; rc == CUDA_SUCCESS && i < num_devices; i++) {
        const CUDA_LAUNCH_PARAMS *one = &launch_params_list[i];

        rc = check_shape(&(struct shape){ { one->gridDimX, one->gridDimY, one->gridDimZ },
                                          { one->blockDimX, one->blockDimY, one->blockDimZ } });
        if (rc == CUDA_SUCCESS && (one->hStream == NULL || one->hStream == CU_STREAM_LEGACY))
            rc = CUDA_ERROR_INVALID_HANDLE;
    }
    for (unsigned i = 0; rc == CUDA_SUCCESS && i < num_devices; i++)
        rc = launch_launch((struct sim_stream_name){ launch_params_list[i].hStream, false },
                           launch_params_list[i].function, launch_params_list[i].kernelParams, NULL);
    return rc;
}

/* ---- calls of CUDA 1 to 3: parameters were set by calls that are gone ---- */

static CUresult
launch_old(CUfunction function, CUstream stream)
{
    static uint64_t nothing;
    void *parameters[] = { &nothing };

    return launch_launch((struct sim_stream_name){ stream, false }, function, parameters, NULL);
}

CUDA_ROW(cuLaunch, (CUfunction function), launch_old(function, NULL))
CUDA_ROW(cuLaunchGrid, (CUfunction function, int grid_width, int grid_height),
         grid_width <= 0 || grid_height <= 0 ? CUDA_ERROR_INVALID_VALUE : launch_old(function, NULL))
CUDA_ROW(cuLaunchGridAsync, (CUfunction function, int grid_width, int grid_height, CUstream stream),
         grid_width <= 0 || grid_height <= 0 ? CUDA_ERROR_INVALID_VALUE : launch_old(function, stream))
