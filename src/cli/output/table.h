#ifndef BH_CLI_OUTPUT_TABLE_H
#define BH_CLI_OUTPUT_TABLE_H

#include <stdint.h>

#include "base/buf.h"

/* Text in columns, as wide as their widest cell.  The last column is not padded, so
 * that long reasons run past the edge.  Control characters are shown as '?'. */
struct bh_table;

enum { BH_TABLE_COLUMNS_MAX = 24 };

BH_MUST_USE struct bh_table *bh_table_new(uint32_t columns);
void bh_table_free(struct bh_table *table);
BH_AUTO_DEFINE(struct bh_table *, bh_table_free)

/* Append the next cell, row by row; NULL and "" become "-". */
void bh_table_put(struct bh_table *table, const char *text);

/* Lay the rows out, each ending with a newline. */
void bh_table_render(const struct bh_table *table, struct bh_buf *out);

#endif
