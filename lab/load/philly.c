#include "lab/load/philly.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "base/time.h"

enum { COLUMNS = 4, LINE_MAX_BYTES = 512, SPAN_S_MAX = 100 * 366 * 86400u };

static const char header[] = "vc,submit_s,gpus,duration_s_v100";

struct philly_reader {
    struct bh_load *load;
    char line[LINE_MAX_BYTES];
    char *columns[COLUMNS]; /* into line */
    uint32_t number;
};

/* Cut the line at its first commas. */
static bh_rc
philly_split(struct philly_reader *reader, struct bh_err *err)
{
    char *at = reader->line;

    reader->line[strcspn(reader->line, "\r\n")] = '\0';
    for (int i = 0; i < COLUMNS; i++) {
        reader->columns[i] = at;
        at += strcspn(at, ",");
        if (*at == '\0' && i + 1 < COLUMNS)
            return bh_err_set(err, BH_INVALID, "%d columns, wanted %d", i + 1, COLUMNS);
        if (*at)
            *at++ = '\0';
    }
    return BH_OK;
}

static bh_rc
number_in(const struct philly_reader *reader, int column, uint32_t high, uint32_t *ret_value,
          struct bh_err *err)
{
    static const char *const names[COLUMNS] = { "vc", "submit_s", "gpus", "duration_s_v100" };
    bh_rc rc = bh_parse_u32(reader->columns[column], 0, high, ret_value, err);

    return rc == BH_OK ? BH_OK : bh_err_wrap(err, "%s", names[column]);
}

static bh_tenant_id
tenant_of(struct bh_load *load, const char *name)
{
    bh_tenant_id tenant = bh_load_find_tenant(load, name);

    return tenant.v ? tenant : bh_load_add_tenant(load, name, (bh_tenant_id){ 0 })->tenant;
}

static bh_rc
read_job(struct philly_reader *reader, struct bh_err *err)
{
    uint32_t submit_s = 0, gpus = 0, duration_s = 0;
    bh_rc rc = philly_split(reader, err);

    if (rc != BH_OK)
        return rc;
    rc = number_in(reader, 1, SPAN_S_MAX, &submit_s, err);
    if (rc != BH_OK)
        return rc;
    rc = number_in(reader, 2, BH_PHILLY_GPUS, &gpus, err);
    if (rc != BH_OK)
        return rc;
    rc = number_in(reader, 3, SPAN_S_MAX, &duration_s, err);
    if (rc != BH_OK)
        return rc;
    if (reader->columns[0][0] == '\0' || gpus == 0)
        return bh_err_set(err, BH_INVALID, "a job wants a virtual cluster and a GPU");
    bh_load_add(reader->load,
                &(struct bh_simulation_job){ .submit_ns = submit_s * BH_NS_PER_S,
                                             .work_ns = duration_s * BH_NS_PER_S,
                                             .tenant = tenant_of(reader->load, reader->columns[0]),
                                             .sku = { 1 },
                                             .count = gpus,
                                             .priority = BH_PRIORITY_NORMAL,
                                             .contract = BH_CONTRACT_REQUEUE });
    return BH_OK;
}

static bh_rc
read_line(struct philly_reader *reader, struct bh_err *err)
{
    size_t length = strlen(reader->line);

    if (length + 1 == sizeof reader->line && reader->line[length - 1] != '\n')
        return bh_err_set(err, BH_INVALID, "the line is longer than %d bytes", LINE_MAX_BYTES - 2);
    if (reader->number > 1)
        return read_job(reader, err);
    if (strncmp(reader->line, header, sizeof header - 1) == 0)
        return BH_OK;
    return bh_err_set(err, BH_INVALID, "it does not begin with \"%s\"", header);
}

bh_rc
bh_philly_read(const char *path, struct bh_load *load, struct bh_err *err)
{
    struct philly_reader reader = { .load = load };
    FILE *file = fopen(path, "re");
    bh_rc rc = BH_OK;

    if (!file)
        return bh_err_errno(err, "%s", path);
    bh_load_set_rack(load, BH_PHILLY_NODES, BH_PHILLY_GPUS);
    while (rc == BH_OK && fgets(reader.line, sizeof reader.line, file)) {
        reader.number++;
        rc = read_line(&reader, err);
    }
    if (rc != BH_OK)
        bh_err_wrap(err, "%s:%u", path, reader.number);
    else if (ferror(file))
        rc = bh_err_set(err, BH_IO, "%s: cannot be read", path);
    else if (load->job_count == 0)
        rc = bh_err_set(err, BH_INVALID, "%s: there are no jobs", path);
    fclose(file);
    if (rc != BH_OK)
        return rc;
    bh_load_sort(load);
    return BH_OK;
}
