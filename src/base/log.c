#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/time.h"

static const struct {
    const char *name, *sentence;
    enum bh_log_level level;
} events[] = {
#define BH_EVENT(id, severity, doc) [BH_EVENT_##id] = { #id, doc, BH_LOG_##severity },
#include "tables/events.tbl"
#undef BH_EVENT
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };

static struct {
    const char *program;
    bool json;
    enum bh_log_level level;
} setup = { "bulkhead", false, BH_LOG_INFO };

void
bh_log_setup(const char *program, bool json, enum bh_log_level level)
{
    setup.program = program;
    setup.json = json;
    setup.level = level;
}

static void
log_put_name(struct bh_buf *out, const char *name)
{
    for (; *name; name++)
        bh_buf_putc(out, *name >= 'A' && *name <= 'Z' ? (char)(*name + 32) : *name);
}

/* A line to write; `cut` is the most of each text field that goes into it. */
struct log_line {
    struct bh_buf *out;
    enum bh_log_event event;
    size_t cut;
};

static const char *
log_text_of(const struct bh_log_field *field)
{
    return field->text ? field->text : "";
}

static void
log_put_json(const struct log_line *line, const struct bh_log_field *field)
{
    enum bh_log_event event = line->event;
    struct bh_buf *out = line->out;
    struct bh_json_writer w = bh_json_begin(out);
    char memory[64];
    struct bh_buf name;

    bh_buf_init_fixed(&name, memory, sizeof memory);
    log_put_name(&name, events[event].name);
    bh_json_open(&w, NULL, '{');
    bh_json_ns(&w, "ts", bh_time_now());
    bh_json_str(&w, "level", level_names[events[event].level]);
    bh_json_str(&w, "program", setup.program);
    bh_json_str(&w, "event", bh_buf_text(&name));
    for (; field->kind != BH_LOG_END; field++) {
        if (field->kind == BH_LOG_STR)
            bh_json_strn(&w, field->name, log_text_of(field), strnlen(log_text_of(field), line->cut));
        else
            bh_json_u64(&w, field->name, field->number);
    }
    bh_json_close(&w, '}');
}

static void
log_put_text(const struct log_line *line, const struct bh_log_field *field)
{
    struct bh_buf *out = line->out;

    bh_time_put_utc(out, bh_time_now());
    bh_buf_printf(out, " %s %s: %s", level_names[events[line->event].level], setup.program,
                  events[line->event].sentence);
    for (; field->kind != BH_LOG_END; field++) {
        bh_buf_printf(out, " %s=", field->name);
        if (field->kind == BH_LOG_STR)
            bh_json_put_strn(out, log_text_of(field), strnlen(log_text_of(field), line->cut));
        else
            bh_buf_put_u64(out, field->number);
    }
}

void
bh_log_write(enum bh_log_event event, const struct bh_log_field *fields)
{
    static const size_t cuts[] = { SIZE_MAX, 64, 0 }; /* until the line fits */
    char memory[2048];
    struct bh_buf out;

    if (events[event].level > setup.level)
        return;
    for (size_t i = 0; i < BH_COUNT(cuts); i++) {
        bh_buf_init_fixed(&out, memory, sizeof memory - 1);
        (setup.json ? log_put_json : log_put_text)(&(struct log_line){ &out, event, cuts[i] }, fields);
        if (!out.overflow)
            break;
    }
    memory[out.length] = '\n';
    if (write(STDERR_FILENO, memory, out.length + 1) < 0)
        return; /* nowhere left to report it */
}
