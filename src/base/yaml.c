#include "base/yaml.h"

#include <stdint.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#include <yaml.h>

#include "base/assert.h"
#include "base/json.h"

/* Where a key stands in the output: equal keys have equal JSON. */
struct key {
    size_t offset, length;
};

/* A mapping or list that is open. */
struct level {
    bool is_map, at_value;
    uint32_t items;
};

struct yaml_reader {
    yaml_parser_t parser;
    struct bh_buf *out;
    struct bh_err *err;
    uint32_t documents, depth, key_count;
    struct level levels[BH_JSON_DEPTH_MAX];
    struct key keys[BH_JSON_DEPTH_MAX * BH_YAML_KEYS_MAX]; /* of all open mappings */
};

static void
yaml_reader_fini(struct yaml_reader *r)
{
    yaml_parser_delete(&r->parser);
    free(r);
}
BH_AUTO_DEFINE(struct yaml_reader *, yaml_reader_fini)

static bh_rc
yaml_refuse(struct yaml_reader *r, const yaml_event_t *event, const char *what, const char *fix)
{
    bh_err_set(r->err, BH_INVALID, "line %zu: %s", event->start_mark.line + 1, what);
    return bh_err_hint(r->err, "%s", fix);
}

static struct level *
yaml_top(struct yaml_reader *r)
{
    return r->depth ? &r->levels[r->depth - 1] : NULL;
}

static bool
yaml_at_key(struct yaml_reader *r)
{
    const struct level *level = yaml_top(r);

    return level && level->is_map && !level->at_value;
}

/* What separates the node that comes from the one before. */
static void
yaml_put_separator(struct yaml_reader *r)
{
    struct level *level = yaml_top(r);

    if (!level)
        return;
    if (level->is_map && level->at_value)
        bh_buf_putc(r->out, ':');
    else if (level->items++ > 0)
        bh_buf_putc(r->out, ',');
}

/* After a key comes its value, and after a value the next key. */
static void
yaml_end_node(struct yaml_reader *r)
{
    struct level *level = yaml_top(r);

    if (level && level->is_map)
        level->at_value = !level->at_value;
}

static bh_rc
yaml_check_plain_node(struct yaml_reader *r, const yaml_event_t *event, const yaml_char_t *anchor,
                      const yaml_char_t *tag)
{
    if (anchor)
        return yaml_refuse(r, event, "anchors are not accepted", "write the value out where it is used");
    if (tag)
        return yaml_refuse(r, event, "tags are not accepted",
                           "remove the tag; put the value in quotes to make it a string");
    return BH_OK;
}

/* The key is the end of what was written, quoted and escaped already. */
static bh_rc
yaml_refuse_twice(struct yaml_reader *r, const yaml_event_t *event, size_t length)
{
    char fault[100];

    snprintf(fault, sizeof fault, "duplicate key %.*s", (int)(length < 70 ? length : 70),
             r->out->bytes + r->out->length - length);
    return yaml_refuse(r, event, fault, "keep one of the two");
}

/* Remembers the key just written from `start` on; refuses a second one. */
static bh_rc
yaml_note_key(struct yaml_reader *r, const yaml_event_t *event, size_t start)
{
    struct key key = { start, r->out->length - start };
    uint32_t siblings = yaml_top(r)->items - 1;

    if (r->out->overflow)
        return BH_OK; /* reading stops here */
    for (uint32_t i = r->key_count - siblings; i < r->key_count; i++)
        if (r->keys[i].length == key.length
            && memcmp(r->out->bytes + r->keys[i].offset, r->out->bytes + start, key.length) == 0)
            return yaml_refuse_twice(r, event, key.length);
    if (siblings == BH_YAML_KEYS_MAX)
        return bh_err_set(r->err, BH_RANGE, "line %zu: more than %d keys in one mapping",
                          event->start_mark.line + 1, BH_YAML_KEYS_MAX);
    r->keys[r->key_count++] = key;
    return BH_OK;
}

static bh_rc
yaml_put_key(struct yaml_reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    size_t start;

    if (event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && strcmp(text, "<<") == 0)
        return yaml_refuse(r, event, "merge keys are not accepted", "write the keys out");
    yaml_put_separator(r);
    start = r->out->length;
    bh_json_put_str(r->out, text);
    return yaml_note_key(r, event, start);
}

/* Writes text that is null, true, false or an integer; false for any other. */
static bool
yaml_put_typed(struct bh_buf *out, const char *text)
{
    static const struct {
        const char *text, *json;
        /* clang-format off */
    } words[] = {
        { "", "null" },      { "~", "null" },     { "null", "null" },   { "Null", "null" },
        { "NULL", "null" },  { "true", "true" },  { "True", "true" },   { "TRUE", "true" },
        { "false", "false" }, { "False", "false" }, { "FALSE", "false" },
    };
    /* clang-format on */
    const char *digits = text + (*text == '-' || *text == '+');
    size_t count = strlen(digits);

    for (size_t i = 0; i < BH_COUNT(words); i++)
        if (strcmp(words[i].text, text) == 0) {
            bh_buf_puts(out, words[i].json);
            return true;
        }
    if (count == 0 || count > 15 || strspn(digits, "0123456789") != count || (digits[0] == '0' && count > 1))
        return false;
    if (*text == '-' && digits[0] != '0')
        bh_buf_putc(out, '-');
    bh_buf_puts(out, digits);
    return true;
}

static bh_rc
yaml_on_scalar(struct yaml_reader *r, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bh_rc rc = yaml_check_plain_node(r, event, event->data.scalar.anchor, event->data.scalar.tag);

    if (rc != BH_OK)
        return rc;
    if (r->depth == 0)
        return yaml_refuse(r, event, "expected keys and values, or a list", "write `key: value`");
    if (strlen(text) != event->data.scalar.length)
        return yaml_refuse(r, event, "NUL characters are not accepted", "remove \\0 from the text");
    if (yaml_at_key(r)) {
        rc = yaml_put_key(r, event);
    } else {
        yaml_put_separator(r);
        if (!plain || !yaml_put_typed(r->out, text))
            bh_json_put_str(r->out, text);
    }
    yaml_end_node(r);
    return rc;
}

static bh_rc
yaml_open_level(struct yaml_reader *r, const yaml_event_t *event, bool is_map)
{
    if (yaml_at_key(r))
        return yaml_refuse(r, event, "a key must be plain text", "write `key: value`");
    if (r->depth == BH_JSON_DEPTH_MAX)
        return bh_err_set(r->err, BH_RANGE, "line %zu: nested deeper than %d levels",
                          event->start_mark.line + 1, BH_JSON_DEPTH_MAX);
    yaml_put_separator(r);
    bh_buf_putc(r->out, is_map ? '{' : '[');
    r->levels[r->depth++] = (struct level){ .is_map = is_map };
    return BH_OK;
}

static bh_rc
yaml_on_map(struct yaml_reader *r, const yaml_event_t *event)
{
    bh_rc rc =
        yaml_check_plain_node(r, event, event->data.mapping_start.anchor, event->data.mapping_start.tag);

    return rc == BH_OK ? yaml_open_level(r, event, true) : rc;
}

static bh_rc
yaml_on_list(struct yaml_reader *r, const yaml_event_t *event)
{
    bh_rc rc =
        yaml_check_plain_node(r, event, event->data.sequence_start.anchor, event->data.sequence_start.tag);

    return rc == BH_OK ? yaml_open_level(r, event, false) : rc;
}

static bh_rc
yaml_on_close(struct yaml_reader *r, const yaml_event_t *event)
{
    const struct level *level = yaml_top(r);

    bh_buf_putc(r->out, level->is_map ? '}' : ']');
    if (level->is_map)
        r->key_count -= level->items;
    r->depth--;
    yaml_end_node(r);
    return BH_OK;
}

static bh_rc
yaml_on_alias(struct yaml_reader *r, const yaml_event_t *event)
{
    return yaml_refuse(r, event, "aliases are not accepted", "write the value out where it is used");
}

static bh_rc
yaml_on_document(struct yaml_reader *r, const yaml_event_t *event)
{
    if (event->data.document_start.tag_directives.start != event->data.document_start.tag_directives.end)
        return yaml_refuse(r, event, "tags are not accepted", "remove the %TAG line");
    if (++r->documents > 1)
        return yaml_refuse(r, event, "more than one document", "put each document into its own file");
    return BH_OK;
}

static bh_rc
yaml_take_event(struct yaml_reader *r, const yaml_event_t *event)
{
    static bh_rc (*const takers[])(struct yaml_reader *, const yaml_event_t *) = {
        [YAML_DOCUMENT_START_EVENT] = yaml_on_document, [YAML_ALIAS_EVENT] = yaml_on_alias,
        [YAML_SCALAR_EVENT] = yaml_on_scalar,           [YAML_SEQUENCE_START_EVENT] = yaml_on_list,
        [YAML_SEQUENCE_END_EVENT] = yaml_on_close,      [YAML_MAPPING_START_EVENT] = yaml_on_map,
        [YAML_MAPPING_END_EVENT] = yaml_on_close,
    };

    if ((size_t)event->type >= BH_COUNT(takers) || !takers[event->type])
        return BH_OK;
    return takers[event->type](r, event);
}

/* The reader of bytes gives an offset, the scanner and the parser give line and column. */
static yaml_mark_t
yaml_position_of_problem(const yaml_parser_t *parser, const char *text)
{
    yaml_mark_t mark = { 0 };

    if (parser->error != YAML_READER_ERROR)
        return parser->problem_mark;
    for (size_t i = 0; i < parser->problem_offset; i++) {
        mark.column = text[i] == '\n' ? 0 : mark.column + 1;
        mark.line += text[i] == '\n';
    }
    return mark;
}

static bh_rc
yaml_refuse_syntax(struct yaml_reader *r, const char *text)
{
    const yaml_parser_t *parser = &r->parser;
    yaml_mark_t at = yaml_position_of_problem(parser, text);

    BH_ASSERT(parser->error != YAML_MEMORY_ERROR);
    bh_err_set(r->err, BH_INVALID, "line %zu, column %zu: not valid YAML: %s", at.line + 1, at.column + 1,
               parser->problem ? parser->problem : "cannot be read");
    if (parser->error == YAML_READER_ERROR)
        return bh_err_hint(r->err, "write it as UTF-8 without control characters");
    if (parser->context)
        return bh_err_hint(r->err, "%s that begins at line %zu, column %zu; blanks indent, not tabs",
                           parser->context, parser->context_mark.line + 1, parser->context_mark.column + 1);
    return bh_err_hint(r->err, "blanks indent, not tabs; text with `: ` or ` #` in it is quoted");
}

static bh_rc
yaml_read_events(struct yaml_reader *r, const char *text)
{
    bool ended = false;

    while (!ended) {
        yaml_event_t event;
        bh_rc rc;

        if (!yaml_parser_parse(&r->parser, &event))
            return yaml_refuse_syntax(r, text);
        ended = event.type == YAML_STREAM_END_EVENT;
        rc = yaml_take_event(r, &event);
        yaml_event_delete(&event);
        if (rc != BH_OK)
            return rc;
        if (r->out->overflow)
            return bh_err_set(r->err, BH_FULL, "the document does not fit into %zu bytes as JSON",
                              r->out->max ? r->out->max : r->out->size);
    }
    if (r->documents == 0)
        return bh_err_set(r->err, BH_INVALID, "line 1: the document is empty");
    return BH_OK;
}

bh_rc
bh_yaml_to_json(const char *text, size_t length, struct bh_buf *ret_json, struct bh_err *err)
{
    BH_AUTO(yaml_reader_fini) struct yaml_reader *r = NULL;
    const struct bh_buf before = *ret_json;
    bh_rc rc;

    if (length == 0)
        return bh_err_set(err, BH_INVALID, "line 1: the document is empty");
    if (length > BH_JSON_BYTES_MAX)
        return bh_err_set(err, BH_FULL, "document of %zu bytes is larger than %d", length, BH_JSON_BYTES_MAX);
    if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
        text += 3;
        length -= 3;
    }
    r = calloc(1, sizeof *r);
    BH_ASSERT(r && yaml_parser_initialize(&r->parser));
    r->out = ret_json;
    r->err = err;
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)text, length);
    rc = yaml_read_events(r, text);
    if (rc != BH_OK) {
        ret_json->length = before.length;
        ret_json->overflow = before.overflow;
    }
    return rc;
}
