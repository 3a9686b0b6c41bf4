#include "lab/openb/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "lab/openb/text.h"

enum { CORES_MAX = 1 << 24, MEMORY_MAX = 1 << 30, COLUMNS_MAX = 16 };

enum { NODE_NAME, NODE_CORES, NODE_MEMORY, NODE_GPUS, NODE_MODEL, NODE_COLUMNS };
static const char node_header[] = "sn,cpu_milli,memory_mib,gpu,model";

/* Some variants end after the fifth column; what comes behind gpu_spec is not read. */
enum { POD_NAME, POD_CORES, POD_MEMORY, POD_GPUS, POD_MILLI, POD_MODELS, POD_COLUMNS };
static const char pod_header[] = "name,cpu_milli,memory_mib,num_gpu,gpu_milli";

/* A file being read: one row after the other goes to the trace. */
struct trace_reader {
    struct bh_openb_text *text;
    struct bh_arena *arena;
    struct bh_openb_trace *trace;
    uint32_t columns;
    struct bh_err *err;
};

typedef bh_rc read_row(struct trace_reader *reader, char **fields);

static bh_rc
trace_no_memory(struct bh_err *err)
{
    return bh_err_set(err, BH_FULL, "the trace takes more memory than is allowed");
}

static bh_rc
trace_find_model(struct trace_reader *reader, const char *name, uint32_t *ret_model)
{
    struct bh_openb_model_names *models = &reader->trace->models;
    uint32_t model = 0;

    while (model < models->count && strcmp(models->name[model], name) != 0)
        model++;
    if (*name == '\0')
        return bh_err_set(reader->err, BH_INVALID, "a GPU model without a name");
    if (model == BH_PACK_MODELS_MAX)
        return bh_err_set(reader->err, BH_RANGE, "over %d GPU models", BH_PACK_MODELS_MAX);
    if (model == models->count) {
        models->name[model] = bh_arena_strdup(reader->arena, name);
        if (!models->name[model])
            return trace_no_memory(reader->err);
        models->count++;
    }
    *ret_model = model;
    return BH_OK;
}

/* "A|B" as a set; nothing is every model. */
static bh_rc
trace_read_models(struct trace_reader *reader, const char *spec, uint64_t *ret_models)
{
    char text[256], *names[BH_PACK_MODELS_MAX];
    uint32_t count, model;

    *ret_models = *spec ? 0 : UINT64_MAX;
    if (*spec == '\0')
        return BH_OK;
    if (strlen(spec) >= sizeof text)
        return bh_err_set(reader->err, BH_RANGE, "gpu_spec has over %zu characters", sizeof text - 1);
    memcpy(text, spec, strlen(spec) + 1);
    count = bh_openb_split(text, '|', names, BH_COUNT(names));
    for (uint32_t i = 0; i < count && i < BH_COUNT(names); i++) {
        bh_rc rc = trace_find_model(reader, names[i], &model);

        if (rc != BH_OK)
            return rc;
        *ret_models |= 1ULL << model;
    }
    return BH_OK;
}

static bh_rc
trace_read_number(struct trace_reader *reader, const char *column, const char *text, uint32_t most,
                  uint32_t *ret_number)
{
    bh_rc rc = bh_parse_u32(text, 0, most, ret_number, reader->err);

    return rc == BH_OK ? BH_OK : bh_err_wrap(reader->err, "%s", column);
}

static bh_rc
trace_read_node(struct trace_reader *reader, char **fields)
{
    struct bh_openb_trace *trace = reader->trace;
    struct bh_openb_node *node = &trace->nodes[trace->node_count];
    struct bh_pack_node *has = &node->has;
    bh_rc rc = trace_read_number(reader, "cpu_milli", fields[NODE_CORES], CORES_MAX, &has->cpu_milli);

    if (rc != BH_OK)
        return rc;
    rc = trace_read_number(reader, "memory_mib", fields[NODE_MEMORY], MEMORY_MAX, &has->memory_mib);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_number(reader, "gpu", fields[NODE_GPUS], BH_PACK_GPUS_MAX, &has->gpus);
    if (rc != BH_OK)
        return rc;
    if (has->gpus || *fields[NODE_MODEL])
        rc = trace_find_model(reader, fields[NODE_MODEL], &has->model);
    if (rc != BH_OK)
        return rc;
    for (uint32_t g = 0; g < has->gpus; g++)
        has->parts[g] = BH_GPU_PARTS;
    node->name = bh_arena_strdup(reader->arena, fields[NODE_NAME]);
    trace->gpu_milli += (uint64_t)has->gpus * BH_OPENB_MILLI;
    trace->node_count++;
    return node->name ? BH_OK : trace_no_memory(reader->err);
}

/* Thousandths of a GPU as parts: 5 are 21. */
static bh_rc
trace_set_parts(struct bh_openb_pod *pod, struct bh_err *err)
{
    if (pod->shape.gpus == 0 && pod->milli > 0)
        return bh_err_set(err, BH_INVALID, "gpu_milli: %u of no GPU", pod->milli);
    if (pod->shape.gpus > 0 && pod->milli == 0)
        return bh_err_set(err, BH_INVALID, "gpu_milli: nothing of a GPU");
    if (pod->shape.gpus > 1 && pod->milli < BH_OPENB_MILLI)
        return bh_err_set(err, BH_INVALID, "gpu_milli: a part of each of %u GPUs", pod->shape.gpus);
    if (pod->milli % 5)
        return bh_err_set(err, BH_INVALID, "gpu_milli: %u is no multiple of 5", pod->milli);
    pod->shape.parts = pod->milli / 5 * (BH_GPU_PARTS / (BH_OPENB_MILLI / 5));
    return BH_OK;
}

static bh_rc
trace_read_pod(struct trace_reader *reader, char **fields)
{
    struct bh_openb_trace *trace = reader->trace;
    struct bh_openb_pod *pod = &trace->pods[trace->pod_count];
    struct bh_pack_shape *shape = &pod->shape;
    const char *models = reader->columns > POD_MODELS ? fields[POD_MODELS] : "";
    bh_rc rc = trace_read_number(reader, "cpu_milli", fields[POD_CORES], CORES_MAX, &shape->cpu_milli);

    if (rc != BH_OK)
        return rc;
    rc = trace_read_number(reader, "memory_mib", fields[POD_MEMORY], MEMORY_MAX, &shape->memory_mib);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_number(reader, "num_gpu", fields[POD_GPUS], BH_PACK_GPUS_MAX, &shape->gpus);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_number(reader, "gpu_milli", fields[POD_MILLI], BH_OPENB_MILLI, &pod->milli);
    if (rc != BH_OK)
        return rc;
    rc = trace_set_parts(pod, reader->err);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_models(reader, models, &shape->models);
    if (rc != BH_OK)
        return rc;
    pod->name = bh_arena_strdup(reader->arena, fields[POD_NAME]);
    pod->models_text = bh_arena_strdup(reader->arena, models);
    trace->pod_count++;
    return pod->name && pod->models_text ? BH_OK : trace_no_memory(reader->err);
}

static bh_rc
trace_read_rows(struct trace_reader *reader, read_row *read)
{
    char *line, *fields[COLUMNS_MAX];

    while ((line = bh_openb_text_next(reader->text))) {
        uint32_t count = bh_openb_split(line, ',', fields, COLUMNS_MAX);
        bh_rc rc = BH_OK;

        if (count != reader->columns)
            rc = bh_err_set(reader->err, BH_INVALID, "%u fields, the header has %u", count, reader->columns);
        else if (*fields[0] == '\0')
            rc = bh_err_set(reader->err, BH_INVALID, "no name");
        if (rc == BH_OK)
            rc = read(reader, fields);
        if (rc != BH_OK)
            return bh_openb_text_wrap(reader->text, reader->err);
    }
    return BH_OK;
}

/* Check that the header begins with these columns; count all it has. */
static bh_rc
trace_read_header(struct trace_reader *reader, const char *header)
{
    char *line = bh_openb_text_next(reader->text);
    size_t length = strlen(header);

    if (!line || strncmp(line, header, length) != 0 || (line[length] && line[length] != ',')) {
        bh_err_set(reader->err, BH_INVALID, "the header is not \"%s\"", header);
        return bh_openb_text_wrap(reader->text, reader->err);
    }
    reader->columns = 1;
    for (const char *at = line; *at; at++)
        reader->columns += *at == ',';
    if (reader->columns > COLUMNS_MAX) {
        bh_err_set(reader->err, BH_RANGE, "over %d columns", COLUMNS_MAX);
        return bh_openb_text_wrap(reader->text, reader->err);
    }
    return BH_OK;
}

/* The rows behind the header, in memory for as many as there are lines. */
static bh_rc
trace_read_table(struct trace_reader *reader, size_t row_size, void **ret_rows)
{
    uint32_t lines = bh_openb_text_lines(reader->text);

    if (lines == 0 || lines > BH_OPENB_ROWS_MAX)
        return bh_err_set(reader->err, BH_RANGE, "%s: %u rows", reader->text->path, lines);
    *ret_rows = bh_arena_alloc(reader->arena, lines * row_size);
    return *ret_rows ? BH_OK : trace_no_memory(reader->err);
}

static int
trace_compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct bh_openb_node *)a)->name, ((const struct bh_openb_node *)b)->name);
}

static int
trace_compare_pods(const void *a, const void *b)
{
    return strcmp(((const struct bh_openb_pod *)a)->name, ((const struct bh_openb_pod *)b)->name);
}

bh_rc
bh_openb_read_nodes(const char *path, struct bh_arena *arena, struct bh_openb_trace *ret_trace,
                    struct bh_err *err)
{
    BH_AUTO(bh_openb_text_close)
    struct bh_openb_text text = { 0 };
    struct bh_openb_trace trace = { 0 };
    struct trace_reader reader = { &text, arena, &trace, 0, err };
    bh_rc rc = bh_openb_text_open(path, &text, err);

    if (rc != BH_OK)
        return rc;
    rc = trace_read_header(&reader, node_header);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_table(&reader, sizeof *trace.nodes, (void **)&trace.nodes);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_rows(&reader, trace_read_node);
    if (rc != BH_OK)
        return rc;
    qsort(trace.nodes, trace.node_count, sizeof *trace.nodes, trace_compare_nodes);
    *ret_trace = trace;
    return BH_OK;
}

bh_rc
bh_openb_read_pods(const char *path, struct bh_arena *arena, struct bh_openb_trace *trace, struct bh_err *err)
{
    BH_AUTO(bh_openb_text_close)
    struct bh_openb_text text = { 0 };
    struct trace_reader reader = { &text, arena, trace, 0, err };
    bh_rc rc = bh_openb_text_open(path, &text, err);

    trace->pod_count = 0;
    if (rc != BH_OK)
        return rc;
    rc = trace_read_header(&reader, pod_header);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_table(&reader, sizeof *trace->pods, (void **)&trace->pods);
    if (rc != BH_OK)
        return rc;
    rc = trace_read_rows(&reader, trace_read_pod);
    if (rc != BH_OK)
        return rc;
    qsort(trace->pods, trace->pod_count, sizeof *trace->pods, trace_compare_pods);
    return BH_OK;
}
