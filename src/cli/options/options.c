#include "cli/options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/attr.h"
#include "base/buf.h"
#include "base/nearest.h"
#include "base/num.h"
#include "base/utf8.h"

#define MANY BH_ARGUMENTS_MANY
#define PROGRAM BH_ARGUMENTS_PROGRAM

enum { OPTION_NAME_MAX = 32 };

const struct bh_option bh_cli_options[BH_OPTIONS] = {
#define BH_OPTION(id, name, letter, kind, value, key, doc)                                                   \
    [BH_OPT_##id] = { name, letter, BH_OPT_KIND_##kind, value, key, doc },
#include "tables/commands.tbl"
};

const struct bh_cli_command bh_cli_commands[BH_COMMANDS] = {
#define BH_COMMAND(id, name, arguments, least, most, operations, options, summary, details)                  \
    [BH_CMD_##id] = { name, arguments, least, most, operations, options, summary, details },
#include "tables/commands.tbl"
};

const char bh_cli_global_options[] = BH_GLOBAL_OPTIONS;

/* What is left of a command line. */
struct options_reader {
    int argc, at;
    char **argv;
    struct bh_args *args;
    struct bh_err *err;
};

bool
bh_words_have(const char *list, char separator, const char *word, size_t length)
{
    while (*list) {
        const char *end = strchrnul(list, separator);

        if ((size_t)(end - list) == length && strncmp(list, word, length) == 0)
            return true;
        list = *end ? end + 1 : end;
    }
    return false;
}

enum bh_command_id
bh_command_find(const char *name)
{
    for (uint32_t i = 0; i < BH_COMMANDS; i++)
        if (strcmp(bh_cli_commands[i].name, name) == 0)
            return (enum bh_command_id)i;
    return BH_COMMANDS;
}

bool
bh_command_takes(enum bh_command_id command, enum bh_option_id option)
{
    const char *name = bh_cli_options[option].name;

    return bh_words_have(bh_cli_global_options, ' ', name, strlen(name))
           || (command < BH_COMMANDS
               && bh_words_have(bh_cli_commands[command].options, ' ', name, strlen(name)));
}

/* Is `word` the first word of a command of two? */
static bool
options_is_group(const char *word)
{
    size_t length = strlen(word);

    for (uint32_t i = 0; i < BH_COMMANDS; i++)
        if (strncmp(bh_cli_commands[i].name, word, length) == 0 && bh_cli_commands[i].name[length] == ' ')
            return true;
    return false;
}

struct habit {
    const char *words, *hint;
};

static const struct habit command_habits[] = {
#define BH_HABIT(words, hint) { words, hint },
#include "tables/commands.tbl"
};

static const struct habit option_habits[] = {
#define BH_OPTION_HABIT(words, hint) { words, hint },
#include "tables/commands.tbl"
};

/* What does here what the word does elsewhere, or NULL. */
static const char *
options_find_habit(const struct habit *habits, size_t count, const char *word, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (bh_words_have(habits[i].words, ' ', word, length))
            return habits[i].hint;
    return NULL;
}

/* "it needs a second word: tail, size, verify" */
static bh_rc
options_hint_second(const char *first, struct bh_err *err)
{
    char text[160];
    size_t length = strlen(first);
    struct bh_buf words;

    bh_buf_init_fixed(&words, text, sizeof text);
    for (uint32_t i = 0; i < BH_COMMANDS; i++) {
        const char *name = bh_cli_commands[i].name;

        if (strncmp(name, first, length) == 0 && name[length] == ' ')
            bh_buf_printf(&words, "%s %s", words.length ? "," : "", name + length + 1);
    }
    return bh_err_hint(err, "a second word is missing:%s", bh_buf_text(&words));
}

static bh_rc
options_unknown_command(const char *name, struct bh_err *err)
{
    const char *hint = options_find_habit(command_habits, BH_COUNT(command_habits), name, strlen(name));
    struct bh_nearest nearest = { 0 };

    bh_err_set(err, BH_INVALID, "no such command: %.80s", name);
    if (options_is_group(name))
        return options_hint_second(name, err);
    if (hint)
        return bh_err_hint(err, "%s", hint);
    for (uint32_t i = 0; i < BH_COMMANDS; i++)
        bh_nearest_try(&nearest, name, bh_cli_commands[i].name);
    if (nearest.word)
        return bh_err_hint(err, "did you mean bulkhead %s? bulkhead help lists the commands", nearest.word);
    return bh_err_hint(err, "bulkhead help lists the commands");
}

/* Take a word that is no option while the command is not known yet. */
static bh_rc
options_parse_command(struct options_reader *r, const char *word)
{
    char name[64];
    size_t length = strlen(word);

    if (length >= sizeof name / 2)
        return options_unknown_command(word, r->err);
    memcpy(name, word, length + 1);
    if (options_is_group(word) && r->at < r->argc && strlen(r->argv[r->at]) < sizeof name / 2) {
        name[length] = ' ';
        memcpy(name + length + 1, r->argv[r->at], strlen(r->argv[r->at]) + 1);
        if (bh_command_find(name) < BH_COMMANDS)
            r->at++;
        else
            name[length] = '\0';
    }
    r->args->command = bh_command_find(name);
    return r->args->command < BH_COMMANDS ? BH_OK : options_unknown_command(name, r->err);
}

static bh_rc
options_check_choice(const struct bh_option *option, const char *text, struct bh_err *err)
{
    char words[128], *left = words;
    struct bh_nearest nearest = { 0 };
    const char *word;

    if (bh_words_have(option->value, '|', text, strlen(text)))
        return BH_OK;
    snprintf(words, sizeof words, "%s", option->value);
    while ((word = strsep(&left, "|")))
        bh_nearest_try(&nearest, text, word);
    bh_err_set(err, BH_INVALID, "--%s: \"%.80s\" is not one of %s", option->name, text, option->value);
    return nearest.word ? bh_err_hint(err, "did you mean --%s %s?", option->name, nearest.word)
                        : bh_err_hint(err, "--%s: %s", option->name, option->doc);
}

static bh_rc
options_put_value(struct bh_args *args, enum bh_option_id id, const char *text, struct bh_err *err)
{
    const struct bh_option *option = &bh_cli_options[id];
    struct bh_option_value *value = &args->options[id];
    bh_rc rc = BH_OK;

    if (option->kind == BH_OPT_KIND_NUMBER)
        rc = bh_parse_u64(text, &value->number, err);
    else if (option->kind == BH_OPT_KIND_SPAN)
        rc = bh_parse_span(text, &value->number, err);
    if (rc == BH_OK && id == BH_OPT_LIMIT && value->number == 0)
        rc = bh_err_set(err, BH_RANGE, "must be at least 1");
    if (rc != BH_OK)
        return bh_err_wrap(err, "--%s", option->name);
    if (option->kind == BH_OPT_KIND_CHOICE)
        rc = options_check_choice(option, text, err);
    if (option->kind == BH_OPT_KIND_TEXTS) {
        if (value->count == BH_OPTION_TEXTS_MAX)
            return bh_err_set(err, BH_INVALID, "--%s: given more than %d times", option->name,
                              BH_OPTION_TEXTS_MAX);
        if (!value->texts)
            value->texts = calloc(BH_OPTION_TEXTS_MAX, sizeof *value->texts);
        BH_ASSERT(value->texts);
        value->texts[value->count++] = text;
    }
    value->given = true;
    value->text = text;
    return rc;
}

/* The option named `name` (`length` bytes) or, with length 1 and `letter`, by letter,
 * that the command takes; BH_OPTIONS when there is none. */
static enum bh_option_id
find_option(enum bh_command_id command, const char *name, size_t length, bool letter)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++) {
        const struct bh_option *option = &bh_cli_options[i];
        bool same = letter ? option->letter == *name
                           : strlen(option->name) == length && strncmp(option->name, name, length) == 0;

        if (same && bh_command_takes(command, (enum bh_option_id)i))
            return (enum bh_option_id)i;
    }
    return BH_OPTIONS;
}

/* The option of the command that begins so, if it is the only one; else the one that is spelled
 * nearly so.  NULL: none. */
static const char *
nearest_option(enum bh_command_id command, const char *name, size_t length)
{
    char word[OPTION_NAME_MAX + 1];
    struct bh_nearest nearest = { 0 };
    const char *begins = NULL;
    uint32_t count = 0;

    if (length < 2 || length > OPTION_NAME_MAX)
        return NULL;
    memcpy(word, name, length);
    word[length] = '\0';
    for (uint32_t i = 0; i < BH_OPTIONS; i++) {
        if (!bh_command_takes(command, (enum bh_option_id)i))
            continue;
        bh_nearest_try(&nearest, word, bh_cli_options[i].name);
        if (strncmp(bh_cli_options[i].name, word, length) == 0) {
            begins = bh_cli_options[i].name;
            count++;
        }
    }
    return count == 1 ? begins : nearest.word;
}

static bh_rc
unknown_option(struct options_reader *r, const char *word)
{
    const char *name = r->args->command < BH_COMMANDS ? bh_cli_commands[r->args->command].name : "";

    const char *meant, *option = word + (strncmp(word, "--", 2) == 0 ? 2 : 1);
    size_t length = strcspn(option, "=");

    bh_err_set(r->err, BH_INVALID, "no such option: %.80s", word);
    meant = options_find_habit(option_habits, BH_COUNT(option_habits), option, length);
    if (meant)
        return bh_err_hint(r->err, "%s", meant);
    meant = nearest_option(r->args->command, option, length);
    if (meant)
        return bh_err_hint(r->err, "did you mean --%s?", meant);
    return bh_err_hint(r->err, "bulkhead %s%s--help lists the options", name, *name ? " " : "");
}

/* The next word as the value of an option that has none of its own. */
static bh_rc
options_parse_next(struct options_reader *r, enum bh_option_id id)
{
    if (r->at >= r->argc)
        return bh_err_set(r->err, BH_INVALID, "--%s: %s is missing", bh_cli_options[id].name,
                          bh_cli_options[id].value);
    return options_put_value(r->args, id, r->argv[r->at++], r->err);
}

/* "--name", "--name=value" */
static bh_rc
options_parse_long(struct options_reader *r, const char *word)
{
    const char *name = word + 2, *equals = strchrnul(name, '=');
    enum bh_option_id id = find_option(r->args->command, name, (size_t)(equals - name), false);

    if (id == BH_OPTIONS)
        return unknown_option(r, word);
    if (bh_cli_options[id].kind == BH_OPT_KIND_FLAG) {
        if (*equals)
            return bh_err_set(r->err, BH_INVALID, "--%s takes no value", bh_cli_options[id].name);
        r->args->options[id].given = true;
        return BH_OK;
    }
    return *equals ? options_put_value(r->args, id, equals + 1, r->err) : options_parse_next(r, id);
}

/* "-it" is what fingers know, wherever -t is something else alone. */
static bool
options_is_both(const struct options_reader *r, const char *word)
{
    return (strcmp(word, "-it") == 0 || strcmp(word, "-ti") == 0)
           && bh_command_takes(r->args->command, BH_OPT_TTY);
}

/* "-A", "-Aw", "-ojson", "-o json" */
static bh_rc
options_parse_letters(struct options_reader *r, const char *word)
{
    if (options_is_both(r, word)) {
        r->args->options[BH_OPT_STDIN].given = r->args->options[BH_OPT_TTY].given = true;
        return BH_OK;
    }
    for (const char *letter = word + 1; *letter; letter++) {
        enum bh_option_id id = find_option(r->args->command, letter, 1, true);

        if (id == BH_OPTIONS)
            return unknown_option(r, word);
        if (bh_cli_options[id].kind != BH_OPT_KIND_FLAG)
            return letter[1] ? options_put_value(r->args, id, letter + 1, r->err) : options_parse_next(r, id);
        r->args->options[id].given = true;
    }
    return BH_OK;
}

static void
options_parse_argument(struct options_reader *r, const char *word)
{
    r->args->arguments[r->args->count++] = word;
}

static void
options_parse_rest(struct options_reader *r)
{
    while (r->at < r->argc)
        options_parse_argument(r, r->argv[r->at++]);
}

static bh_rc
options_parse_word(struct options_reader *r)
{
    const char *word = r->argv[r->at++];
    bool known = r->args->command < BH_COMMANDS;

    if (!known
        && (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0
            || (strcmp(word, "-v") == 0 && r->at == r->argc)))
        word = bh_cli_commands[BH_CMD_VERSION].name; /* as of other programs */
    if (strcmp(word, "--") == 0) {
        r->args->program = true;
        r->args->before = r->args->count;
        options_parse_rest(r);
        return BH_OK;
    }
    if (strncmp(word, "--", 2) == 0)
        return options_parse_long(r, word);
    if (*word == '-' && word[1])
        return options_parse_letters(r, word);
    if (!known)
        return options_parse_command(r, word);
    options_parse_argument(r, word);
    /* `run --sku small python -u x.py`: -u is python's; exec has a job before it. */
    if ((r->args->command == BH_CMD_RUN && r->args->count == 1)
        || (r->args->command == BH_CMD_EXEC && r->args->count == 2))
        options_parse_rest(r);
    return BH_OK;
}

bh_rc
bh_word_check(const char *word, struct bh_err *err)
{
    if (bh_utf8_is_valid(word))
        return BH_OK;
    bh_err_set(err, BH_INVALID, "\"%.80s\" is not UTF-8", word);
    return bh_err_hint(
        err, "names, paths and arguments are stored as UTF-8: convert it with iconv, or rename the file");
}

static bh_rc
options_check_count(const struct bh_args *args, struct bh_err *err)
{
    const struct bh_cli_command *command = &bh_cli_commands[args->command];
    bool file = bh_command_takes(args->command, BH_OPT_FILE) && !args->options[BH_OPT_FILE].given;

    if (args->count < command->least)
        bh_err_set(err, BH_INVALID, "%s: missing argument: %s", command->name, command->arguments);
    else if (args->count > command->most && command->most < BH_ARGUMENTS_MANY)
        bh_err_set(err, BH_INVALID, "%s: unexpected argument: %.80s", command->name,
                   args->arguments[command->most]);
    else
        return BH_OK;
    if (file && args->count > command->most)
        return bh_err_hint(err, "name the file with -f: bulkhead %s -f %.80s", command->name,
                           args->arguments[command->most]);
    return bh_err_hint(err, "usage: bulkhead %s [OPTION...] %s", command->name, command->arguments);
}

bh_rc
bh_args_parse(int argc, char **argv, struct bh_args *ret_args, struct bh_err *err)
{
    struct options_reader r = { .argc = argc, .at = 1, .argv = argv, .args = ret_args, .err = err };
    bh_rc rc = BH_OK;

    *ret_args = (struct bh_args){ .command = BH_COMMANDS };
    ret_args->arguments = calloc((size_t)argc + 1, sizeof *ret_args->arguments);
    BH_ASSERT(ret_args->arguments);
    for (int i = 1; i < argc && rc == BH_OK; i++)
        rc = bh_word_check(argv[i], err);
    while (rc == BH_OK && r.at < argc)
        rc = options_parse_word(&r);
    if (rc != BH_OK || ret_args->options[BH_OPT_HELP].given || ret_args->command == BH_CMD_HELP)
        return rc;
    if (ret_args->command == BH_COMMANDS) {
        bh_err_set(err, BH_INVALID, "no command");
        return bh_err_hint(err, "bulkhead help lists the commands");
    }
    return options_check_count(ret_args, err);
}

void
bh_args_fini(struct bh_args *args)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++)
        free(args->options[i].texts);
    free(args->arguments);
    *args = (struct bh_args){ .command = BH_COMMANDS };
}
