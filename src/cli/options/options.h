#ifndef BH_CLI_OPTIONS_OPTIONS_H
#define BH_CLI_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The command line, read by tables/commands.tbl. */

enum bh_option_kind {
    BH_OPT_KIND_FLAG,
    BH_OPT_KIND_TEXT,
    BH_OPT_KIND_NUMBER,
    BH_OPT_KIND_SPAN,
    BH_OPT_KIND_TEXTS,
    BH_OPT_KIND_CHOICE
};

enum bh_option_id {
#define BH_OPTION(id, ...) BH_OPT_##id,
#include "tables/commands.tbl"
    BH_OPTIONS
};

enum bh_command_id {
#define BH_COMMAND(id, ...) BH_CMD_##id,
#include "tables/commands.tbl"
    BH_COMMANDS
};

/* Values of bh_cli_command.most beside plain numbers. */
enum { BH_ARGUMENTS_MANY = 1000, BH_ARGUMENTS_PROGRAM = 1001 };

struct bh_option {
    const char *name;
    char letter;
    enum bh_option_kind kind;
    const char *value, *key, *doc;
};

struct bh_cli_command {
    const char *name, *arguments;
    uint32_t least, most;
    const char *operations, *options, *summary, *details;
};

extern const struct bh_option bh_cli_options[BH_OPTIONS];
extern const struct bh_cli_command bh_cli_commands[BH_COMMANDS];
extern const char bh_cli_global_options[];

enum { BH_ARGS_MAX = 1024, BH_OPTION_TEXTS_MAX = 64 };

struct bh_option_value {
    bool given;
    const char *text;   /* as written; the last one of TEXTS */
    uint64_t number;    /* NUMBER; nanoseconds of SPAN */
    const char **texts; /* TEXTS */
    uint32_t count;
};

/* A command line that was understood; texts point into argv. */
struct bh_args {
    enum bh_command_id command;
    struct bh_option_value options[BH_OPTIONS];
    const char **arguments; /* not options, in order; NULL-terminated */
    uint32_t count;
    bool program;    /* there was a "--" */
    uint32_t before; /* how many of the arguments stood before it; 0 without one */
};

/* A word of the command line or of the environment that goes into a request.  BH_INVALID: it is not
 * UTF-8, and JSON could not say it. */
BH_MUST_USE bh_rc bh_word_check(const char *word, struct bh_err *err);

/* Read the command line; argv[0] is the program.  Release with bh_args_fini on every
 * outcome.  With --help, or for the command `help`, the number of arguments is not
 * judged.
 *   BH_INVALID  an unknown command or option, a missing or unexpected argument, a
 *               value of the wrong kind; ret_args->command is BH_COMMANDS when no
 *               command was understood */
BH_MUST_USE bh_rc bh_args_parse(int argc, char **argv, struct bh_args *ret_args, struct bh_err *err);
void bh_args_fini(struct bh_args *args);

/* The command of that name ("audit verify"), or BH_COMMANDS. */
enum bh_command_id bh_command_find(const char *name);

/* Whether the command takes the option. */
bool bh_command_takes(enum bh_command_id command, enum bh_option_id option);

/* Whether `word` is in `list`, whose words are separated by `separator`. */
bool bh_words_have(const char *list, char separator, const char *word, size_t length);

#endif
