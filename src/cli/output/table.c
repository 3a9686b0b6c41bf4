#include "cli/output/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/utf8.h"
#include "base/vec.h"

enum { CELLS_MAX = 1 << 30 };

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

/* Characters that take two columns or none; all others take one. */
static const struct {
    uint32_t first, last;
    uint8_t columns;
    /* clang-format off */
} widths[] = {
    { 0x0300, 0x036f, 0 },   { 0x1100, 0x115f, 2 },   { 0x200b, 0x200f, 0 },
    { 0x2e80, 0xa4cf, 2 },   { 0xac00, 0xd7a3, 2 },   { 0xf900, 0xfaff, 2 },
    { 0xfe00, 0xfe0f, 0 },   { 0xfe30, 0xfe6f, 2 },   { 0xff00, 0xff60, 2 },
    { 0xffe0, 0xffe6, 2 },   { 0x1f300, 0x1faff, 2 }, { 0x20000, 0x3fffd, 2 },
};
/* clang-format on */

static size_t
columns_of(uint32_t code)
{
    for (size_t i = 0; i < BH_COUNT(widths); i++)
        if (code >= widths[i].first && code <= widths[i].last)
            return widths[i].columns;
    return 1;
}

/* The character that `text` begins with; its bytes in *ret_length. */
static uint32_t
table_decode(const char *text, size_t *ret_length)
{
    static const uint8_t masks[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
    size_t length = bh_utf8_step(text, strlen(text));
    uint32_t code;

    *ret_length = length ? length : 1;
    code = (uint8_t)*text & masks[*ret_length];
    for (size_t i = 1; i < *ret_length; i++)
        code = code << 6 | ((uint8_t)text[i] & 0x3f);
    return code;
}

/* Columns that a text takes on a terminal. */
static size_t
width_of(const char *text)
{
    size_t columns = 0, length;

    for (; *text; text += length)
        columns += columns_of(table_decode(text, &length));
    return columns;
}

void
bh_table_put(struct bh_table *table, const char *text)
{
    char *cell = strdup(text && *text ? text : "-");
    size_t column = table->count % table->columns, width;
    bool fits;

    BH_ASSERT(cell);
    bh_utf8_scrub(cell);
    fits = bh_vec_reserve(&table->cells, &table->size, table->count + 1, CELLS_MAX);
    BH_ASSERT(fits);
    table->cells[table->count++] = cell;
    width = width_of(cell);
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
        for (size_t pad = width_of(cell); pad < table->width[column] + 2; pad++)
            bh_buf_putc(out, ' ');
    }
}
