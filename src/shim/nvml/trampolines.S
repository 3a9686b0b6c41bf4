/* The names of libnvidia-ml.so.1: jumps to the driver's, and those that the view answers with
 * one word (tables/nvml_view.tbl). */
#define SHIM_NAMES "tables/nvml_names.tbl"
#include "shim/driver/trampolines.S"
