#include "checkpoint/report.h"

static const char *const action_names[BH_CHECKPOINT_ACTIONS] = {
    [BH_CHECKPOINT_PROBE] = "probe",
    [BH_CHECKPOINT_SAVE] = "take",
    [BH_CHECKPOINT_RESTORE] = "back",
};

static const char *const end_names[BH_CHECKPOINT_ENDS] = {
    [BH_CHECKPOINT_DONE] = "done",
    [BH_CHECKPOINT_REFUSED] = "refused",
    [BH_CHECKPOINT_FAILED] = "bad",
    [BH_CHECKPOINT_NO_CALLS] = "no-calls",
};

static const struct bh_field pid_rows[] = {
    BH_F(struct bh_checkpoint_pid, pid, BH_FIELD_U32),
};
const struct bh_fields bh_checkpoint_pid_fields =
    BH_FIELDS("checkpoint_pid", struct bh_checkpoint_pid, pid_rows);

static const struct bh_field device_rows[] = {
    BH_F(struct bh_checkpoint_device, major, BH_FIELD_U32),
    BH_F(struct bh_checkpoint_device, minor, BH_FIELD_U32),
    BH_F(struct bh_checkpoint_device, path, BH_FIELD_STR),
};
static const struct bh_fields device_fields =
    BH_FIELDS("checkpoint_device", struct bh_checkpoint_device, device_rows);

static const struct bh_field mount_rows[] = {
    BH_F(struct bh_checkpoint_mount, source, BH_FIELD_TEXT),
    BH_F(struct bh_checkpoint_mount, target, BH_FIELD_TEXT),
    BH_F(struct bh_checkpoint_mount, write, BH_FIELD_BOOL),
};
static const struct bh_fields mount_fields =
    BH_FIELDS("checkpoint_mount", struct bh_checkpoint_mount, mount_rows);

static const struct bh_field request_rows[] = {
    BH_F_ENUM(struct bh_checkpoint_request, action, action_names,
              .flags = BH_FIELD_REQUIRED | BH_FIELD_ALWAYS),
    BH_F(struct bh_checkpoint_request, devices, BH_FIELD_LIST, .of = &device_fields,
         .max = BH_CHECKPOINT_DEVICES_MAX),
    BH_F(struct bh_checkpoint_request, id_base, BH_FIELD_U32),
    BH_F(struct bh_checkpoint_request, library, BH_FIELD_TEXT),
    BH_F(struct bh_checkpoint_request, lock_ms, BH_FIELD_U32),
    BH_F(struct bh_checkpoint_request, mounts, BH_FIELD_LIST, .of = &mount_fields,
         .max = BH_CHECKPOINT_MOUNTS_MAX),
    BH_F_ARRAY(struct bh_checkpoint_request, pids, pid_count, bh_checkpoint_pid_fields,
               BH_CHECKPOINT_PIDS_MAX),
};
const struct bh_fields bh_checkpoint_request_fields =
    BH_FIELDS("checkpoint_request", struct bh_checkpoint_request, request_rows);

static const struct bh_field report_rows[] = {
    BH_F_ENUM(struct bh_checkpoint_report, end, end_names, .flags = BH_FIELD_REQUIRED | BH_FIELD_ALWAYS),
    BH_F(struct bh_checkpoint_report, pid, BH_FIELD_U32),
    BH_F(struct bh_checkpoint_report, processes, BH_FIELD_U32),
    BH_F(struct bh_checkpoint_report, why, BH_FIELD_STR),
};
const struct bh_fields bh_checkpoint_report_fields =
    BH_FIELDS("checkpoint_report", struct bh_checkpoint_report, report_rows);
