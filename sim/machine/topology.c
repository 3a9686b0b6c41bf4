#include "sim/machine/topology.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bulkhead/nvml_abi.h"
#include "sim/machine/geometry.h"
#include "sim/machine/partition.h"

#define DEFAULT_DRIVER "580.159.03"
#define CAPS_MAJOR 235
#define CONTEXT_MIB_MOST 65536

struct topology_line {
    uint32_t count, model, context_mib;
    bool mig, no_unbind;
};

struct topology_word {
    const char *text;
    size_t length;
};

/* Take the next blank-separated word of the line; length 0 at its end. */
static struct topology_word
topology_next_word(const char **cursor)
{
    struct topology_word word;

    *cursor += strspn(*cursor, " \t\r");
    word.text = *cursor;
    word.length = strcspn(*cursor, " \t\r\n#");
    *cursor += word.length;
    return word;
}

static bool
topology_parse_number(struct topology_word word, uint64_t limit, uint64_t *ret_number)
{
    uint64_t number = 0;

    if (word.length == 0 || word.length > 18)
        return false;
    for (size_t i = 0; i < word.length; i++) {
        if (word.text[i] < '0' || word.text[i] > '9')
            return false;
        number = number * 10 + (uint64_t)(word.text[i] - '0');
    }
    *ret_number = number;
    return number <= limit;
}

static bool
topology_is_word(struct topology_word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.text, text, word.length) == 0;
}

static bool
topology_parse_switch(struct topology_word value, bool *ret_on)
{
    *ret_on = topology_is_word(value, "on");
    return *ret_on || topology_is_word(value, "off");
}

static bool
topology_parse_driver(struct topology_word value, char driver[32])
{
    if (value.length == 0 || value.length >= 32 || strspn(value.text, "0123456789.") < value.length)
        return false;
    memcpy(driver, value.text, value.length);
    driver[value.length] = '\0';
    return true;
}

static bool
topology_parse_option(struct topology_word word, struct topology_line *line, struct sim_system *system)
{
    const char *sign = memchr(word.text, '=', word.length);
    struct topology_word key, value;
    bool on = false;

    if (sign == NULL)
        return false;
    key = (struct topology_word){ word.text, (size_t)(sign - word.text) };
    value = (struct topology_word){ sign + 1, word.length - key.length - 1 };
    if (topology_is_word(key, "mig")) {
        bool valid = topology_parse_switch(value, &on);
        line->mig = on;
        return valid;
    }
    if (topology_is_word(key, "unbind")) {
        bool valid = topology_parse_switch(value, &on);
        line->no_unbind = !on;
        return valid;
    }
    if (topology_is_word(key, "context")) {
        uint64_t mib;

        if (!topology_parse_number(value, CONTEXT_MIB_MOST, &mib))
            return false;
        line->context_mib = (uint32_t)mib;
        return true;
    }
    if (topology_is_word(key, "seed"))
        return topology_parse_number(value, UINT64_MAX, &system->seed);
    return topology_is_word(key, "driver") && topology_parse_driver(value, system->driver);
}

/* "8x H100-80GB": the count may stand apart from the model. */
static bool
topology_parse_boards(const char **cursor, struct topology_line *line)
{
    struct topology_word word = topology_next_word(cursor);
    uint64_t count = 0;
    int model;

    if (word.length < 2 || word.text[word.length - 1] != 'x')
        return false;
    word.length--;
    if (!topology_parse_number(word, SIM_GPUS_MAX, &count) || count == 0)
        return false;
    word = topology_next_word(cursor);
    model = sim_model_find(word.text, word.length);
    if (model < 0)
        return false;
    line->count = (uint32_t)count;
    line->model = (uint32_t)model;
    return true;
}

static void
topology_add_gpu(struct sim_state *state, const struct topology_line *line)
{
    uint32_t index = state->system.gpus++;
    const struct sim_model *model = sim_model_at(line->model);
    struct sim_gpu *gpu = &state->gpu[index];

    *gpu = (struct sim_gpu){ .birth = ++state->births,
                             .model = line->model,
                             .index = index,
                             .minor = index,
                             .bus = 0x10 + index * 6,
                             .mig_current = line->mig,
                             .mig_pending = line->mig,
                             .unbind = !line->no_unbind,
                             .persistence = 1,
                             .ecc_mode = 1,
                             .context_mib = line->context_mib,
                             .power_limit_mw = model->board_w * 1000 };
}

static bool
topology_parse_line(const char *text, struct sim_state *state)
{
    const char *cursor = text;
    struct topology_line line = { .context_mib = SIM_CONTEXT_MIB };
    struct topology_word word = topology_next_word(&cursor);

    if (word.length == 0)
        return true;
    if (!topology_is_word(word, "node:") || !topology_parse_boards(&cursor, &line))
        return false;
    for (word = topology_next_word(&cursor); word.length > 0; word = topology_next_word(&cursor))
        if (!topology_parse_option(word, &line, &state->system))
            return false;
    if (state->system.gpus + line.count > SIM_GPUS_MAX)
        return false;
    for (uint32_t i = 0; i < line.count; i++)
        topology_add_gpu(state, &line);
    return true;
}

int
sim_topology_parse(const char *text, struct sim_state *ret_state)
{
    int number = 1;

    memset(ret_state, 0, sizeof(*ret_state));
    memcpy(ret_state->system.driver, DEFAULT_DRIVER, sizeof(DEFAULT_DRIVER));
    ret_state->system.caps_major = CAPS_MAJOR;
    for (const char *line = text; *line != '\0'; number++) {
        if (!topology_parse_line(line, ret_state))
            return number;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    for (uint32_t i = 0; i < ret_state->system.gpus; i++)
        ret_state->gpu[i].uuid = sim_uuid_make(ret_state->system.seed + 0x47505500, i);
    return ret_state->system.gpus > 0 ? 0 : number;
}
