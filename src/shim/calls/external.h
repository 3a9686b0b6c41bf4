/* Memory of another API of the device, as Vulkan's.  What made it did not pass here, so the
 * importer is charged, for as long as the import or a buffer that was mapped of it is there. */
#ifndef BH_SHIM_CALLS_EXTERNAL_H
#define BH_SHIM_CALLS_EXTERNAL_H

/* At the first join. */
void bh_imports_init(void);

#endif
