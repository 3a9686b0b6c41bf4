#include "node/core/numa.h"

#include <string.h>

#include "base/fd.h"
#include "base/num.h"
#include "node/common/path.h"
#include "node/core/node.h"

enum { KERNEL_ID = 12, NODE_MAX = 254 }; /* "0000:3b:00.0" */

/* The kernel writes a domain of four digits, in small letters. */
static bool
kernel_id(const char *pci, char ret_id[KERNEL_ID + 1])
{
    size_t length = strlen(pci);

    if (length < KERNEL_ID || length > KERNEL_ID + 4 || strspn(pci, "0123456789abcdefABCDEF:.") != length)
        return false;
    pci += length - KERNEL_ID;
    for (size_t i = 0; i <= KERNEL_ID; i++)
        ret_id[i] = (char)(pci[i] >= 'A' && pci[i] <= 'F' ? pci[i] + ('a' - 'A') : pci[i]);
    return true;
}

uint32_t
bh_numa_of(const char *devices, const char *pci)
{
    char id[KERNEL_ID + 1], path[BH_NODE_PATH_MAX], text[16];
    struct bh_err ignored;
    struct bh_buf buf;
    uint32_t node;

    if (!kernel_id(pci, id))
        return 0;
    bh_path_format(path, sizeof path, "%s/%s/numa_node", devices, id);
    bh_buf_init_fixed(&buf, text, sizeof text);
    if (bh_file_read(path, sizeof text - 1, &buf, &ignored) != BH_OK || !bh_buf_text(&buf))
        return 0;
    text[strcspn(text, "\n")] = '\0';
    return bh_parse_u32(text, 0, NODE_MAX, &node, &ignored) == BH_OK ? node + 1 : 0;
}
