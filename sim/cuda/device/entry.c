/* How programs find the calls, and what errors are called. */
#include "sim/cuda/cuda.h"

#include <string.h>

static const struct entry {
    const char *name, *base;
    int version;
    void *function;
} entries[] = {
#define CUDA_CALL(name, base, version, parameters) { #name, #base, version, (void *)name },
#include "tables/cuda.tbl"
#include "tables/cuda_context.tbl"
#include "tables/cuda_memory.tbl"
#include "tables/cuda_work.tbl"
#undef CUDA_CALL
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Whether it is the form of a call whose NULL stream is the thread's own. */
static bool
entry_is_per_thread(const struct entry *entry)
{
    size_t length = strlen(entry->name);

    return length > 5
           && (strcmp(entry->name + length - 5, "_ptsz") == 0
               || strcmp(entry->name + length - 5, "_ptds") == 0);
}

/* Whether `entry` serves better than what was found so far. */
static bool
entry_is_better(const struct entry *entry, const struct entry *best, bool per_thread)
{
    if (entry_is_per_thread(entry) && !per_thread)
        return false;
    if (best == NULL || entry->version != best->version)
        return best == NULL || entry->version > best->version;
    return entry_is_per_thread(entry);
}

/* The newest ABI of the call that `version` has; of two forms the one that was asked for.
 */
CUDA_API CUresult
cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                    CUdriverProcAddressQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    const struct entry *best = NULL;

    if (symbol == NULL || function == NULL || flags > 2)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < COUNT(entries); i++) {
        const struct entry *entry = &entries[i];

        if (strcmp(entry->base, symbol) != 0)
            continue;
        if (entry->version > version) {
            if (best == NULL)
                found = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        } else if (entry_is_better(entry, best, flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)) {
            best = entry;
            found = CU_GET_PROC_ADDRESS_SUCCESS;
        }
    }
    *function = best == NULL ? NULL : best->function;
    if (status != NULL)
        *status = found;
    return best == NULL ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

CUDA_ROW(cuGetProcAddress, (const char *symbol, void **function, int version, uint64_t flags),
         cuGetProcAddress_v2(symbol, function, version, flags, NULL))

/* ---- errors ---- */

static const struct {
    CUresult code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, text)                                                                                    \
    {                                                                                                        \
        code, #code, text                                                                                    \
    }
    ERROR(CUDA_SUCCESS, "no error"),
    ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    ERROR(CUDA_ERROR_DEINITIALIZED, "driver shutting down"),
    ERROR(CUDA_ERROR_DEVICE_UNAVAILABLE, "CUDA-capable device(s) is/are busy or unavailable"),
    ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    ERROR(CUDA_ERROR_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"),
    ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    ERROR(CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered"),
    ERROR(CUDA_ERROR_FILE_NOT_FOUND, "file not found"),
    ERROR(CUDA_ERROR_ILLEGAL_STATE, "the operation cannot be performed in the present state"),
    ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    ERROR(CUDA_ERROR_NOT_PERMITTED, "operation not permitted"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "capture was not initiated in this stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "capturing stream has unjoined work"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
          "operation would make the legacy stream depend on a capturing blocking stream"),
    ERROR(CUDA_ERROR_CAPTURED_EVENT,
          "operation not permitted on an event last recorded in a capturing stream"),
    ERROR(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
          "attempt to terminate a thread-local capture sequence from another thread"),
    ERROR(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE,
          "the graph update was not performed because it included changes which violated "
          "constraints specific to instantiated graph update"),
    ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
#undef ERROR
};

static CUresult
entry_describe(CUresult error, const char **name, const char **text)
{
    for (size_t i = 0; i < COUNT(errors); i++)
        if (errors[i].code == error) {
            *name = errors[i].name;
            *text = errors[i].text;
            return CUDA_SUCCESS;
        }
    *name = *text = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUDA_API CUresult
cuGetErrorName(CUresult error, const char **name)
{
    const char *text;

    return name == NULL ? CUDA_ERROR_INVALID_VALUE : entry_describe(error, name, &text);
}

CUDA_API CUresult
cuGetErrorString(CUresult error, const char **text)
{
    const char *name;

    return text == NULL ? CUDA_ERROR_INVALID_VALUE : entry_describe(error, &name, text);
}
