#include "sim/machine/control.h"

#include <stdlib.h>
#include <string.h>

#include "sim/machine/errors.h"
#include "sim/machine/partition.h"

struct control_word {
    const char *text;
    size_t length;
};

static const struct {
    const char *name;
    enum sim_rule_kind kind;
    bool about_call, has_number;
} kinds[] = {
    { "hang", SIM_RULE_HANG, true, false },
    { "delay-ms", SIM_RULE_DELAY, true, true },
    { "lost", SIM_RULE_LOST, false, false },
    { "remap-pending", SIM_RULE_REMAP_PENDING, false, false },
    { "remap-failure", SIM_RULE_REMAP_FAILURE, false, false },
    { "leak", SIM_RULE_LEAK, false, false },
    { "stuck", SIM_RULE_STUCK, false, false },
    { "cuda-hang", SIM_RULE_CUDA_HANG, false, false },
    { "cuda-fail", SIM_RULE_CUDA_FAIL, false, false },
    { "cuda-busy", SIM_RULE_CUDA_BUSY, false, false },
    { "recovery", SIM_RULE_RECOVERY, false, true },
    { "thermal-ms", SIM_RULE_THERMAL, false, true },
    { "xid", SIM_RULE_XID, false, true },
    { "ecc-corrected", SIM_RULE_ECC_CORRECTED, false, true },
    { "ecc-uncorrected", SIM_RULE_ECC_UNCORRECTED, false, true },
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool
control_is_word(struct control_word word, const char *text)
{
    return strlen(text) == word.length && memcmp(word.text, text, word.length) == 0;
}

static bool
control_parse_number(struct control_word word, uint64_t *ret_number)
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
    return true;
}

static bool
control_parse_id(struct control_word word, uint32_t *ret_id)
{
    uint64_t number;

    if (!control_parse_number(word, &number) || number >= SIM_NO_ID)
        return false;
    *ret_id = (uint32_t)number;
    return true;
}

static bool
control_parse_kind(struct control_word key, struct control_word value, struct sim_rule *rule)
{
    nvmlReturn_t code;

    if (rule->kind != SIM_RULE_NONE)
        return false;
    if (control_is_word(key, "fail")) {
        rule->kind = SIM_RULE_FAIL;
        if (!sim_error_parse(value.text, value.length, &code))
            return false;
        rule->value = (uint64_t)code;
        return rule->function[0] != '\0';
    }
    for (size_t i = 0; i < COUNT(kinds); i++) {
        if (!control_is_word(key, kinds[i].name))
            continue;
        rule->kind = kinds[i].kind;
        if (kinds[i].about_call != (rule->function[0] != '\0'))
            return false;
        return kinds[i].has_number ? control_parse_number(value, &rule->value) : value.length == 0;
    }
    return false;
}

static bool
control_parse_word(struct control_word word, struct sim_rule *rule)
{
    const char *sign = memchr(word.text, '=', word.length);
    struct control_word key = { word.text, sign == NULL ? word.length : (size_t)(sign - word.text) };
    struct control_word value = { "", 0 };

    if (sign != NULL)
        value = (struct control_word){ sign + 1, word.length - key.length - 1 };
    if (control_is_word(key, "gpu"))
        return control_parse_id(value, &rule->gpu);
    if (control_is_word(key, "gi"))
        return control_parse_id(value, &rule->gi);
    if (control_is_word(key, "ci"))
        return control_parse_id(value, &rule->ci);
    if (control_is_word(key, "count"))
        return control_parse_number(value, &rule->count) && rule->count > 0;
    if (control_is_word(key, "id"))
        return value.length > 0;
    if (word.length > 4 && memcmp(word.text, "nvml", 4) == 0 && sign == NULL) {
        if (word.length >= sizeof(rule->function) || rule->function[0] != '\0')
            return false;
        memcpy(rule->function, word.text, word.length);
        return true;
    }
    return control_parse_kind(key, value, rule);
}

static struct control_word
control_next_word(const char **cursor)
{
    struct control_word word;

    *cursor += strspn(*cursor, " \t\r");
    word.text = *cursor;
    word.length = strcspn(*cursor, " \t\r\n#");
    *cursor += word.length;
    return word;
}

/* FNV-1a over the line and its number: equal lines are different rules. */
static uint64_t
control_line_key(const char *line, int number)
{
    uint64_t key = 0xcbf29ce484222325u ^ (uint64_t)number;

    for (size_t i = 0; line[i] != '\0' && line[i] != '\n'; i++)
        key = (key ^ (unsigned char)line[i]) * 0x100000001b3u;
    return key | 1;
}

/* True for a rule and for a line without one (kind NONE). */
static bool
control_parse_line(const char *line, int number, struct sim_rule *ret_rule)
{
    struct sim_rule rule = { .gpu = SIM_NO_ID, .gi = SIM_NO_ID, .ci = SIM_NO_ID };
    const char *cursor = line;
    struct control_word word = control_next_word(&cursor);
    bool empty = word.length == 0;

    for (; word.length > 0; word = control_next_word(&cursor))
        if (!control_parse_word(word, &rule))
            return false;
    rule.key = control_line_key(line, number);
    *ret_rule = rule;
    if (rule.function[0] == '\0' && rule.gpu == SIM_NO_ID)
        return empty;
    return rule.kind != SIM_RULE_NONE;
}

void
sim_control_parse(const char *text, struct sim_rules *ret_rules)
{
    struct sim_rule rule;

    memset(ret_rules, 0, sizeof(*ret_rules));
    for (int number = 1; *text != '\0'; number++) {
        bool valid = control_parse_line(text, number, &rule) && ret_rules->count < SIM_RULES_MAX;

        if (valid && rule.kind != SIM_RULE_NONE)
            ret_rules->rule[ret_rules->count++] = rule;
        if (!valid && ret_rules->bad_line == 0)
            ret_rules->bad_line = number;
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
}

static const struct sim_rule_use *
control_find_use(const struct sim_rule_use *uses, uint64_t key)
{
    for (unsigned i = 0; i < SIM_RULES_MAX; i++)
        if (uses[i].key == key)
            return &uses[i];
    return NULL;
}

const struct sim_rule *
sim_control_match(const struct sim_rules *rules, const char *function, uint32_t gpu,
                  const struct sim_rule_use *uses)
{
    for (unsigned i = 0; i < rules->count; i++) {
        const struct sim_rule *rule = &rules->rule[i];
        const struct sim_rule_use *use = control_find_use(uses, rule->key);

        if (strcmp(rule->function, function) != 0)
            continue;
        if (rule->gpu != SIM_NO_ID && rule->gpu != gpu)
            continue;
        if (rule->count == 0 || use == NULL || use->uses < rule->count)
            return rule;
    }
    return NULL;
}

bool
sim_control_use(struct sim_state *state, const struct sim_rule *rule)
{
    struct sim_rule_use *use = (struct sim_rule_use *)control_find_use(state->rule, rule->key);

    if (use == NULL)
        use = (struct sim_rule_use *)control_find_use(state->rule, 0);
    if (use == NULL || use->uses >= rule->count)
        return false;
    use->key = rule->key;
    use->uses++;
    return true;
}

void
sim_event_add(struct sim_state *state, const struct sim_event *event)
{
    uint64_t seq = ++state->event_seq;

    state->event[seq % SIM_EVENTS_MAX] = *event;
    state->event[seq % SIM_EVENTS_MAX].seq = seq;
}

static bool
control_still_stands(const struct sim_rules *rules, uint64_t key)
{
    for (unsigned i = 0; i < rules->count; i++)
        if (rules->rule[i].key == key)
            return true;
    return false;
}

/* Forget the uses of lines that are gone, so that a line written again fires
 * again. */
static bool
control_forget_uses(const struct sim_rules *rules, struct sim_state *state)
{
    bool changed = false;

    for (unsigned i = 0; i < SIM_RULES_MAX; i++) {
        if (state->rule[i].key == 0 || control_still_stands(rules, state->rule[i].key))
            continue;
        state->rule[i] = (struct sim_rule_use){ 0 };
        changed = true;
    }
    return changed;
}

static void
control_count_errors(const struct sim_rule *rule, struct sim_gpu *gpu)
{
    bool corrected = rule->kind == SIM_RULE_ECC_CORRECTED;
    uint64_t *counts = corrected ? gpu->ecc.corrected : gpu->ecc.uncorrected;
    struct sim_gi *gi = (struct sim_gi *)sim_gi_find(gpu, rule->gi);

    counts[NVML_VOLATILE_ECC] += rule->value;
    counts[NVML_AGGREGATE_ECC] += rule->value;
    if (gi != NULL && !corrected)
        gi->ecc_uncorrected += rule->value;
}

/* What happens once. */
static bool
control_happen(const struct sim_rule *rule, struct sim_state *state, struct sim_gpu *gpu)
{
    struct sim_rule once = *rule;
    struct sim_event event = { .gpu = gpu->index, .gi = rule->gi, .ci = rule->ci };

    once.count = 1;
    if (!sim_control_use(state, &once))
        return false;
    event.value = rule->value;
    event.type = nvmlEventTypeXidCriticalError;
    if (rule->kind != SIM_RULE_XID) {
        control_count_errors(rule, gpu);
        event.type = rule->kind == SIM_RULE_ECC_CORRECTED ? nvmlEventTypeSingleBitEccError
                                                          : nvmlEventTypeDoubleBitEccError;
    }
    sim_event_add(state, &event);
    return true;
}

static bool
control_set_level(uint32_t *level, uint32_t value)
{
    bool changed = *level != value;

    *level = value;
    return changed;
}

static bool
control_has_number(enum sim_rule_kind kind)
{
    return kind == SIM_RULE_RECOVERY || kind == SIM_RULE_THERMAL;
}

/* The level that stands; 0: none. */
static uint32_t
control_level_of(const struct sim_rules *rules, enum sim_rule_kind kind, uint32_t gpu)
{
    for (unsigned i = 0; i < rules->count; i++)
        if (rules->rule[i].kind == kind && rules->rule[i].gpu == gpu)
            return control_has_number(kind) ? (uint32_t)rules->rule[i].value : 1;
    return 0;
}

static uint32_t
control_memory_faults(const struct sim_rules *rules, uint32_t gpu)
{
    return control_level_of(rules, SIM_RULE_LEAK, gpu) * SIM_FAULT_LEAK
           | control_level_of(rules, SIM_RULE_STUCK, gpu) * SIM_FAULT_STUCK
           | control_level_of(rules, SIM_RULE_CUDA_HANG, gpu) * SIM_FAULT_CUDA_HANG
           | control_level_of(rules, SIM_RULE_CUDA_FAIL, gpu) * SIM_FAULT_CUDA_FAIL
           | control_level_of(rules, SIM_RULE_CUDA_BUSY, gpu) * SIM_FAULT_CUDA_BUSY;
}

bool
sim_control_apply(const struct sim_rules *rules, struct sim_state *state)
{
    bool changed = control_forget_uses(rules, state);

    for (uint32_t i = 0; i < state->system.gpus; i++) {
        struct sim_gpu *gpu = &state->gpu[i];

        changed |= control_set_level(&gpu->lost, control_level_of(rules, SIM_RULE_LOST, i));
        changed |=
            control_set_level(&gpu->ecc.remap_pending, control_level_of(rules, SIM_RULE_REMAP_PENDING, i));
        changed |=
            control_set_level(&gpu->ecc.remap_failure, control_level_of(rules, SIM_RULE_REMAP_FAILURE, i));
        changed |= control_set_level(&gpu->memory_faults, control_memory_faults(rules, i));
        changed |= control_set_level(&gpu->ecc.recovery, control_level_of(rules, SIM_RULE_RECOVERY, i));
        changed |= control_set_level(&gpu->ecc.thermal_ms, control_level_of(rules, SIM_RULE_THERMAL, i));
    }
    for (unsigned i = 0; i < rules->count; i++) {
        const struct sim_rule *rule = &rules->rule[i];

        if (rule->kind >= SIM_RULE_XID && rule->gpu < state->system.gpus)
            changed |= control_happen(rule, state, &state->gpu[rule->gpu]);
    }
    return changed;
}
