/* Writes the manual pages, the completion and the commented example configurations
 * from the tables; runs at build time only.
 *
 *   bulkhead-gendocs DIR */
#include <stdio.h>
#include <string.h>

#include "cli/options/help.h"
#include "cli/options/man.h"

enum { DOCUMENT_MAX = 4 << 20 };

static const struct {
    const char *file;
    void (*write)(struct bh_buf *out);
} documents[] = {
    { "bulkhead.1", bh_man_bulkhead },
    { "bulkheadd.8", bh_man_bulkheadd },
    { "bulkhead-node.8", bh_man_node },
    { "bulkheadd.conf.5", bh_man_bulkheadd_conf },
    { "node.conf.5", bh_man_node_conf },
    { "bulkhead-site.5", bh_man_site },
    { "bulkhead-job.5", bh_man_job },
    { "bulkhead-completion", bh_help_completion },
    { "bulkheadd.conf", bh_man_example_bulkheadd },
    { "node.conf", bh_man_example_node },
};

static int
write_document(const char *folder, size_t which)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = DOCUMENT_MAX };
    char path[4096];
    FILE *file;
    int status = 1;

    documents[which].write(&out);
    snprintf(path, sizeof path, "%s/%s", folder, documents[which].file);
    file = out.overflow ? NULL : fopen(path, "we");
    if (file) {
        status = fwrite(out.bytes, 1, out.length, file) != out.length;
        status |= fclose(file) != 0;
    }
    if (status)
        fprintf(stderr, "bulkhead-gendocs: %s: not written\n", path);
    return status;
}

int
main(int argc, char **argv)
{
    int status = 0;

    if (argc != 2) {
        fputs("usage: bulkhead-gendocs DIR\n", stderr);
        return 2;
    }
    for (size_t i = 0; i < BH_COUNT(documents); i++)
        status |= write_document(argv[1], i);
    return status;
}
