/* Modules and libraries: any image is taken; what a kernel does is in its name. */
#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cuda/work/code.h"
#include "sim/cuda/work/graph.h"

#define MODULE_MAGIC 0x42484d44u
#define FUNCTION_MAGIC 0x4248464eu
#define UNKNOWN_NS 5000u /* a kernel whose name says nothing */
#define PTX_MAX (1u << 20)
#define IMAGE_MAX (64u << 20)

/* CUkernel and CUfunction are one here, as are CUlibrary and CUmodule. */
struct CUfunc_st {
    uint32_t magic;
    bool burns; /* for as many ns as its first parameter says */
    uint8_t sms;
    struct CUmod_st *module;
    struct CUfunc_st *next;
    uint64_t cost_ns;
    char name[];
};

/* A context that it takes memory of. */
struct loaded {
    struct loaded *next;
    struct CUctx_st *context;
    uint64_t id;
    size_t bytes;
};

struct CUmod_st {
    uint32_t magic;
    bool library; /* comes into a context when a kernel of it is used there */
    char *ptx;    /* NULL: an image that is not read */
    size_t bytes; /* on the device, of a library */
    struct loaded *loaded;
    struct CUfunc_st *functions;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- images ---- */

static struct CUmod_st *
make_module(const char *image, size_t bytes, bool library)
{
    struct CUmod_st *module = calloc(1, sizeof(*module));

    if (module == NULL)
        return NULL;
    *module = (struct CUmod_st){ .magic = MODULE_MAGIC, .library = library, .bytes = bytes };
    if (sim_image_is_text(image)) /* PTX names the kernels */
        module->ptx = strndup(image, PTX_MAX);
    return module;
}

static void
free_module(struct CUmod_st *module)
{
    free(module->ptx);
    free(module);
}

/* ---- in contexts ---- */

static unsigned
module_capability_of(CUdevice device)
{
    int major = 0, minor = 0;

    (void)cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    (void)cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
    return (unsigned)(major * 10 + minor);
}

/* Under the lock. */
static CUresult
module_load_into(struct CUmod_st *module, struct CUctx_st *context)
{
    struct loaded *loaded = module->loaded;
    CUresult rc;

    while (loaded != NULL && (loaded->context != context || loaded->id != context->id))
        loaded = loaded->next;
    if (loaded != NULL)
        return CUDA_SUCCESS;
    loaded = calloc(1, sizeof(*loaded));
    if (loaded == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    rc = sim_code_take(context, module->bytes);
    if (rc != CUDA_SUCCESS) {
        free(loaded);
        return rc;
    }
    *loaded = (struct loaded){ module->loaded, context, context->id, module->bytes };
    module->loaded = loaded;
    return CUDA_SUCCESS;
}

static void
module_unload(struct CUmod_st *module)
{
    while (module->loaded != NULL) {
        struct loaded *loaded = module->loaded;

        if (sim_cuda_is_context(loaded->context) && loaded->context->id == loaded->id)
            sim_code_give(loaded->context, loaded->bytes);
        module->loaded = loaded->next;
        free(loaded);
    }
}

/* A kernel of a library is used: its context has the library from now on. */
static CUresult
module_use(struct CUmod_st *module)
{
    struct CUctx_st *context;
    CUresult rc = module->library ? sim_cuda_current(&context) : CUDA_ERROR_INVALID_VALUE;

    if (!module->library || rc != CUDA_SUCCESS)
        return module->library ? rc : CUDA_SUCCESS;
    pthread_mutex_lock(&lock);
    rc = module_load_into(module, context);
    pthread_mutex_unlock(&lock);
    return rc;
}

/* At most `limit` bytes of the image are there. */
static CUresult
module_load(CUmodule *module, const void *image, size_t limit)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc == CUDA_SUCCESS && (module == NULL || image == NULL))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS)
        rc = sim_cuda_capture_check();
    if (rc != CUDA_SUCCESS)
        return rc;
    *module = make_module(image, sim_image_bytes(image, limit, module_capability_of(context->device)), false);
    if (*module == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    rc = module_load_into(*module, context);
    pthread_mutex_unlock(&lock);
    if (rc != CUDA_SUCCESS)
        free_module(*module);
    return rc;
}

static CUresult
module_read_image(const char *path, char **ret_image)
{
    int fd = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    char *image = fd < 0 ? NULL : calloc(1, IMAGE_MAX + 1);

    if (image != NULL && read(fd, image, IMAGE_MAX) < 0) {
        free(image);
        image = NULL;
    }
    if (fd >= 0)
        close(fd);
    *ret_image = image;
    return image == NULL ? CUDA_ERROR_FILE_NOT_FOUND : CUDA_SUCCESS;
}

CUDA_API CUresult
cuModuleLoad(CUmodule *module, const char *fname)
{
    struct CUctx_st *context;
    char *image = NULL;
    CUresult rc = sim_cuda_current(&context);

    if (rc == CUDA_SUCCESS)
        rc = module_read_image(fname, &image);
    if (rc == CUDA_SUCCESS)
        rc = module_load(module, image, IMAGE_MAX);
    free(image);
    return rc;
}

CUDA_ROW(cuModuleLoadData, (CUmodule * module, const void *image), module_load(module, image, SIZE_MAX))
CUDA_ROW(cuModuleLoadDataEx,
         (CUmodule * module, const void *image, unsigned int num_options, CUjit_option *options,
          void **option_values),
         module_load(module, image, SIZE_MAX))
CUDA_ROW(cuModuleLoadFatBinary, (CUmodule * module, const void *fat_cubin),
         module_load(module, fat_cubin, SIZE_MAX))

static bool
is_module(const struct CUmod_st *module)
{
    return module != NULL && module->magic == MODULE_MAGIC;
}

CUDA_API CUresult
cuModuleUnload(CUmodule hmod)
{
    if (!is_module(hmod))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    hmod->magic = 0;
    while (hmod->functions != NULL) {
        struct CUfunc_st *function = hmod->functions;

        hmod->functions = function->next;
        function->magic = 0;
        free(function);
    }
    module_unload(hmod);
    pthread_mutex_unlock(&lock);
    free_module(hmod);
    return CUDA_SUCCESS;
}

/* ---- kernels ---- */

static bool
module_has_entry(const char *ptx, const char *name)
{
    size_t length = strlen(name);

    for (const char *at = ptx; (at = strstr(at, ".entry")) != NULL;) {
        at += strlen(".entry");
        while (isspace((unsigned char)*at))
            at++;
        if (strncmp(at, name, length) == 0 && !isalnum((unsigned char)at[length]) && at[length] != '_')
            return true;
    }
    return false;
}

static bool
module_parse_unit(const char **text, uint64_t *ret_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        size_t length = strlen(units[i].name);

        if (strncmp(*text, units[i].name, length) != 0)
            continue;
        *text += length;
        *ret_ns = units[i].ns;
        return true;
    }
    return false;
}

/* "k_500us", "k_2us_sm50".  Unchanged: the name says nothing. */
static void
module_parse_name(struct CUfunc_st *function)
{
    char *end;
    const char *text;
    unsigned long long number;
    uint64_t unit_ns;

    function->burns = strcmp(function->name, "burn") == 0;
    if (strncmp(function->name, "k_", 2) != 0 || !isdigit((unsigned char)function->name[2]))
        return;
    number = strtoull(function->name + 2, &end, 10);
    text = end;
    if (!module_parse_unit(&text, &unit_ns) || number > UINT64_MAX / 4 / unit_ns)
        return;
    function->cost_ns = number * unit_ns;
    if (strncmp(text, "_sm", 3) == 0 && isdigit((unsigned char)text[3])) {
        number = strtoull(text + 3, NULL, 10);
        function->sms = number >= 1 && number <= SIM_TASK_ALL_SMS ? (uint8_t)number : 0;
    }
}

static CUresult
module_find_function(struct CUmod_st *module, const char *name, CUfunction *ret_function)
{
    struct CUfunc_st *function;

    for (function = module->functions; function != NULL; function = function->next)
        if (strcmp(function->name, name) == 0) {
            *ret_function = function;
            return CUDA_SUCCESS;
        }
    if (module->ptx != NULL && !module_has_entry(module->ptx, name))
        return CUDA_ERROR_NOT_FOUND;
    function = calloc(1, sizeof(*function) + strlen(name) + 1);
    if (function == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *function = (struct CUfunc_st){
        .magic = FUNCTION_MAGIC, .module = module, .next = module->functions, .cost_ns = UNKNOWN_NS
    };
    memcpy(function->name, name, strlen(name) + 1);
    module_parse_name(function);
    module->functions = function;
    *ret_function = function;
    return CUDA_SUCCESS;
}

static CUresult
module_get_function(struct CUmod_st *module, const char *name, CUfunction *ret_function)
{
    CUresult rc;

    if (ret_function == NULL || name == NULL || name[0] == '\0')
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_module(module))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    rc = module_find_function(module, name, ret_function);
    pthread_mutex_unlock(&lock);
    return rc;
}

CUDA_ROW(cuModuleGetFunction, (CUfunction * function, CUmodule hmod, const char *name),
         module_get_function(hmod, name, function))

/* No image has variables here. */
CUDA_API CUresult
cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule hmod, const char *name)
{
    if (!is_module(hmod))
        return CUDA_ERROR_INVALID_HANDLE;
    return name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_FOUND;
}

CUDA_API CUresult
cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    if (mode == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

static bool
module_is_function(const struct CUfunc_st *function)
{
    return function != NULL && function->magic == FUNCTION_MAGIC;
}

/* The first parameter, as an array of pointers or packed behind the marker 1. */
static const void *
module_first_parameter(void **parameters, void **extra)
{
    if (parameters != NULL)
        return parameters[0];
    for (size_t i = 0; extra != NULL && extra[i] != NULL && i < 8; i += 2)
        if (extra[i] == (void *)1)
            return extra[i + 1];
    return NULL;
}

CUresult
sim_kernel_deed(CUfunction function, void **parameters, void **extra, struct sim_deed *ret_deed)
{
    const void *first;
    CUresult rc;

    if (!module_is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    rc = module_use(function->module);
    if (rc != CUDA_SUCCESS)
        return rc;
    *ret_deed = (struct sim_deed){ .type = CU_GRAPH_NODE_TYPE_KERNEL,
                                   .engine = SIM_ENGINE_COMPUTE,
                                   .cost_ns = function->cost_ns,
                                   .sms = function->sms };
    if (!function->burns)
        return CUDA_SUCCESS;
    first = module_first_parameter(parameters, extra);
    if (first == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&ret_deed->cost_ns, first, sizeof(ret_deed->cost_ns));
    return CUDA_SUCCESS;
}

/* ---- libraries: modules without a context ---- */

/* Loading modes do not matter: it is lazy (cuModuleGetLoadingMode). */
static CUresult
module_load_library(CUlibrary *library, const void *image, size_t limit)
{
    if (!sim_cuda_ready())
        return CUDA_ERROR_NOT_INITIALIZED;
    if (library == NULL || image == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    *library = (CUlibrary)make_module(image, sim_image_bytes(image, limit, module_capability_of(0)), true);
    return *library == NULL ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUDA_API CUresult
cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options, void **jit_options_values,
                  unsigned int num_jit_options, CUlibraryOption *library_options,
                  void **library_option_values, unsigned int num_library_options)
{
    return module_load_library(library, code, SIZE_MAX);
}

CUDA_API CUresult
cuLibraryLoadFromFile(CUlibrary *library, const char *file_name, CUjit_option *jit_options,
                      void **jit_options_values, unsigned int num_jit_options,
                      CUlibraryOption *library_options, void **library_option_values,
                      unsigned int num_library_options)
{
    char *image;
    CUresult rc = module_read_image(file_name, &image);

    if (rc == CUDA_SUCCESS)
        rc = module_load_library(library, image, IMAGE_MAX);
    free(image);
    return rc;
}

CUDA_ROW(cuLibraryUnload, (CUlibrary library), cuModuleUnload((CUmodule)library))
CUDA_ROW(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
         module_get_function((CUmodule)library, name, (CUfunction *)kernel))

CUDA_API CUresult
cuLibraryGetModule(CUmodule *mod, CUlibrary library)
{
    if (mod == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_module((CUmodule)library))
        return CUDA_ERROR_INVALID_HANDLE;
    *mod = (CUmodule)library;
    return module_use(*mod);
}

CUDA_API CUresult
cuKernelGetFunction(CUfunction *func, CUkernel kernel)
{
    if (func == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_is_function((CUfunction)kernel))
        return CUDA_ERROR_INVALID_HANDLE;
    *func = (CUfunction)kernel;
    return module_use((*func)->module);
}

/* ---- what is said of a kernel ---- */

CUDA_API CUresult
cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    static const int values[] = { [CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024,
                                  [CU_FUNC_ATTRIBUTE_NUM_REGS] = 32,
                                  [CU_FUNC_ATTRIBUTE_PTX_VERSION] = 80,
                                  [CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90,
                                  [CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152,
                                  [CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1 };

    if (value == NULL || (unsigned)attribute >= sizeof(values) / sizeof(values[0]))
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *value = values[attribute];
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return CUDA_ERROR_INVALID_VALUE;
    return module_is_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUDA_ROW(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config),
         module_is_function(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)

CUDA_API CUresult
cuFuncGetModule(CUmodule *hmod, CUfunction function)
{
    if (hmod == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *hmod = function->module;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuFuncGetName(const char **name, CUfunction function)
{
    if (name == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_is_function(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}

/* Threads alone limit the blocks of a multiprocessor. */
#define THREADS_PER_SM 2048
#define BLOCK_THREADS 1024

CUDA_API CUresult
cuOccupancyMaxActiveBlocksPerMultiprocessor(int *num_blocks, CUfunction func, int block_size,
                                            size_t dynamic_smem_size)
{
    if (num_blocks == NULL || block_size <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_is_function(func))
        return CUDA_ERROR_INVALID_HANDLE;
    *num_blocks = block_size > BLOCK_THREADS ? 0 : THREADS_PER_SM / block_size;
    if (*num_blocks > 32)
        *num_blocks = 32;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuOccupancyMaxPotentialBlockSize(int *min_grid_size, int *block_size, CUfunction func,
                                 CUoccupancyB2DSize block_size_to_dynamic_smem_size, size_t dynamic_smem_size,
                                 int block_size_limit)
{
    CUdevice device;
    int sms = 0;
    CUresult rc = cuCtxGetDevice(&device);

    if (rc == CUDA_SUCCESS && (min_grid_size == NULL || block_size == NULL))
        rc = CUDA_ERROR_INVALID_VALUE;
    if (rc == CUDA_SUCCESS && !module_is_function(func))
        rc = CUDA_ERROR_INVALID_HANDLE;
    if (rc == CUDA_SUCCESS)
        rc = cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (rc != CUDA_SUCCESS)
        return rc;
    *block_size = block_size_limit > 0 && block_size_limit < BLOCK_THREADS ? block_size_limit : BLOCK_THREADS;
    *min_grid_size = sms * (THREADS_PER_SM / BLOCK_THREADS);
    return CUDA_SUCCESS;
}
