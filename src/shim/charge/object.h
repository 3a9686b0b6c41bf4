/* Memory objects of cuMemCreate: they live while a handle or a mapping names them. */
#ifndef BH_SHIM_CHARGE_OBJECT_H
#define BH_SHIM_CHARGE_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

/* At the first join. */
void bh_objects_init(void);

/* An object of `grains` that are reserved, with one handle; false when there are too many.
 * forget: it was not made after all; the grains stay the caller's. */
bool bh_object_new(unsigned device, uint64_t grains, uint32_t *ret_object);
void bh_object_forget(uint32_t object);

/* It has a handle more, or one less; a mapping more, or one less. */
void bh_object_held(uint32_t object);
void bh_object_released(uint32_t object);
void bh_object_mapped(uint32_t object);
void bh_object_unmapped(uint32_t object);

#endif
