/* Memory objects of cuMemCreate: they live while a handle or a mapping names them. */
#ifndef BH_SHIM_VMM_H
#define BH_SHIM_VMM_H

#include <stdint.h>

/* At the first join. */
void bh_objects_init(void);

/* A mapping of the object is gone. */
void bh_object_unmapped(uint32_t object);

#endif
