#include "cli/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"

struct bh_table {
    uint32_t columns;
    size_t count, size; /* of cells */
    char **cells;
    size_t width[BH_TABLE_COLUMNS_MAX];
};

struct bh_table *
bh_table_new(uint32_t columns)
{
    struct bh_table *table = calloc(1, sizeof *table);

    BH_ASSERT(table);
    BH_ASSERT(columns > 0 && columns <= BH_TABLE_COLUMNS_MAX);
    table->columns = columns;
    return table;
}

void
bh_table_free(struct bh_table *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i]);
    free(table->cells);
    free(table);
}

/* Characters of a text that was scrubbed. */
static size_t
characters(const char *text)
{
    size_t count = 0;

    for (; *text; text++)
        count += ((unsigned char)*text & 0xc0) != 0x80;
    return count;
}

void
bh_table_put(struct bh_table *table, const char *text)
{
    char *cell = strdup(text && *text ? text : "-");
    size_t column = table->count % table->columns, width;

    BH_ASSERT(cell);
    bh_utf8_scrub(cell);
    if (table->count == table->size) {
        table->size = table->size ? table->size * 2 : 64;
        table->cells = realloc(table->cells, table->size * sizeof *table->cells);
        BH_ASSERT(table->cells);
    }
    table->cells[table->count++] = cell;
    width = characters(cell);
    if (width > table->width[column])
        table->width[column] = width;
}

void
bh_table_render(const struct bh_table *table, struct bh_buf *out)
{
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        const char *cell = table->cells[i];

        bh_buf_puts(out, cell);
        if (column == table->columns - 1) {
            bh_buf_putc(out, '\n');
            continue;
        }
        for (size_t pad = characters(cell); pad < table->width[column] + 2; pad++)
            bh_buf_putc(out, ' ');
    }
}
