/* The driver's objects of this process, and the video memory behind them: a table without
 * locks, by client and handle.
 *
 * An object is below another and goes with it.  A second handle of an object keeps its memory
 * until both are gone.  A handle may be given out anew by the driver the moment it is free,
 * before the thread that freed it has noted it here: so each booking has a number, and
 * freeing forgets what was booked up to the number at which the driver was called.
 *
 * Any thread; nothing is moved or made smaller.  A fork's child has an empty table. */
#ifndef BH_SHIM_DRIVER_RM_OBJECTS_H
#define BH_SHIM_DRIVER_RM_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BH_RM_DEVICES_MAX = 32, /* instances as the driver numbers them */
    BH_RM_DEVICE_UNKNOWN = BH_RM_DEVICES_MAX,
    BH_RM_DEVICE_INHERITED,
};

struct bh_rm_object {
    uint32_t client, handle, parent; /* a client's own: handle and parent are `client` */
    uint32_t device;                 /* instance, or INHERITED from `parent` */
    uint64_t bytes;                  /* of video memory */
};

/* Before the driver is called: children of a fork will not inherit the table. */
void bh_rm_objects_init(void);

/* The number of the last booking; before the driver is asked to free something. */
uint64_t bh_rm_objects_now(void);

/* The driver made an object.  What was booked under its handle is gone.  False: no memory to
 * book it. */
bool bh_rm_objects_put(const struct bh_rm_object *object);

/* The driver gave `object` as another handle of `source`.  Nothing is noted when that is not
 * known: it is another process's.  False: no memory. */
bool bh_rm_objects_dup(const struct bh_rm_object *object, uint32_t source_client, uint32_t source);

/* The driver freed an object and what is below it; `before`: what bh_rm_objects_now() was
 * when it was asked.  Nothing when it is not known. */
void bh_rm_objects_free(uint32_t client, uint32_t handle, uint64_t before);

/* The device of an object; false when the object is not known, or has none. */
bool bh_rm_objects_device(uint32_t client, uint32_t handle, uint32_t *ret_device);

/* The devices, as bits, that ever had memory booked; UNKNOWN is one of them. */
uint64_t bh_rm_objects_devices(void);

/* Bytes of a device, or of those whose device is UNKNOWN. */
uint64_t bh_rm_objects_bytes(uint32_t device);

#endif
