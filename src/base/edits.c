#include "base/edits.h"

#include <string.h>

#include "base/assert.h"
#include "base/json.h"

enum { PATH_BYTES = 3072, ENCODED_MAX = 8 << 20 };

/* One value beside the other: where the walk stands. */
struct edits_walk {
    const struct bh_edits *edits;
    struct bh_buf path; /* "skus[small].memory" */
};

/* NULL: it is absent. */
struct edits_pair {
    const char *from, *to;
};

static const char *
edits_member_at(const void *value, const struct bh_field *field)
{
    return value ? (const char *)value + field->offset : NULL;
}

/* ---- keys ---- */

static const char *
edits_key_members(const struct bh_edits *edits, const struct bh_fields *of)
{
    for (uint32_t i = 0; i < edits->key_count; i++)
        if (strcmp(edits->keys[i].of, of->name) == 0)
            return edits->keys[i].members;
    return "name";
}

/* The next member of a key; start with *at on the list of their names. NULL at the end. */
static const struct bh_field *
edits_next_member(const struct bh_fields *of, const char **at)
{
    const struct bh_field *field;
    size_t length = strcspn(*at, " ");

    if (length == 0)
        return NULL;
    field = bh_fields_find(of, *at, length);
    BH_ASSERT(field);
    *at += length + ((*at)[length] == ' ');
    return field;
}

static bool
edits_same_scalar(const struct bh_field *field, const void *a, const void *b)
{
    const char *one = edits_member_at(a, field), *other = edits_member_at(b, field);
    const char *text, *other_text;

    if (field->kind != BH_FIELD_TEXT)
        return memcmp(one, other, field->size) == 0;
    memcpy(&text, one, sizeof text);
    memcpy(&other_text, other, sizeof other_text);
    return strcmp(text ? text : "", other_text ? other_text : "") == 0;
}

static bool
edits_same_key(const char *members, const struct bh_fields *of, struct edits_pair items)
{
    const struct bh_field *field;

    while ((field = edits_next_member(of, &members)))
        if (!edits_same_scalar(field, items.from, items.to))
            return false;
    return true;
}

/* ---- values as users read them ---- */

/* Text that needs no quotes to be distinct from what is around it. */
static bool
edits_is_plain(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                    "._:/@*%+-|<>~",
                    text[i]))
            return false;
    return length > 0;
}

/* JSON, cut when it is long, a simple string without its quotes. */
static void
edits_put_value(struct bh_buf *out, const char *json, size_t length)
{
    size_t kept = length < BH_EDIT_VALUE_MAX ? length : BH_EDIT_VALUE_MAX - 32;

    if (length > 2 && json[0] == '"' && edits_is_plain(json + 1, length - 2) && kept == length) {
        bh_buf_put(out, json + 1, length - 2);
        return;
    }
    while (kept < length && kept > 0 && ((unsigned char)json[kept] & 0xc0) == 0x80)
        kept--; /* no half of a character */
    bh_buf_put(out, json, kept);
    if (kept < length)
        bh_buf_printf(out, "... (%zu bytes)", length);
}

/* The member's JSON; empty when it is left out. The same encoder that makes the canonical text
 * decides both. */
static void
edits_put_member(struct bh_buf *out, const struct bh_field *field, const void *value)
{
    const struct bh_fields one = { .name = "", .count = 1, .fields = field };
    size_t key = strlen(field->name) + 4; /* {"name": */

    if (value)
        bh_json_encode(out, &one, value);
    BH_ASSERT(!out->overflow);
    if (out->length <= 2) {
        bh_buf_clear(out);
        return;
    }
    bh_buf_drop(out, key);
    out->length--; /* } */
}

static void
edits_put_key(struct bh_buf *out, const char *members, const struct bh_fields *of, const void *item)
{
    bool single = !strchr(members, ' ');
    const struct bh_field *field;
    size_t begun;

    bh_buf_putc(out, '[');
    begun = out->length;
    while ((field = edits_next_member(of, &members))) {
        struct bh_buf json;

        bh_buf_init(&json, ENCODED_MAX);
        edits_put_member(&json, field, item);
        if (json.length > 0) {
            bh_buf_puts(out, out->length > begun ? "," : "");
            bh_buf_printf(out, "%s%s", single ? "" : field->name, single ? "" : "=");
            edits_put_value(out, json.bytes, json.length);
        }
        bh_buf_fini(&json);
    }
    bh_buf_putc(out, ']');
}

/* ---- lines ---- */

static void
edits_put_line(const struct edits_walk *walk, const char *what, const struct bh_buf *rest)
{
    char memory[BH_EDIT_LINE_MAX];
    struct bh_buf line;

    bh_buf_init_fixed(&line, memory, sizeof memory);
    bh_buf_put(&line, walk->path.bytes, walk->path.length);
    bh_buf_printf(&line, ": %s", what);
    if (rest)
        bh_buf_put(&line, rest->bytes, rest->length);
    walk->edits->line(walk->edits->self, line.bytes, line.length);
}

static void
edits_put_change(const struct edits_walk *walk, const struct bh_buf *from, const struct bh_buf *to)
{
    static const char absent[] = "(absent)";
    char memory[2 * BH_EDIT_VALUE_MAX + 64];
    struct bh_buf both;

    bh_buf_init_fixed(&both, memory, sizeof memory);
    if (from->length)
        edits_put_value(&both, from->bytes, from->length);
    else
        bh_buf_puts(&both, absent);
    bh_buf_puts(&both, " -> ");
    if (to->length)
        edits_put_value(&both, to->bytes, to->length);
    else
        bh_buf_puts(&both, absent);
    edits_put_line(walk, "", &both);
}

static size_t
edits_enter(struct edits_walk *walk, const char *name)
{
    size_t length = walk->path.length;

    bh_buf_printf(&walk->path, "%s%s", length ? "." : "", name);
    return length;
}

static void
edits_leave(struct edits_walk *walk, size_t length)
{
    walk->path.length = length;
    walk->path.overflow = false;
}

/* ---- lists ---- */

struct items {
    const char *base;
    uint32_t count, size;
    const struct bh_fields *of; /* NULL: texts */
};

static struct items
edits_items_of(const struct bh_field *field, const void *value)
{
    const char *at = edits_member_at(value, field);
    struct items items = { .of = field->of };
    struct bh_texts texts;
    struct bh_list list;

    if (!value)
        return items;
    if (field->kind == BH_FIELD_TEXTS) {
        memcpy(&texts, at, sizeof texts);
        return (struct items){ (const char *)texts.items, texts.count, sizeof(char *), NULL };
    }
    items.size = field->of->size;
    if (field->kind == BH_FIELD_ARRAY) {
        items.base = at;
        memcpy(&items.count, (const char *)value + field->count_offset, sizeof items.count);
        return items;
    }
    memcpy(&list, at, sizeof list);
    items.base = list.items;
    items.count = list.count;
    return items;
}

static const char *
edits_item_at(const struct items *items, uint32_t at)
{
    return items->base + (size_t)at * items->size;
}

static const char *
edits_text_at(const struct items *items, uint32_t at)
{
    const char *text;

    memcpy(&text, edits_item_at(items, at), sizeof text);
    return text;
}

enum { LONE = UINT16_MAX };
_Static_assert((int)BH_EDIT_ITEMS_MAX < (int)LONE, "a place is a number of 16 bits");

/* Which item of the other list each is; equal keys meet in the order of their lists. */
struct matching {
    struct items from, to;
    uint16_t to_of[BH_EDIT_ITEMS_MAX], from_of[BH_EDIT_ITEMS_MAX];
};

static bool
edits_same_item(const struct edits_walk *walk, const struct matching *m, uint32_t from, uint32_t to)
{
    if (!m->from.of)
        return strcmp(edits_text_at(&m->from, from), edits_text_at(&m->to, to)) == 0;
    return edits_same_key(edits_key_members(walk->edits, m->from.of), m->from.of,
                          (struct edits_pair){ edits_item_at(&m->from, from), edits_item_at(&m->to, to) });
}

/* Lists change little: each is looked for behind the one before first. */
static void
edits_match(const struct edits_walk *walk, struct matching *m)
{
    uint32_t begin = 0;

    memset(m->to_of, 0xff, sizeof m->to_of);
    memset(m->from_of, 0xff, sizeof m->from_of);
    for (uint32_t i = 0; i < m->from.count; i++)
        for (uint32_t tried = 0; tried < m->to.count; tried++) {
            uint32_t at = (begin + tried) % m->to.count;

            if (m->from_of[at] != LONE || !edits_same_item(walk, m, i, at))
                continue;
            m->to_of[i] = (uint16_t)at;
            m->from_of[at] = (uint16_t)i;
            begin = at + 1;
            break;
        }
}

static bool
edits_is_reordered(const struct matching *m)
{
    uint32_t last = 0;

    for (uint32_t i = 0; i < m->from.count; i++) {
        if (m->to_of[i] == LONE)
            continue;
        if (m->to_of[i] < last)
            return true;
        last = m->to_of[i];
    }
    return false;
}

static void
edits_enter_item(struct edits_walk *walk, const struct items *items, uint32_t at)
{
    struct bh_buf json;

    if (items->of) {
        edits_put_key(&walk->path, edits_key_members(walk->edits, items->of), items->of,
                      edits_item_at(items, at));
        return;
    }
    bh_buf_init(&json, ENCODED_MAX);
    bh_json_put_str(&json, edits_text_at(items, at));
    bh_buf_putc(&walk->path, '[');
    edits_put_value(&walk->path, json.bytes, json.length);
    bh_buf_putc(&walk->path, ']');
    bh_buf_fini(&json);
}

static bool
edits_is_in_key(const char *members, const struct bh_fields *of, const struct bh_field *field)
{
    const struct bh_field *member;

    while ((member = edits_next_member(of, &members)))
        if (member == field)
            return true;
    return false;
}

static bool
edits_has_more(const char *members, const struct bh_fields *of, const void *item)
{
    bool more = false;

    for (uint32_t i = 0; i < of->count && !more; i++) {
        struct bh_buf json;

        bh_buf_init(&json, ENCODED_MAX);
        edits_put_member(&json, &of->fields[i], item);
        more = json.length > 0 && !edits_is_in_key(members, of, &of->fields[i]);
        bh_buf_fini(&json);
    }
    return more;
}

/* An item that one side alone has, with what it says beyond its key. */
static void
edits_put_lone(struct edits_walk *walk, const struct items *items, uint32_t at, const char *what)
{
    size_t length = walk->path.length;
    char memory[BH_EDIT_VALUE_MAX + 64];
    struct bh_buf json, rest;

    bh_buf_init(&json, ENCODED_MAX);
    bh_buf_init_fixed(&rest, memory, sizeof memory);
    if (items->of
        && edits_has_more(edits_key_members(walk->edits, items->of), items->of, edits_item_at(items, at))) {
        bh_json_encode(&json, items->of, edits_item_at(items, at));
        bh_buf_putc(&rest, ' ');
        edits_put_value(&rest, json.bytes, json.length);
    }
    edits_enter_item(walk, items, at);
    edits_put_line(walk, what, &rest);
    edits_leave(walk, length);
    bh_buf_fini(&json);
}

static void edits_walk_struct(struct edits_walk *walk, const struct bh_fields *fields,
                              struct edits_pair values);

static void
edits_walk_list(struct edits_walk *walk, const struct bh_field *field, struct edits_pair values)
{
    struct matching m = {
        edits_items_of(field, values.from), edits_items_of(field, values.to), { 0 }, { 0 }
    };
    size_t length = edits_enter(walk, field->name), item;

    BH_ASSERT(m.from.count <= BH_EDIT_ITEMS_MAX && m.to.count <= BH_EDIT_ITEMS_MAX);
    edits_match(walk, &m);
    for (uint32_t i = 0; i < m.from.count; i++) {
        if (m.to_of[i] == LONE) {
            edits_put_lone(walk, &m.from, i, "removed");
            continue;
        }
        if (!field->of)
            continue;
        item = walk->path.length;
        edits_enter_item(walk, &m.from, i);
        edits_walk_struct(walk, field->of,
                          (struct edits_pair){ edits_item_at(&m.from, i), edits_item_at(&m.to, m.to_of[i]) });
        edits_leave(walk, item);
    }
    for (uint32_t i = 0; i < m.to.count; i++)
        if (m.from_of[i] == LONE)
            edits_put_lone(walk, &m.to, i, "added");
    if (edits_is_reordered(&m))
        edits_put_line(walk, "reordered", NULL);
    edits_leave(walk, length);
}

static bool
edits_same_text(const struct bh_buf *a, const struct bh_buf *b)
{
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

/* A struct that is left out on one side has its members absent there. */
static void
edits_walk_value(struct edits_walk *walk, const struct bh_field *field, struct edits_pair values)
{
    size_t length = edits_enter(walk, field->name);
    struct bh_buf from, to;

    bh_buf_init(&from, ENCODED_MAX);
    bh_buf_init(&to, ENCODED_MAX);
    edits_put_member(&from, field, values.from);
    edits_put_member(&to, field, values.to);
    if (field->kind == BH_FIELD_STRUCT && !edits_same_text(&from, &to))
        edits_walk_struct(walk, field->of,
                          (struct edits_pair){ from.length ? edits_member_at(values.from, field) : NULL,
                                               to.length ? edits_member_at(values.to, field) : NULL });
    else if (!edits_same_text(&from, &to))
        edits_put_change(walk, &from, &to);
    bh_buf_fini(&from);
    bh_buf_fini(&to);
    edits_leave(walk, length);
}

static bool
edits_is_list(enum bh_field_kind kind)
{
    return kind == BH_FIELD_LIST || kind == BH_FIELD_ARRAY || kind == BH_FIELD_TEXTS;
}

static void
edits_walk_struct(struct edits_walk *walk, const struct bh_fields *fields, struct edits_pair values)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        if (fields->fields[i].flags & BH_FIELD_INPUT)
            continue;
        if (edits_is_list(fields->fields[i].kind))
            edits_walk_list(walk, &fields->fields[i], values);
        else
            edits_walk_value(walk, &fields->fields[i], values);
    }
}

void
bh_edits_find(const struct bh_edits *edits, const struct bh_fields *fields, const void *from, const void *to)
{
    char memory[PATH_BYTES];
    struct edits_walk walk = { .edits = edits };

    bh_buf_init_fixed(&walk.path, memory, sizeof memory);
    edits_walk_struct(&walk, fields, (struct edits_pair){ from, to });
}

static bool
edits_has_key(const struct bh_edits *edits, const struct bh_fields *of)
{
    const char *at = edits_key_members(edits, of);

    while (*at) {
        size_t length = strcspn(at, " ");
        const struct bh_field *field = bh_fields_find(of, at, length);

        if (!field
            || (field->kind != BH_FIELD_TEXT && field->kind != BH_FIELD_U32 && field->kind != BH_FIELD_ENUM))
            return false;
        at += length + (at[length] == ' ');
    }
    return true;
}

bool
bh_edits_known(const struct bh_edits *edits, const struct bh_fields *fields)
{
    for (uint32_t i = 0; i < fields->count; i++) {
        const struct bh_field *field = &fields->fields[i];

        if (edits_is_list(field->kind) && field->of && !edits_has_key(edits, field->of))
            return false;
        if (field->of && !bh_edits_known(edits, field->of))
            return false;
    }
    return true;
}
