#include "cli/options/help.h"

#include <string.h>

enum { WRAP_COLUMNS = 78, NAME_COLUMNS = 14, OPTION_COLUMNS = 28 };

/* Append `text` in lines, each beginning in column `left`; `at` is the column now. */
static void
help_put_wrapped(struct bh_buf *out, const char *text, size_t left, size_t at)
{
    bool blank = false; /* a blank is due before the next word */

    while (*text) {
        size_t word = strcspn(text, " ");

        if (blank && at + 1 + word > WRAP_COLUMNS) {
            bh_buf_putc(out, '\n');
            for (at = 0; at < left; at++)
                bh_buf_putc(out, ' ');
            blank = false;
        }
        if (blank)
            bh_buf_putc(out, ' ');
        bh_buf_put(out, text, word);
        at += word + blank;
        blank = true;
        text += word + strspn(text + word, " ");
    }
    bh_buf_putc(out, '\n');
}

static void
help_pad(struct bh_buf *out, size_t line_start, size_t column)
{
    do
        bh_buf_putc(out, ' ');
    while (!out->overflow && out->length - line_start < column);
}

static void
help_put_option(struct bh_buf *out, const struct bh_option *option)
{
    size_t start = out->length;

    bh_buf_puts(out, "  ");
    if (option->letter)
        bh_buf_printf(out, "-%c, ", option->letter);
    else
        bh_buf_puts(out, "    ");
    bh_buf_printf(out, "--%s", option->name);
    if (*option->value)
        bh_buf_printf(out, " %s", option->value);
    if (out->length - start >= OPTION_COLUMNS) {
        bh_buf_putc(out, '\n');
        start = out->length;
    }
    help_pad(out, start, OPTION_COLUMNS);
    help_put_wrapped(out, option->doc, OPTION_COLUMNS, OPTION_COLUMNS);
}

/* The options named in `list`, in the table's order. */
static void
help_put_options(struct bh_buf *out, const char *list)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++) {
        const char *name = bh_cli_options[i].name;

        if (bh_words_have(list, ' ', name, strlen(name)))
            help_put_option(out, &bh_cli_options[i]);
    }
}

void
bh_help_overview(struct bh_buf *out)
{
    bh_buf_puts(out, "usage: bulkhead [OPTION...] COMMAND [ARGUMENT...]\n\n"
                     "Shares GPUs between tenants who do not trust each other.\n\ncommands:\n");
    for (uint32_t i = 0; i < BH_COMMANDS; i++) {
        size_t start = out->length;

        bh_buf_printf(out, "  %s", bh_cli_commands[i].name);
        help_pad(out, start, NAME_COLUMNS + 2);
        help_put_wrapped(out, bh_cli_commands[i].summary, NAME_COLUMNS + 2, NAME_COLUMNS + 2);
    }
    bh_buf_puts(out, "\noptions of every command:\n");
    help_put_options(out, bh_cli_global_options);
    bh_buf_puts(out, "\n`bulkhead COMMAND --help` explains a command; the manual page is bulkhead(1).\n");
}

void
bh_help_command(struct bh_buf *out, enum bh_command_id id)
{
    const struct bh_cli_command *command = &bh_cli_commands[id];

    bh_buf_printf(out, "usage: bulkhead %s%s%s%s\n\n", command->name, *command->options ? " [OPTION...]" : "",
                  *command->arguments ? " " : "", command->arguments);
    bh_buf_printf(out, "%c", command->summary[0] - ('a' - 'A'));
    help_put_wrapped(out, command->summary + 1, 0, 1);
    if (*command->details) {
        bh_buf_putc(out, '\n');
        help_put_wrapped(out, command->details, 0, 0);
    }
    if (*command->options) {
        bh_buf_puts(out, "\noptions:\n");
        help_put_options(out, command->options);
    }
    bh_buf_puts(out, "\noptions of every command:\n");
    help_put_options(out, bh_cli_global_options);
}

/* ---- completion ---- */

static void
help_put_option_words(struct bh_buf *out, const char *list)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++) {
        const struct bh_option *option = &bh_cli_options[i];

        if (!bh_words_have(list, ' ', option->name, strlen(option->name)))
            continue;
        bh_buf_printf(out, " --%s", option->name);
        if (option->letter)
            bh_buf_printf(out, " -%c", option->letter);
    }
}

/* First words of commands, each once. */
static void
help_put_first_words(struct bh_buf *out)
{
    const char *last = "";
    size_t last_length = 0;

    for (uint32_t i = 0; i < BH_COMMANDS; i++) {
        const char *name = bh_cli_commands[i].name;
        size_t length = strcspn(name, " ");

        if (length == last_length && strncmp(name, last, length) == 0)
            continue;
        bh_buf_putc(out, ' ');
        bh_buf_put(out, name, length);
        last = name;
        last_length = length;
    }
}

/* Cases that offer the second words: "audit) words="tail verify";;" */
static void
help_put_second_words(struct bh_buf *out)
{
    for (uint32_t i = 0; i < BH_COMMANDS; i++) {
        const char *name = bh_cli_commands[i].name, *blank = strchr(name, ' ');
        size_t length = blank ? (size_t)(blank - name) : 0;

        if (!blank || (i > 0 && strncmp(bh_cli_commands[i - 1].name, name, length + 1) == 0))
            continue;
        bh_buf_printf(out, "    %.*s) words=\"", (int)length, name);
        for (uint32_t j = i; j < BH_COMMANDS; j++)
            if (strncmp(bh_cli_commands[j].name, name, length + 1) == 0)
                bh_buf_printf(out, "%s%s", j > i ? " " : "", bh_cli_commands[j].name + length + 1);
        bh_buf_puts(out, "\" ;;\n");
    }
}

/* Words of a command's arguments that are typed literally: small letters alone. */
static void
help_put_argument_words(struct bh_buf *out, const char *arguments)
{
    static const char small[] = "abcdefghijklmnopqrstuvwxyz", between[] = " []|.";

    while (*(arguments += strspn(arguments, between))) {
        size_t length = strcspn(arguments, between);

        if (strspn(arguments, small) == length) {
            bh_buf_putc(out, ' ');
            bh_buf_put(out, arguments, length);
        }
        arguments += length;
    }
}

static void
help_put_choices(struct bh_buf *out)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++) {
        const struct bh_option *option = &bh_cli_options[i];

        if (option->kind != BH_OPT_KIND_CHOICE)
            continue;
        bh_buf_printf(out, "    --%s", option->name);
        if (option->letter)
            bh_buf_printf(out, " | -%c", option->letter);
        bh_buf_puts(out, ") COMPREPLY=($(compgen -W \"");
        for (const char *c = option->value; *c; c++)
            bh_buf_putc(out, *c == '|' ? ' ' : *c);
        bh_buf_puts(out, "\" -- \"$current\")); return ;;\n");
    }
}

void
bh_help_completion(struct bh_buf *out)
{
    bh_buf_puts(out, "# bash completion for bulkhead, made from tables/commands.tbl\n"
                     "_bulkhead() {\n"
                     "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}\n"
                     "    local first='' second='' word words=''\n"
                     "    COMPREPLY=()\n"
                     "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
                     "        case $word in -*) continue ;; esac\n"
                     "        if [ -z \"$first\" ]; then first=$word; else second=$word; break; fi\n"
                     "    done\n"
                     "    case $before in\n");
    help_put_choices(out);
    bh_buf_puts(out, "    --filename | --site | --token-file | --ca-file | --store | --records | "
                     "--vkey | --socket) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n"
                     "    --dir) COMPREPLY=($(compgen -d -- \"$current\")); return ;;\n"
                     "    esac\n"
                     "    case $first in\n    '') words=\"");
    help_put_first_words(out);
    bh_buf_puts(out, "\" ;;\n");
    help_put_second_words(out);
    bh_buf_puts(out, "    get) words=\"site tenants skus gpus nodes jobs tokens records checkpoints\" ;;\n"
                     "    esac\n"
                     "    case $first\\ $second in\n");
    for (uint32_t i = 0; i < BH_COMMANDS; i++) {
        const char *name = bh_cli_commands[i].name, *blank = strchr(name, ' ');

        bh_buf_printf(out, "    %.*s\\ %s%s) words+=\"", (int)strcspn(name, " "), name,
                      blank ? blank + 1 : "", blank ? "" : "*");
        help_put_argument_words(out, bh_cli_commands[i].arguments);
        help_put_option_words(out, bh_cli_commands[i].options);
        bh_buf_puts(out, "\" ;;\n");
    }
    bh_buf_puts(out, "    esac\n    words+=\"");
    help_put_option_words(out, bh_cli_global_options);
    bh_buf_puts(out, "\"\n    case $first in submit | apply) [ \"${current:0:1}\" = - ] || "
                     "{ COMPREPLY=($(compgen -f -- \"$current\")); return; } ;; esac\n"
                     "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\n"
                     "complete -o default -F _bulkhead bulkhead\n");
}
