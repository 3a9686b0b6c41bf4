/* The wire between bulkhead-node and its gpu children: no stream of bytes does harm. */
#include "node/gpu/gpu_message.h"
#include "tests/fuzz/wire_check.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wire_check_stream(data, size, bh_gpu_message_fields);
    return 0;
}
