#include "lab/openb/options.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SCALE_MAX = 64, SEEDS_MAX = 1000 };

static bh_rc
options_read_data(void *place, const char *value, struct bh_err *err)
{
    if (strlen(value) >= BH_OPENB_PATH_MAX / 2)
        return bh_err_set(err, BH_RANGE, "the path is too long");
    memcpy(place, value, strlen(value) + 1);
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
        return bh_err_set(err, BH_INVALID, "\"%s\" is not the name of one", name);
    if (options->variant_count == BH_OPENB_VARIANTS_MAX)
        return bh_err_set(err, BH_RANGE, "over %d", BH_OPENB_VARIANTS_MAX);
    memcpy(options->variants[options->variant_count++], name, strlen(name) + 1);
    return BH_OK;
}

static bh_rc
options_read_variants(void *place, const char *value, struct bh_err *err)
{
    char name[BH_FLAG_ITEM_MAX];
    bh_rc rc;

    do {
        if (!bh_flag_next_item(&value, name))
            return options_add_variant(place, value, err); /* which refuses it */
        rc = options_add_variant(place, name, err);
    } while (rc == BH_OK && *value);
    return rc;
}

enum { FLAGS = 11 };

static void
options_make_flags(struct bh_openb_options *options, struct bh_flag ret_flags[FLAGS])
{
    const struct bh_flag flags[FLAGS] = {
        { "--data", BH_FLAG_READ, options->data, .read = options_read_data, .value = "DIR",
          .help = "the openb folder, or the folder that holds it (docs/lab.md)" },
        { "--variant", BH_FLAG_READ, options, .read = options_read_variants, .value = "V[,V...]|all",
          .help = "which lists of pods; all: those with sequences; else `default`" },
        { "--policy", BH_FLAG_SET, &options->policies, .names = bh_pack_policy_names,
          .name_count = BH_PACK_POLICIES, .value = "P[,P...]|all",
          .help = "bestfit, fgd, bulkhead; else bulkhead" },
        { "--seeds", BH_FLAG_SEEDS, &options->seeds, .high = SEEDS_MAX, .value = "A[-B]",
          .help = "orders of nodes and arrivals; else 42-51" },
        { "--sequences", BH_FLAG_TEXT, &options->sequences, .value = "FILE",
          .help = "orders to play; else DIR/sequences/V.txt.gz, else orders drawn from the seed" },
        { "--scale", BH_FLAG_NUMBER, &options->scale, 1, SCALE_MAX, .value = "N",
          .help = "the cluster and all arrivals N times" },
        { "--check", BH_FLAG_ON, &options->check,
          .help = "compare bestfit and fgd with DIR/expected; status 1 beyond 0.01" },
        { "--latency", BH_FLAG_ON, &options->latency,
          .help = "take the time of each decision: p50, p99, p99.9" },
        { "--json", BH_FLAG_ON, &options->json, .help = "one JSON object for each run, on a line" },
        { "--svg", BH_FLAG_TEXT, &options->svg, .value = "FILE",
          .help = "draw allocation over load, means over the seeds" },
        { "--help", BH_FLAG_ON, &options->help, .help = "this text" },
    };

    memcpy(ret_flags, flags, sizeof flags);
}

void
bh_openb_options_help(FILE *out)
{
    struct bh_openb_options none;
    struct bh_flag flags[FLAGS];

    fputs("usage: bulkhead-lab openb --data DIR [OPTION...]\n"
          "\n"
          "Fill the cluster of the openb trace pod by pod, up to 130 % of its GPUs, and say\n"
          "what percentage of them is allocated when 100 % and 130 % have arrived.\n"
          "\n",
          out);
    options_make_flags(&none, flags);
    bh_flags_print(out, flags, FLAGS);
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
bh_openb_options_read(int count, char **words, struct bh_openb_options *ret_options, struct bh_err *err)
{
    struct bh_openb_options *options = ret_options;
    struct bh_flag flags[FLAGS];
    bh_rc rc;

    *options =
        (struct bh_openb_options){ .policies = 1u << BH_PACK_BULKHEAD, .seeds = { 42, 51 }, .scale = 1 };
    options_make_flags(options, flags);
    rc = bh_flags_parse(flags, FLAGS, count, words, err);
    if (rc != BH_OK || options->help)
        return rc;
    rc = options_find_data(options, err);
    if (rc != BH_OK)
        return rc;
    if (options->variant_count == 0)
        return options_add_variant(options, "default", err);
    if (options->variant_count == 1 && strcmp(options->variants[0], "all") == 0)
        return options_find_variants(options, err);
    return BH_OK;
}
