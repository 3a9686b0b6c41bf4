#include "base/modes.h"

#include <string.h>

static void
print_usage(const char *program, const struct bh_mode *modes, size_t count, FILE *out)
{
    const char *lead = "usage:";

    for (size_t i = 0; i < count; i++) {
        if (!modes[i].arguments)
            continue;
        fprintf(out, "%-6s %s %s %s\n", lead, program, modes[i].word, modes[i].arguments);
        lead = "";
    }
    fprintf(out, "       %s --help | --version\n", program);
}

/* Under the mode's word, each line moved in. */
static void
print_mode(const struct bh_mode *mode, FILE *out)
{
    const char *line = mode->help;

    fprintf(out, "\n%s\n", mode->word);
    while (*line) {
        int length = (int)strcspn(line, "\n");

        fprintf(out, "    %.*s\n", length, line);
        line += length + 1;
    }
}

void
bh_modes_print(const char *program, const struct bh_mode *modes, size_t count, FILE *out)
{
    print_usage(program, modes, count, out);
    for (size_t i = 0; i < count; i++)
        if (modes[i].help)
            print_mode(&modes[i], out);
}

int
bh_modes_run(const char *program, const struct bh_mode *modes, size_t count, int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < count; i++)
        if (strcmp(modes[i].word, argv[1]) == 0 && argc - 2 >= modes[i].least)
            return modes[i].run(argc - 2, argv + 2);
    print_usage(program, modes, count, stderr);
    return BH_MODE_USAGE;
}

int
bh_mode_report(const char *program, bh_rc rc, const struct bh_err *err)
{
    if (rc == BH_OK)
        return ferror(stdout) ? BH_MODE_FAILED : BH_MODE_OK;
    fflush(stdout);
    fprintf(stderr, "%s: %s\n", program, err->msg);
    return BH_MODE_FAILED;
}

int
bh_mode_refuse(const char *program, const struct bh_err *err)
{
    bh_mode_report(program, BH_INVALID, err);
    return BH_MODE_USAGE;
}
