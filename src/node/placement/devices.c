#include "node/placement/devices.h"

#include <string.h>

#include "node/common/path.h"
#include "node/placement/placement.h"

enum { NVIDIA_MAJOR = 195, NVIDIA_CTL = 255 };

struct devices_list {
    struct bh_sandbox_device *items;
    uint32_t count;
};

static void
devices_add(struct devices_list *list, const struct bh_sandbox_device *device)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->items[i].major == device->major && list->items[i].minor == device->minor)
            return;
    }
    list->items[list->count++] = *device;
}

static void
add_partition(struct devices_list *list, const struct bh_node *node,
              const struct bh_node_partition *partition)
{
    struct bh_sandbox_device gpu = { .major = NVIDIA_MAJOR, .minor = partition->minor, .write = true };
    uint32_t caps = node->caps_major;

    bh_path_format(gpu.path, sizeof gpu.path, "/dev/nvidia%u", partition->minor);
    devices_add(list, &gpu);
    devices_add(list, &(struct bh_sandbox_device){ "/dev/nvidiactl", NVIDIA_MAJOR, NVIDIA_CTL, true });
    if (node->uvm_major)
        devices_add(list, &(struct bh_sandbox_device){ "/dev/nvidia-uvm", node->uvm_major, 0, true });
    if (!bh_placement_is_instance(partition) || !caps)
        return;
    for (int i = 0; i < 2; i++) {
        struct bh_sandbox_device cap = { .major = caps,
                                         .minor = i == 0 ? partition->gi_minor : partition->ci_minor };

        bh_path_format(cap.path, sizeof cap.path, "/dev/nvidia-caps/nvidia-cap%u", cap.minor);
        devices_add(list, &cap);
    }
}

uint32_t
bh_devices_of(const struct bh_node *node, const struct bh_node_record *lease,
              struct bh_sandbox_device *ret_devices)
{
    struct devices_list list = { ret_devices, 0 };

    for (uint32_t i = 0; i < lease->lent_count; i++)
        add_partition(&list, node, &lease->lent[i]);
    return list.count;
}

char *
bh_devices_fill(struct bh_arena *arena, const char *text, size_t length,
                const struct bh_node_partition *partition)
{
    char memory[1024];
    struct bh_buf out;

    bh_buf_init_fixed(&out, memory, sizeof memory);
    for (const char *at = text, *end = text + length; at < end;) {
        if (strncmp(at, "{minor}", 7) == 0) {
            bh_buf_put_u64(&out, partition->minor);
            at += 7;
        } else if (strncmp(at, "{gi}", 4) == 0) {
            if (!bh_placement_is_instance(partition))
                bh_buf_putc(&out, 'w');
            else
                bh_buf_put_u64(&out, partition->gi);
            at += 4;
        } else {
            bh_buf_putc(&out, *at++);
        }
    }
    return bh_buf_text(&out) ? bh_arena_strdup(arena, bh_buf_text(&out)) : NULL;
}
