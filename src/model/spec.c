#include "model/spec.h"

#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "base/time.h"
#include "base/utf8.h"
#include "model/image.h"
#include "model/path.h"

#define TIME_LIMIT_MAX_NS (366 * UINT64_C(86400) * BH_NS_PER_S)
#define HOUR_NS (UINT64_C(3600) * BH_NS_PER_S)
#define GRACE_MAX_NS HOUR_NS
#define SCRATCH_MIN (UINT64_C(16) << 20)
#define SCRATCH_MAX (UINT64_C(16) << 40)
#define GRACE_DEFAULT_NS (10 * BH_NS_PER_S)

enum {
    NAME_BYTES_MAX = 120,
    MOUNTS_MAX = 64,
    ARGS_MAX = 1024,
    ENV_MAX = 512,
    LABELS_MAX = 32,
    LABEL_BYTES_MAX = 63,
    PIDS_MAX = 4194304
};

static const struct bh_field mount_fields[] = {
    BH_F(struct bh_mount_spec, dataset, BH_FIELD_TEXT, .max = BH_NAME_MAX,
         .doc = "a dataset's or a model's name; this or source"),
    BH_F(struct bh_mount_spec, source, BH_FIELD_TEXT, .max = BH_FILE_PATH_MAX,
         .doc = "absolute path on the node"),
    BH_F(struct bh_mount_spec, target, BH_FIELD_TEXT, .max = BH_FILE_PATH_MAX,
         .doc =
             "absolute path inside the job, at most 1000 bytes; when absent the source's, or /datasets/NAME"),
    BH_F(struct bh_mount_spec, write, BH_FIELD_BOOL, .doc = "writable; read-only otherwise"),
};
static const struct bh_fields mount_spec_fields = BH_FIELDS("mount", struct bh_mount_spec, mount_fields);

static const struct bh_field job_fields[] = {
    BH_F(struct bh_job_spec, args, BH_FIELD_TEXTS, .max = ARGS_MAX,
         .doc = "the program and its arguments; an oci: image's own when absent"),
    BH_F(struct bh_job_spec, bandwidth, BH_FIELD_TEXT, .max = 32,
         .doc =
             "limit for what it sends, and for what it receives: \"100Mbit\"; the node's limit when absent"),
    BH_F(struct bh_job_spec, checkpoint_signal, BH_FIELD_TEXT, .max = 8,
         .doc = "signal on which it writes a checkpoint: HUP, INT, QUIT, USR1, USR2 or TERM; \"USR1\" when "
                "absent"),
    BH_F(struct bh_job_spec, count, BH_FIELD_U32, .flags = BH_FIELD_POSITIVE, .max = BH_JOB_COUNT_MAX,
         .doc = "partitions of the SKU for each member, all on one node; 1 when absent"),
    BH_F(struct bh_job_spec, cpu, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "cores: \"2\", \"0.5\", at least \"0.01\"; the SKU's share when absent"),
    BH_F(struct bh_job_spec, cwd, BH_FIELD_TEXT, .max = BH_FILE_PATH_MAX,
         .doc = "working directory: /tmp or /, or a folder of the node, where the site file allows it; "
                "when absent the image's own, or /tmp"),
    BH_F(struct bh_job_spec, deadline, BH_FIELD_TEXT, .max = 32,
         .doc = "it must end by then: \"+2h\" after it is submitted, or "
                "\"2026-11-20T09:27:00Z\"; it is ended when it cannot or does not"),
    BH_F(struct bh_job_spec, env, BH_FIELD_TEXTS, .max = ENV_MAX, .doc = "\"NAME=value\""),
    BH_F(struct bh_job_spec, gang, BH_FIELD_U32, .flags = BH_FIELD_POSITIVE, .max = BH_JOB_GANG_MAX,
         .doc = "members, each a run of the command with partitions of its own: all start, suspend and end "
                "together; 1 when absent"),
    BH_F(struct bh_job_spec, grace, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "time between SIGTERM and SIGKILL; \"10s\" when absent"),
    BH_F(struct bh_job_spec, hold, BH_FIELD_BOOL, .doc = "do not start before it is released"),
    BH_F(struct bh_job_spec, image, BH_FIELD_TEXT, .max = BH_FILE_PATH_MAX,
         .doc = "\"host\", \"dir:PATH\", \"oci:PATH:TAG\" or \"oci:PATH@sha256:HEX\"; host when "
                "absent"),
    BH_F(struct bh_job_spec, input, BH_FIELD_BOOL,
         .doc = "its standard input comes from the attached client; empty otherwise"),
    BH_F_ENUM(struct bh_job_spec, kind, bh_job_kind_names, .doc = "batch when absent"),
    BH_F(struct bh_job_spec, labels, BH_FIELD_TEXTS, .max = LABELS_MAX,
         .doc = "\"NAME=value\", for users and for the site's policy; each name once"),
    BH_F(struct bh_job_spec, memory, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "main memory: \"8Gi\", at least \"8Mi\"; the SKU's share when absent"),
    BH_F(struct bh_job_spec, mounts, BH_FIELD_LIST, .of = &mount_spec_fields, .max = MOUNTS_MAX,
         .doc = "folders of the node and datasets, where the site file allows them"),
    BH_F(struct bh_job_spec, name, BH_FIELD_TEXT, .max = NAME_BYTES_MAX, .doc = "free text for users"),
    BH_F_ENUM(struct bh_job_spec, network, bh_network_mode_names,
              .doc =
                  "none; tenant: the tenant's other jobs on its node; egress: outward as the site's policy "
                  "allows; none when absent"),
    BH_F_ENUM(struct bh_job_spec, on_preempt, bh_contract_names,
              .doc = "what preemption by a higher job does to it; requeue when absent"),
    BH_F(struct bh_job_spec, pids, BH_FIELD_U32, .flags = BH_FIELD_POSITIVE, .max = PIDS_MAX,
         .doc = "most processes; the node's default when absent"),
    BH_F_ENUM(struct bh_job_spec, priority, bh_priority_names,
              .doc = "normal when absent; high and urgent need priority.high on the tenant"),
    BH_F(struct bh_job_spec, scratch, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "disk of each member's own at /scratch, removed with it: \"20Gi\"; none when absent"),
    BH_F(struct bh_job_spec, sku, BH_FIELD_TEXT, .flags = BH_FIELD_REQUIRED, .max = BH_NAME_MAX,
         .doc = "the size: a SKU's name"),
    BH_F(struct bh_job_spec, tenant, BH_FIELD_TEXT, .max = BH_TENANT_PATH_MAX,
         .doc = "\"acme/vision\"; may be absent when the caller can submit to one only"),
    BH_F(struct bh_job_spec, time_limit, BH_FIELD_TEXT, .flags = BH_FIELD_NUMBERS, .max = 32,
         .doc = "\"2h\", \"1-00:00:00\"; no limit when absent"),
    BH_F(struct bh_job_spec, tty, BH_FIELD_BOOL,
         .doc = "it runs in a terminal, which is its input and output for the attached client"),
};
const struct bh_fields bh_job_spec_fields = BH_FIELDS("job", struct bh_job_spec, job_fields);

static bh_rc
spec_check_path(const char *field, const char *path, struct bh_err *err)
{
    const char *fault = bh_file_path_fault(path);

    if (!fault && bh_utf8_is_shown(path))
        return BH_OK;
    if (!fault) {
        bh_err_set(err, BH_INVALID, "%s: \"%.80s\" has invisible characters", field, path);
        return bh_err_hint(err, "rename the folder, or mount the one above it");
    }
    bh_err_set(err, BH_INVALID, "%s: \"%.80s\" %s", field, path, fault);
    return bh_err_hint(err, "write the full path, beginning with / and without \"..\"");
}

static bh_rc
spec_check_names(const struct bh_job_spec *spec, struct bh_err *err)
{
    if (!spec->sku || !bh_name_valid(spec->sku)) {
        bh_err_set(err, BH_INVALID, "sku: \"%.70s\" is not a SKU's name", spec->sku ? spec->sku : "");
        return bh_err_hint(err, "`bulkhead get skus` lists them");
    }
    if (spec->tenant && !bh_tenant_path_valid(spec->tenant)) {
        bh_err_set(err, BH_INVALID, "tenant: \"%.130s\" is not a tenant's path", spec->tenant);
        return bh_err_hint(err, "`bulkhead tenant` lists those you may see, as acme/vision");
    }
    if (spec->name && strlen(spec->name) > NAME_BYTES_MAX)
        return bh_err_set(err, BH_RANGE, "name: longer than %d bytes", NAME_BYTES_MAX);
    if (spec->name && !bh_utf8_is_shown(spec->name))
        return bh_err_set(err, BH_INVALID, "name: has a control or another invisible character");
    return BH_OK;
}

static bh_rc
spec_check_command(const struct bh_job_spec *spec, struct bh_err *err)
{
    bool own = spec->image && bh_image_is_packed(spec->image); /* the image may have one */

    if (spec->args.count > 0 ? spec->args.items[0][0] != '\0' : own)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "args: no command");
    return bh_err_hint(err, "args[0] is the program: [\"python\", \"train.py\"]");
}

static bool
spec_is_env_name(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';

        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return length > 0;
}

static bh_rc
spec_check_env(const struct bh_texts *env, struct bh_err *err)
{
    for (uint32_t i = 0; i < env->count; i++) {
        const char *equals = strchr(env->items[i], '=');

        if (!equals || !spec_is_env_name(env->items[i], (size_t)(equals - env->items[i]))) {
            bh_err_set(err, BH_INVALID, "env[%" PRIu32 "]: \"%.60s\" is not NAME=value", i, env->items[i]);
            return bh_err_hint(err, "names are letters, digits and _, as in \"EPOCHS=3\"");
        }
    }
    return BH_OK;
}

/* Letters, digits and - _ . / in the name, anything printable in the value. */
static bool
spec_is_label(const char *text)
{
    size_t name = strcspn(text, "="), length = strlen(text);

    for (size_t i = 0; i < name; i++) {
        char c = text[i];
        bool word = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');

        if (!word && !strchr("-_./", c))
            return false;
    }
    return name > 0 && name <= LABEL_BYTES_MAX && length > name + 1 && length - name - 1 <= LABEL_BYTES_MAX
           && bh_utf8_is_shown(text);
}

static bh_rc
spec_check_labels(const struct bh_texts *labels, struct bh_err *err)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        const char *text = labels->items[i];
        size_t name = strcspn(text, "=") + 1;

        if (!spec_is_label(text)) {
            bh_err_set(err, BH_INVALID, "labels[%" PRIu32 "]: \"%.60s\" is not NAME=value", i, text);
            return bh_err_hint(err, "as in \"team=vision\", name and value of 63 bytes at most");
        }
        for (uint32_t k = 0; k < i; k++)
            if (strncmp(labels->items[k], text, name) == 0)
                return bh_err_set(err, BH_INVALID, "labels[%" PRIu32 "]: %.*s is given twice", i,
                                  (int)name - 1, text);
    }
    return BH_OK;
}

static bh_rc
spec_check_source(const struct bh_mount_spec *mount, struct bh_err *err)
{
    if (!mount->source && !mount->dataset)
        return bh_err_set(err, BH_INVALID, "neither a source nor a dataset");
    if (mount->source && mount->dataset)
        return bh_err_set(err, BH_INVALID, "both a source and a dataset");
    if (mount->source)
        return spec_check_path("source", mount->source, err);
    return bh_name_valid(mount->dataset)
               ? BH_OK
               : bh_err_set(err, BH_INVALID, "dataset: \"%.70s\" is not a dataset's name", mount->dataset);
}

const char *
bh_mount_target(const struct bh_mount_spec *mount, char memory[BH_MOUNT_TARGET_MAX])
{
    struct bh_buf text;

    if (mount->target && mount->target[0])
        return mount->target;
    if (mount->source)
        return mount->source;
    bh_buf_init_fixed(&text, memory, BH_MOUNT_TARGET_MAX);
    bh_buf_printf(&text, "%s/%s", BH_DATASETS_FOLDER, mount->dataset);
    return bh_buf_text(&text) ? memory : "";
}

/* The node would refuse the place when the job starts. */
static bh_rc
spec_check_place(const char *field, const char *path, struct bh_err *err)
{
    const char *fault = bh_sandbox_path_fault(path);

    if (!fault)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "%s: \"%.80s\" %s", field, path, fault);
    return bh_err_hint(err,
                       "choose a path of at most %d bytes outside the folders of the sandbox, as /work/data",
                       BH_SANDBOX_PATH_MAX);
}

static bh_rc
spec_check_target(const struct bh_mount_spec *mount, struct bh_err *err)
{
    char memory[BH_MOUNT_TARGET_MAX];
    bh_rc rc = mount->target && mount->target[0] ? spec_check_path("target", mount->target, err) : BH_OK;

    return rc == BH_OK ? spec_check_place("target", bh_mount_target(mount, memory), err) : rc;
}

/* A place in another mount would be made among files of others. */
static bh_rc
spec_check_apart(const struct bh_mount_spec *mounts, uint32_t count, const char *path, struct bh_err *err)
{
    char memory[BH_MOUNT_TARGET_MAX];

    for (uint32_t i = 0; i < count; i++) {
        const char *other = bh_mount_target(&mounts[i], memory);

        if (!bh_file_path_within(path, other) && !bh_file_path_within(other, path))
            continue;
        bh_err_set(err, BH_INVALID, "\"%.80s\" and mounts[%" PRIu32 "] at \"%.80s\" overlap", path, i, other);
        return bh_err_hint(err, "give one of them a target outside the other");
    }
    return BH_OK;
}

static bh_rc
spec_check_mounts(const struct bh_list *mounts, struct bh_err *err)
{
    const struct bh_mount_spec *items = mounts->items;
    char memory[BH_MOUNT_TARGET_MAX];

    for (uint32_t i = 0; i < mounts->count; i++) {
        bh_rc rc = spec_check_source(&items[i], err);

        if (rc == BH_OK)
            rc = spec_check_target(&items[i], err);
        if (rc == BH_OK)
            rc = spec_check_apart(items, i, bh_mount_target(&items[i], memory), err);
        if (rc != BH_OK)
            return bh_err_wrap(err, "mounts[%" PRIu32 "]", i);
    }
    return BH_OK;
}

/* Whether a mount shows the folder where it is on the node. */
static bool
spec_is_shown(const struct bh_list *mounts, const char *path)
{
    const struct bh_mount_spec *items = mounts->items;
    char memory[BH_MOUNT_TARGET_MAX];

    for (uint32_t i = 0; i < mounts->count; i++) {
        const char *target = bh_mount_target(&items[i], memory);

        if (items[i].source && strcmp(items[i].source, target) == 0 && bh_file_path_within(target, path))
            return true;
    }
    return false;
}

bool
bh_cwd_is_own(const char *cwd)
{
    return strcmp(cwd, "/tmp") == 0 || strcmp(cwd, "/") == 0;
}

const char *
bh_spec_cwd_folder(const struct bh_job_spec *spec)
{
    return spec->cwd && *spec->cwd && !bh_cwd_is_own(spec->cwd) ? spec->cwd : NULL;
}

static bh_rc
spec_check_cwd(const struct bh_job_spec *spec, struct bh_err *err)
{
    bh_rc rc = spec_check_path("cwd", spec->cwd, err);

    if (rc != BH_OK || bh_cwd_is_own(spec->cwd))
        return rc;
    rc = spec_check_place("cwd", spec->cwd, err);
    if (rc != BH_OK || spec_is_shown(&spec->mounts, spec->cwd))
        return rc;
    rc = spec_check_apart(spec->mounts.items, spec->mounts.count, spec->cwd, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "cwd");
}

static bh_rc
spec_check_image(const char *text, struct bh_err *err)
{
    struct bh_image image;
    const char *fault = bh_image_parse(text, &image);

    if (!fault)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "image: \"%.80s\" %s", text, fault);
    return bh_err_hint(err, "write host, dir:/path/to/a/root, oci:/path/to/a/layout:TAG, "
                            "docker://REGISTRY/NAME:TAG, or @sha256:DIGEST instead of a tag");
}

static bh_rc
spec_check_places(const struct bh_job_spec *spec, struct bh_err *err)
{
    bh_rc rc = spec_check_mounts(&spec->mounts, err);

    if (rc == BH_OK && spec->cwd)
        rc = spec_check_cwd(spec, err);
    return rc == BH_OK && spec->image ? spec_check_image(spec->image, err) : rc;
}

/* A span within its limits; an absent one leaves *ret_ns as it is. */
static bh_rc
spec_read_span(const char *field, const char *text, uint64_t most, uint64_t *ret_ns, struct bh_err *err)
{
    uint64_t span;
    bh_rc rc;

    if (!text)
        return BH_OK;
    rc = bh_parse_span(text, &span, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", field);
    if (span > most) {
        bool days = most % (24 * HOUR_NS) == 0;
        uint64_t units = most / (days ? 24 * HOUR_NS : HOUR_NS);

        return bh_err_set(err, BH_RANGE,
                          "%s: \"%.32s\" is longer than %" PRIu64 " %s%s, the longest on any site", field,
                          text, units, days ? "day" : "hour", units == 1 ? "" : "s");
    }
    *ret_ns = span;
    return BH_OK;
}

static bh_rc
spec_read_deadline(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    if (!spec->deadline)
        return BH_OK;
    numbers->deadline_after = spec->deadline[0] == '+';
    if (numbers->deadline_after)
        return spec_read_span("deadline", spec->deadline + 1, TIME_LIMIT_MAX_NS, &numbers->deadline_ns, err);
    rc = bh_parse_utc(spec->deadline, &numbers->deadline_ns, err);
    if (rc == BH_OK)
        return BH_OK;
    bh_err_wrap(err, "deadline");
    return bh_err_hint(err, "write \"+2h\" for that long from now, or a time in UTC");
}

static bh_rc
spec_read_signal(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    const char *name = spec->checkpoint_signal;

    if (!name)
        return BH_OK;
    if (spec->on_preempt != BH_CONTRACT_CHECKPOINT)
        return bh_err_set(err, BH_INVALID, "checkpoint_signal: only with on_preempt: checkpoint");
    numbers->checkpoint_signal = bh_signal_find(name);
    if (numbers->checkpoint_signal)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "checkpoint_signal: \"%.20s\" is not known", name);
    return bh_err_hint(err, "HUP, INT, QUIT, USR1, USR2 or TERM");
}

static bh_rc
spec_read_times(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    bh_rc rc =
        spec_read_span("time_limit", spec->time_limit, TIME_LIMIT_MAX_NS, &numbers->time_limit_ns, err);

    if (rc == BH_OK && spec->time_limit && numbers->time_limit_ns == 0)
        return bh_err_set(err, BH_RANGE, "time_limit: must be more than nothing");
    numbers->grace_ns = GRACE_DEFAULT_NS;
    if (rc != BH_OK)
        return rc;
    rc = spec_read_span("grace", spec->grace, GRACE_MAX_NS, &numbers->grace_ns, err);
    if (rc == BH_RANGE)
        return bh_err_hint(err, "a site may allow less: grace_max in bulkheadd.conf, 10m unless it is set");
    return rc;
}

bh_rc
bh_spec_parse_cpu(const char *text, uint32_t *ret_milli, struct bh_err *err)
{
    uint64_t milli;
    bh_rc rc = bh_parse_parts(text, 1000, &milli, err);

    if (rc != BH_OK) {
        bh_err_wrap(err, "cpu");
        return *err->hint ? rc : bh_err_hint(err, "cores: 2, 0.5 or 1/2; what Kubernetes calls 500m is 0.5");
    }
    if (milli > BH_JOB_CPU_MILLI_MAX)
        return bh_err_set(err, BH_RANGE, "cpu: %.32s cores are more than %d", text,
                          BH_JOB_CPU_MILLI_MAX / 1000);
    if (milli < BH_JOB_CPU_MILLI_MIN) {
        bh_err_set(err, BH_RANGE, "cpu: %.32s cores are too few to start a job", text);
        return bh_err_hint(err, "the minimum is 0.01: 1 ms of each 100 ms, the kernel's smallest quota");
    }
    *ret_milli = (uint32_t)milli;
    return BH_OK;
}

bh_rc
bh_spec_parse_memory(const char *text, uint64_t *ret_bytes, struct bh_err *err)
{
    uint64_t bytes;
    bh_rc rc = bh_parse_bytes(text, &bytes, err);

    if (rc != BH_OK)
        return bh_err_wrap(err, "memory");
    if (bytes < BH_JOB_MEMORY_MIN_BYTES) {
        bh_err_set(err, BH_RANGE, "memory: %" PRIu64 " bytes are too few to start a job", bytes);
        return bh_err_hint(
            err, "the minimum is 8Mi: its sandbox, a shell and one program; bare digits are bytes, so write "
                 "512Mi, 8Gi");
    }
    if (bytes > BH_JOB_MEMORY_MAX_BYTES)
        return bh_err_set(err, BH_RANGE, "memory: %.32s is more than 128Ti, the maximum", text);
    *ret_bytes = bytes;
    return BH_OK;
}

static bh_rc
spec_read_amounts(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    bh_rc rc = spec->cpu ? bh_spec_parse_cpu(spec->cpu, &numbers->cpu_milli, err) : BH_OK;

    return rc == BH_OK && spec->memory ? bh_spec_parse_memory(spec->memory, &numbers->memory_bytes, err) : rc;
}

static bh_rc
spec_read_scratch(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    bh_rc rc = spec->scratch ? bh_parse_bytes(spec->scratch, &numbers->scratch_bytes, err) : BH_OK;

    if (rc != BH_OK)
        return bh_err_wrap(err, "scratch");
    if (spec->scratch && (numbers->scratch_bytes < SCRATCH_MIN || numbers->scratch_bytes > SCRATCH_MAX))
        return bh_err_set(err, BH_RANGE, "scratch: \"%.32s\" is not within 16Mi and 16Ti", spec->scratch);
    return BH_OK;
}

static bh_rc
spec_read_bandwidth(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    if (!spec->bandwidth)
        return BH_OK;
    if (spec->network == BH_NETWORK_NONE) {
        bh_err_set(err, BH_INVALID, "bandwidth: the job has no network");
        return bh_err_hint(err, "ask for one: --network tenant, or network: tenant");
    }
    if (bh_bandwidth_parse(spec->bandwidth, &numbers->bandwidth_bps, err) == BH_OK)
        return BH_OK;
    return bh_err_wrap(err, "bandwidth");
}

static bh_rc
spec_read_counts(const struct bh_job_spec *spec, struct bh_job_numbers *numbers, struct bh_err *err)
{
    if (spec->count > BH_JOB_COUNT_MAX)
        return bh_err_set(err, BH_RANGE, "count: %" PRIu32 " is over %d partitions", spec->count,
                          BH_JOB_COUNT_MAX);
    if (spec->gang > BH_JOB_GANG_MAX)
        return bh_err_set(err, BH_RANGE, "gang: %" PRIu32 " is over %d members", spec->gang, BH_JOB_GANG_MAX);
    if (spec->gang * spec->count > BH_JOB_PARTITIONS_MAX)
        return bh_err_set(err, BH_RANGE,
                          "gang: %" PRIu32 " members of %" PRIu32 " partitions are over %d partitions",
                          spec->gang, spec->count, BH_JOB_PARTITIONS_MAX);
    if (spec->pids > PIDS_MAX)
        return bh_err_set(err, BH_RANGE, "pids: %" PRIu32 " is over %d", spec->pids, PIDS_MAX);
    numbers->count = spec->count ? spec->count : 1;
    numbers->gang = spec->gang ? spec->gang : 1;
    numbers->pids = spec->pids;
    return BH_OK;
}

bh_rc
bh_spec_numbers(const struct bh_job_spec *spec, struct bh_job_numbers *ret_numbers, struct bh_err *err)
{
    static bh_rc (*const reads[])(const struct bh_job_spec *, struct bh_job_numbers *, struct bh_err *) = {
        spec_read_times,   spec_read_deadline,  spec_read_signal, spec_read_amounts,
        spec_read_scratch, spec_read_bandwidth, spec_read_counts
    };
    struct bh_job_numbers numbers = { 0 };
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(reads) && rc == BH_OK; i++)
        rc = reads[i](spec, &numbers, err);
    if (rc == BH_OK)
        *ret_numbers = numbers;
    return rc;
}

bh_rc
bh_spec_check(const struct bh_job_spec *spec, struct bh_job_numbers *ret_numbers, struct bh_err *err)
{
    static bh_rc (*const checks[])(const struct bh_job_spec *, struct bh_err *) = {
        spec_check_command,
        spec_check_names,
        spec_check_places,
    };
    bh_rc rc = spec_check_env(&spec->env, err);

    if (rc != BH_OK)
        return rc;
    rc = spec_check_labels(&spec->labels, err);
    if (rc != BH_OK)
        return rc;
    for (size_t i = 0; i < BH_COUNT(checks); i++) {
        rc = checks[i](spec, err);
        if (rc != BH_OK)
            return rc;
    }
    return bh_spec_numbers(spec, ret_numbers, err);
}
