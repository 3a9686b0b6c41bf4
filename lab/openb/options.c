#include "lab/openb/options.h"

#include <dirent.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"
#include "lab/openb/text.h"

enum { SCALE_MAX = 64, SEEDS_MAX = 1000 };

typedef bh_rc read_option(struct bh_openb_options *options, const char *value, struct bh_err *err);

static bh_rc
options_read_data(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    if (strlen(value) >= BH_OPENB_PATH_MAX / 2)
        return bh_err_set(err, BH_RANGE, "--data: the path is too long");
    memcpy(options->data, value, strlen(value) + 1);
    return BH_OK;
}

static bool
options_is_name(const char *text)
{
    return *text && strlen(text) < BH_OPENB_NAME_MAX
           && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-")] == '\0';
}

static bh_rc
options_add_variant(struct bh_openb_options *options, const char *name, struct bh_err *err)
{
    if (!options_is_name(name))
        return bh_err_set(err, BH_INVALID, "--variant: \"%s\" is not the name of one", name);
    if (options->variant_count == BH_OPENB_VARIANTS_MAX)
        return bh_err_set(err, BH_RANGE, "--variant: over %d", BH_OPENB_VARIANTS_MAX);
    memcpy(options->variants[options->variant_count++], name, strlen(name) + 1);
    return BH_OK;
}

/* Call `read` for each word of a list with commas. */
static bh_rc
options_read_words(struct bh_openb_options *options, const char *value, struct bh_err *err, read_option *read)
{
    char text[BH_OPENB_PATH_MAX], *words[BH_OPENB_VARIANTS_MAX];
    uint32_t count;
    bh_rc rc = BH_OK;

    if (strlen(value) >= sizeof text)
        return bh_err_set(err, BH_RANGE, "the list \"%.20s...\" is too long", value);
    memcpy(text, value, strlen(value) + 1);
    count = bh_openb_split(text, ',', words, BH_OPENB_VARIANTS_MAX);
    if (count > BH_OPENB_VARIANTS_MAX)
        return bh_err_set(err, BH_RANGE, "the list \"%.20s...\" is too long", value);
    for (uint32_t i = 0; i < count && rc == BH_OK; i++)
        rc = read(options, words[i], err);
    return rc;
}

static bh_rc
options_read_variants(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    return options_read_words(options, value, err, options_add_variant);
}

static bh_rc
options_add_policy(struct bh_openb_options *options, const char *name, struct bh_err *err)
{
    bool all = strcmp(name, "all") == 0, known = all;

    for (int p = 0; p < BH_PACK_POLICIES; p++) {
        if (!all && strcmp(name, bh_pack_policy_names[p]) != 0)
            continue;
        options->policies[p] = known = true;
    }
    return known ? BH_OK : bh_err_set(err, BH_INVALID, "--policy: there is no \"%s\"", name);
}

static bh_rc
options_read_policies(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    return options_read_words(options, value, err, options_add_policy);
}

static bh_rc
options_read_seeds(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    char text[64], *ends[2];
    uint32_t count;
    bh_rc rc;

    if (strlen(value) >= sizeof text)
        return bh_err_set(err, BH_INVALID, "--seeds: not A or A-B");
    memcpy(text, value, strlen(value) + 1);
    count = bh_openb_split(text, '-', ends, 2);
    if (count > 2)
        return bh_err_set(err, BH_INVALID, "--seeds: not A or A-B");
    rc = bh_parse_u64(ends[0], &options->first_seed, err);
    if (rc == BH_OK)
        rc = bh_parse_u64(ends[count - 1], &options->last_seed, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "--seeds");
    if (options->last_seed < options->first_seed || options->last_seed - options->first_seed >= SEEDS_MAX)
        return bh_err_set(err, BH_RANGE, "--seeds: from 1 to %d of them", SEEDS_MAX);
    return BH_OK;
}

static bh_rc
options_read_scale(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    bh_rc rc = bh_parse_u32(value, 1, SCALE_MAX, &options->scale, err);

    return rc == BH_OK ? BH_OK : bh_err_wrap(err, "--scale");
}

static bh_rc
options_read_sequences(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    options->sequences = value;
    return BH_OK;
}

static bh_rc
options_read_svg(struct bh_openb_options *options, const char *value, struct bh_err *err)
{
    options->svg = value;
    return BH_OK;
}

#define SWITCH(name)                                                                                         \
    static bh_rc set_##name(struct bh_openb_options *options, const char *value, struct bh_err *err)         \
    {                                                                                                        \
        (void)value, (void)err;                                                                              \
        options->name = true;                                                                                \
        return BH_OK;                                                                                        \
    }
SWITCH(json)
SWITCH(check)
SWITCH(latency)
SWITCH(help)

/* The options: parser and help. */
static const struct {
    const char *name, *value; /* NULL: a switch */
    read_option *read;
    const char *help;
} table[] = {
    { "data", "DIR", options_read_data, "the openb folder, or the folder that holds it (docs/lab.md)" },
    { "variant", "V[,V...]|all", options_read_variants,
      "which lists of pods; all: those with sequences; else `default`" },
    { "policy", "P[,P...]|all", options_read_policies, "bestfit, fgd, bulkhead; else bulkhead" },
    { "seeds", "A[-B]", options_read_seeds, "orders of nodes and arrivals; else 42-51" },
    { "sequences", "FILE", options_read_sequences,
      "orders to play; else DIR/sequences/V.txt.gz, else orders drawn from the seed" },
    { "scale", "N", options_read_scale, "the cluster and all arrivals N times" },
    { "check", NULL, set_check, "compare bestfit and fgd with DIR/expected; status 1 beyond 0.01" },
    { "latency", NULL, set_latency, "take the time of each decision: p50, p99, p99.9" },
    { "json", NULL, set_json, "one JSON object for each run, on a line" },
    { "svg", "FILE", options_read_svg, "draw allocation over load, means over the seeds" },
    { "help", NULL, set_help, "this text" },
};

void
bh_openb_options_help(FILE *out)
{
    fputs("usage: bulkhead-lab openb --data DIR [OPTION...]\n"
          "\n"
          "Fill the cluster of the openb trace pod by pod, up to 130 % of its GPUs, and say\n"
          "what percentage of them is allocated when 100 % and 130 % have arrived.\n"
          "\n",
          out);
    for (size_t i = 0; i < BH_COUNT(table); i++)
        fprintf(out, "  --%-9s %-14s %s\n", table[i].name, table[i].value ? table[i].value : "",
                table[i].help);
}

static bh_rc
options_read_arguments(int argc, char **argv, struct bh_openb_options *options, struct bh_err *err)
{
    struct option names[BH_COUNT(table) + 1] = { 0 };
    int index, option;

    for (size_t i = 0; i < BH_COUNT(table); i++)
        names[i] = (struct option){ .name = table[i].name,
                                    .has_arg = table[i].value ? required_argument : no_argument };
    optind = 1;
    while ((option = getopt_long(argc, argv, "", names, &index)) != -1) {
        bh_rc rc;

        if (option != 0)
            return bh_err_set(err, BH_INVALID, "see bulkhead-lab openb --help");
        rc = table[index].read(options, optarg, err);
        if (rc != BH_OK)
            return rc;
    }
    if (optind < argc)
        return bh_err_set(err, BH_INVALID, "\"%s\" is no option", argv[optind]);
    return BH_OK;
}

static bool
options_has_nodes(const char *folder)
{
    char path[BH_OPENB_PATH_MAX];

    snprintf(path, sizeof path, "%s/openb_node_list_gpu_node.csv", folder);
    return access(path, R_OK) == 0;
}

static bh_rc
options_find_data(struct bh_openb_options *options, struct bh_err *err)
{
    size_t length = strlen(options->data);

    if (length == 0)
        return bh_err_set(err, BH_INVALID, "--data is needed");
    if (options_has_nodes(options->data))
        return BH_OK;
    snprintf(options->data + length, sizeof options->data - length, "/openb");
    if (options_has_nodes(options->data))
        return BH_OK;
    options->data[length] = '\0';
    return bh_err_set(err, BH_NOT_FOUND, "%s: no openb_node_list_gpu_node.csv in it", options->data);
}

static int
options_compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void
options_close_folder_auto(DIR **folder)
{
    if (*folder)
        closedir(*folder);
}

/* Every V for which there is a sequences/V.txt.gz. */
static bh_rc
options_find_variants(struct bh_openb_options *options, struct bh_err *err)
{
    static const char suffix[] = ".txt.gz";
    char path[BH_OPENB_PATH_MAX + 16];
    BH_AUTO(options_close_folder)
    DIR *folder = NULL;
    struct dirent *entry;

    snprintf(path, sizeof path, "%s/sequences", options->data);
    folder = opendir(path);
    if (!folder)
        return bh_err_errno(err, "cannot open %s", path);
    options->variant_count = 0;
    while ((entry = readdir(folder))) {
        char *end = strstr(entry->d_name, suffix);
        bh_rc rc;

        if (!end || end[sizeof suffix - 1])
            continue;
        *end = '\0';
        rc = options_add_variant(options, entry->d_name, err);
        if (rc != BH_OK)
            return rc;
    }
    qsort(options->variants, options->variant_count, sizeof options->variants[0], options_compare_names);
    return options->variant_count ? BH_OK : bh_err_set(err, BH_NOT_FOUND, "%s is empty", path);
}

bh_rc
bh_openb_options_read(int argc, char **argv, struct bh_openb_options *ret_options, struct bh_err *err)
{
    struct bh_openb_options *options = ret_options;
    bool policy = false;
    bh_rc rc;

    *options = (struct bh_openb_options){ .first_seed = 42, .last_seed = 51, .scale = 1 };
    rc = options_read_arguments(argc, argv, options, err);
    if (rc != BH_OK || options->help)
        return rc;
    rc = options_find_data(options, err);
    if (rc == BH_OK && options->variant_count == 0)
        rc = options_add_variant(options, "default", err);
    if (rc == BH_OK && options->variant_count == 1 && strcmp(options->variants[0], "all") == 0)
        rc = options_find_variants(options, err);
    for (int p = 0; p < BH_PACK_POLICIES; p++)
        policy |= options->policies[p];
    options->policies[BH_PACK_BULKHEAD] |= !policy;
    return rc;
}
