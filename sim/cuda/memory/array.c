#include "sim/cuda/memory/array.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cuda/memory/alloc.h"

#define ARRAY_MAGIC 0x42484152u
#define MIPMAP_MAGIC 0x42484d50u
#define LEVELS_MAX 17
#define SIDE_MAX 131072u
#define ALIGNMENT_BYTES 65536u
#define FLAGS_ALL 0xFFu
#define NOT_BACKED (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)

struct CUarray_st {
    uint32_t magic;
    struct CUarray_st *next, *previous;
    struct CUctx_st *context;
    CUmipmappedArray parent; /* whose level it is; NULL: it stands alone */
    CUDA_ARRAY3D_DESCRIPTOR shape;
    uint64_t address; /* of its bytes; 0: it has none */
};

struct CUmipmappedArray_st {
    uint32_t magic;
    struct CUmipmappedArray_st *next, *previous;
    struct CUctx_st *context;
    unsigned levels, flags;
    size_t bytes;
    uint64_t address;
    struct CUarray_st level[LEVELS_MAX];
};

static struct {
    struct CUarray_st *arrays;
    struct CUmipmappedArray_st *mipmaps;
} all;

/* ---- shapes ---- */

static unsigned
array_element_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    }
    return 0;
}

static size_t
array_least_one(size_t side)
{
    return side > 0 ? side : 1;
}

static size_t
array_shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return shape->Width * array_least_one(shape->Height) * array_least_one(shape->Depth) * shape->NumChannels
           * array_element_bytes(shape->Format);
}

static bool
array_is_shape(const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    return shape->Width > 0 && shape->Width <= SIDE_MAX && shape->Height <= SIDE_MAX
           && shape->Depth <= SIDE_MAX && (shape->Depth == 0 || shape->Height > 0 || (shape->Flags & 1u) != 0)
           && array_element_bytes(shape->Format) > 0
           && (shape->NumChannels == 1 || shape->NumChannels == 2 || shape->NumChannels == 4)
           && (shape->Flags & ~FLAGS_ALL) == 0;
}

/* ---- arrays, under the lock ---- */

static bool
is_array(const struct CUarray_st *array)
{
    for (const struct CUarray_st *one = all.arrays; one != NULL; one = one->next)
        if (one == array)
            return true;
    for (const struct CUmipmappedArray_st *one = all.mipmaps; one != NULL; one = one->next)
        if ((uintptr_t)array - (uintptr_t)one->level < sizeof(one->level))
            return array->magic == ARRAY_MAGIC;
    return false;
}

static bool
array_is_mipmap(const struct CUmipmappedArray_st *mipmap)
{
    for (const struct CUmipmappedArray_st *one = all.mipmaps; one != NULL; one = one->next)
        if (one == mipmap)
            return true;
    return false;
}

/* Memory as cuMemAlloc takes it, unless it comes later. */
static CUresult
array_back(struct CUctx_st *context, unsigned flags, size_t bytes, uint64_t *ret_address)
{
    *ret_address = 0;
    return (flags & NOT_BACKED) != 0 ? CUDA_SUCCESS : sim_alloc(context, bytes, false, ret_address);
}

static void
free_array(struct CUarray_st *array)
{
    if (array->previous != NULL)
        array->previous->next = array->next;
    else
        all.arrays = array->next;
    if (array->next != NULL)
        array->next->previous = array->previous;
    if (array->address != 0)
        (void)sim_alloc_free(array->address);
    free(array);
}

static void
array_free_mipmap(struct CUmipmappedArray_st *mipmap)
{
    if (mipmap->previous != NULL)
        mipmap->previous->next = mipmap->next;
    else
        all.mipmaps = mipmap->next;
    if (mipmap->next != NULL)
        mipmap->next->previous = mipmap->previous;
    if (mipmap->address != 0)
        (void)sim_alloc_free(mipmap->address);
    free(mipmap);
}

void
sim_array_drop(struct CUctx_st *context)
{
    for (struct CUarray_st *array = all.arrays, *next; array != NULL; array = next) {
        next = array->next;
        if (array->context == context)
            free_array(array);
    }
    for (struct CUmipmappedArray_st *mipmap = all.mipmaps, *next; mipmap != NULL; mipmap = next) {
        next = mipmap->next;
        if (mipmap->context == context)
            array_free_mipmap(mipmap);
    }
}

static CUresult
make_array(struct CUctx_st *context, const CUDA_ARRAY3D_DESCRIPTOR *shape, struct CUarray_st **ret_array)
{
    struct CUarray_st *array = malloc(sizeof(*array));
    CUresult rc;

    if (array == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *array =
        (struct CUarray_st){ .magic = ARRAY_MAGIC, .context = context, .shape = *shape, .next = all.arrays };
    rc = array_back(context, shape->Flags, array_shape_bytes(shape), &array->address);
    if (rc != CUDA_SUCCESS) {
        free(array);
        return rc;
    }
    if (all.arrays != NULL)
        all.arrays->previous = array;
    all.arrays = array;
    *ret_array = array;
    return CUDA_SUCCESS;
}

/* ---- the calls ---- */

static CUresult
array_create(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (array == NULL || !array_is_shape(shape))
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    rc = make_array(context, shape, array);
    sim_memory_unlock();
    return rc;
}

CUDA_ROW(cuArray3DCreate_v2, (CUarray * handle, const CUDA_ARRAY3D_DESCRIPTOR *shape),
         shape == NULL ? CUDA_ERROR_INVALID_VALUE : array_create(handle, shape))

CUDA_API CUresult
cuArray3DCreate(CUarray *handle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *old)
{
    if (old == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(handle, &(CUDA_ARRAY3D_DESCRIPTOR){ old->Width, old->Height, old->Depth, old->Format,
                                                            old->NumChannels, old->Flags });
}

CUDA_API CUresult
cuArrayCreate_v2(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR *flat)
{
    if (flat == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(handle, &(CUDA_ARRAY3D_DESCRIPTOR){ flat->Width, flat->Height, 0, flat->Format,
                                                            flat->NumChannels, 0 });
}

CUDA_API CUresult
cuArrayCreate(CUarray *handle, const CUDA_ARRAY_DESCRIPTOR_v1 *old)
{
    if (old == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    return array_create(
        handle, &(CUDA_ARRAY3D_DESCRIPTOR){ old->Width, old->Height, 0, old->Format, old->NumChannels, 0 });
}

CUDA_API CUresult
cuArrayDestroy(CUarray array)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    if (!is_array(array) || array->parent != NULL)
        rc = CUDA_ERROR_INVALID_HANDLE;
    else
        free_array(array);
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR *shape, CUarray array)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (shape == NULL)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_lock();
    if (is_array(array))
        *shape = array->shape;
    else
        rc = CUDA_ERROR_INVALID_HANDLE;
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR *flat, CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR shape;
    CUresult rc = cuArray3DGetDescriptor_v2(&shape, array);

    if (rc != CUDA_SUCCESS || flat == NULL)
        return rc != CUDA_SUCCESS ? rc : CUDA_ERROR_INVALID_VALUE;
    *flat = (CUDA_ARRAY_DESCRIPTOR){ shape.Width, shape.Height, shape.Format, shape.NumChannels };
    return CUDA_SUCCESS;
}

/* Only of what is to be mapped later: as the vendor's, which answers INVALID_VALUE for an
 * array that has its memory. */
static CUresult
array_requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *requirements, unsigned flags, size_t bytes)
{
    if (requirements == NULL || (flags & CUDA_ARRAY3D_DEFERRED_MAPPING) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    *requirements = (CUDA_ARRAY_MEMORY_REQUIREMENTS){ .size = (bytes + ALIGNMENT_BYTES - 1) / ALIGNMENT_BYTES
                                                              * ALIGNMENT_BYTES,
                                                      .alignment = ALIGNMENT_BYTES };
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memory_requirements, CUarray array,
                             CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    rc = is_array(array)
             ? array_requirements(memory_requirements, array->shape.Flags, array_shape_bytes(&array->shape))
             : CUDA_ERROR_INVALID_HANDLE;
    sim_memory_unlock();
    return rc;
}

/* ---- mipmaps ---- */

static CUDA_ARRAY3D_DESCRIPTOR
array_level_of(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned level)
{
    CUDA_ARRAY3D_DESCRIPTOR smaller = *shape;

    smaller.Width = array_least_one(shape->Width >> level);
    smaller.Height = shape->Height == 0 ? 0 : array_least_one(shape->Height >> level);
    smaller.Depth = shape->Depth == 0 ? 0 : array_least_one(shape->Depth >> level);
    return smaller;
}

static CUresult
array_make_mipmap(struct CUctx_st *context, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                  struct CUmipmappedArray_st *mipmap)
{
    CUresult rc;

    for (unsigned i = 0; i < mipmap->levels; i++) {
        mipmap->level[i] = (struct CUarray_st){ .magic = ARRAY_MAGIC,
                                                .context = context,
                                                .parent = mipmap,
                                                .shape = array_level_of(shape, i),
                                                .address = mipmap->bytes };
        mipmap->bytes += array_shape_bytes(&mipmap->level[i].shape);
    }
    rc = array_back(context, shape->Flags, mipmap->bytes, &mipmap->address);
    if (rc != CUDA_SUCCESS)
        return rc;
    for (unsigned i = 0; i < mipmap->levels; i++)
        mipmap->level[i].address = mipmap->address == 0 ? 0 : mipmap->address + mipmap->level[i].address;
    mipmap->next = all.mipmaps;
    if (all.mipmaps != NULL)
        all.mipmaps->previous = mipmap;
    all.mipmaps = mipmap;
    return CUDA_SUCCESS;
}

CUDA_API CUresult
cuMipmappedArrayCreate(CUmipmappedArray *handle, const CUDA_ARRAY3D_DESCRIPTOR *shape,
                       unsigned int num_mipmap_levels)
{
    struct CUmipmappedArray_st *mipmap;
    struct CUctx_st *context;
    CUresult rc = sim_cuda_enter(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    if (handle == NULL || shape == NULL || !array_is_shape(shape) || num_mipmap_levels == 0)
        return CUDA_ERROR_INVALID_VALUE;
    mipmap = calloc(1, sizeof(*mipmap));
    if (mipmap == NULL)
        return CUDA_ERROR_OUT_OF_MEMORY;
    mipmap->magic = MIPMAP_MAGIC;
    mipmap->context = context;
    mipmap->flags = shape->Flags;
    /* no more levels than it takes to come down to one element */
    while (mipmap->levels < num_mipmap_levels && mipmap->levels < LEVELS_MAX
           && (mipmap->levels == 0 || (shape->Width | shape->Height | shape->Depth) >> mipmap->levels > 0))
        mipmap->levels++;
    sim_memory_lock();
    rc = array_make_mipmap(context, shape, mipmap);
    sim_memory_unlock();
    if (rc == CUDA_SUCCESS)
        *handle = mipmap;
    else
        free(mipmap);
    return rc;
}

CUDA_API CUresult
cuMipmappedArrayDestroy(CUmipmappedArray mipmap)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    if (array_is_mipmap(mipmap))
        array_free_mipmap(mipmap);
    else
        rc = CUDA_ERROR_INVALID_HANDLE;
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMipmappedArrayGetLevel(CUarray *level_array, CUmipmappedArray mipmap, unsigned int level)
{
    struct CUctx_st *context;
    CUresult rc = sim_cuda_current(&context);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    if (!array_is_mipmap(mipmap))
        rc = CUDA_ERROR_INVALID_HANDLE;
    else if (level_array == NULL || level >= mipmap->levels)
        rc = CUDA_ERROR_INVALID_VALUE;
    else
        *level_array = &mipmap->level[level];
    sim_memory_unlock();
    return rc;
}

CUDA_API CUresult
cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *memory_requirements,
                                      CUmipmappedArray mipmap, CUdevice number)
{
    struct sim_cuda_device device;
    CUresult rc = sim_cuda_device(number, &device);

    if (rc != CUDA_SUCCESS)
        return rc;
    sim_memory_lock();
    rc = array_is_mipmap(mipmap) ? array_requirements(memory_requirements, mipmap->flags, mipmap->bytes)
                                 : CUDA_ERROR_INVALID_HANDLE;
    sim_memory_unlock();
    return rc;
}
