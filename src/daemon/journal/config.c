#include "daemon/journal/config.h"

#include <stddef.h>
#include <string.h>

#include "base/fd.h"

enum { CONFIG_BYTES_MAX = 64 << 10 };

static const struct bh_param rows[] = {
#define BH_PARAM(key, type, least, most, value, sentence)                                                    \
    { .name = #key,                                                                                          \
      .kind = BH_PARAM_##type,                                                                               \
      .offset = offsetof(struct bh_daemon_config, key),                                                      \
      .low = least,                                                                                          \
      .high = most,                                                                                          \
      .standard = value,                                                                                     \
      .doc = sentence },
#include "tables/daemon_params.tbl"
#undef BH_PARAM
};

const struct bh_params bh_daemon_params = { rows, BH_COUNT(rows) };

static bh_rc
config_check(const struct bh_daemon_config *config, struct bh_err *err)
{
    if (strcmp(config->metrics_host_label, "hostname") == 0
        || strcmp(config->metrics_host_label, "Hostname") == 0)
        return BH_OK;
    bh_err_set(err, BH_INVALID, "metrics_host_label is %s", config->metrics_host_label);
    return bh_err_hint(err, "it can be hostname or Hostname");
}

bh_rc
bh_daemon_config_load(const char *path, bool required, struct bh_daemon_config *ret_config,
                      struct bh_arena *arena, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = CONFIG_BYTES_MAX + 1 };
    const char *lines;
    bh_rc rc = bh_file_read(path, CONFIG_BYTES_MAX, &text, err);

    if (rc == BH_NOT_FOUND && !required)
        rc = BH_OK;
    lines = bh_buf_text(&text);
    if (rc == BH_OK && lines)
        rc = bh_params_parse(&bh_daemon_params, lines, ret_config, arena, err);
    if (rc == BH_OK)
        rc = config_check(ret_config, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", path);
}
