/* The wire between bulkheadd and bulkhead-node: no stream of bytes does harm. */
#include "tests/fuzz/wire_check.h"
#include "wire/message.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    wire_check_stream(data, size, bh_message_fields);
    return 0;
}
