#include "node/common/conf.h"

#include <ctype.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define KIND_TEXT BH_PARAM_TEXT
#define KIND_TEXTS BH_PARAM_LIST
#define KIND_COUNT BH_PARAM_U32
#define STANDARD_TEXT(text) text
#define STANDARD_TEXTS(text) NULL
#define STANDARD_COUNT(number) #number

static const struct bh_param rows[] = {
#define BH_NODE_PARAM(name_, kind_, unit, min, max, fallback, sentence)                                      \
    { .name = #name_,                                                                                        \
      .kind = KIND_##kind_,                                                                                  \
      .offset = offsetof(struct bh_conf, name_),                                                             \
      .low = min,                                                                                            \
      .high = max,                                                                                           \
      .standard = STANDARD_##kind_(fallback),                                                                \
      .doc = sentence },
#include "tables/node_params.tbl"
#undef BH_NODE_PARAM
};
static const struct bh_params params = { rows, BH_COUNT(rows) };

/* ---- what the table cannot say ---- */

static bh_rc
conf_check_text(const char *name, const char *text, bool path, struct bh_err *err)
{
    if (strlen(text) > BH_CONF_PATH_MAX)
        return bh_err_set(err, BH_RANGE, "%s is longer than %d bytes", name, BH_CONF_PATH_MAX);
    for (const char *at = text; *at; at++) {
        if (iscntrl((unsigned char)*at))
            return bh_err_set(err, BH_INVALID, "%s contains a control character", name);
    }
    if (path && *text && *text != '/')
        return bh_err_set(err, BH_INVALID, "%s must be an absolute path", name);
    return BH_OK;
}

/* Of what a list names only these may have a comma of their own. */
static bool
conf_may_have_comma(const char *name)
{
    return strcmp(name, "driver_env") == 0 || strcmp(name, "job_driver_mount") == 0;
}

static bh_rc
conf_check_list(const char *name, const struct bh_param_list *list, bool path, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < list->count && rc == BH_OK; i++) {
        rc = conf_check_text(name, list->items[i], path, err);
        if (rc == BH_OK && strchr(list->items[i], ',') && !conf_may_have_comma(name)) {
            rc = bh_err_set(err, BH_INVALID, "%s contains a comma: \"%.80s\"", name, list->items[i]);
            (void)bh_err_hint(err, "write a line for each: %s = ...", name);
        }
    }
    return rc;
}

/* A program may be named without its folder. */
static bool
conf_is_path(const char *name, const char *text)
{
    static const char *const others[] = { "node_name",   "daemon_user",   "driver_env",   "job_driver_mount",
                                          "gpus",        "networks",      "network_pool", "network_uplinks",
                                          "egress_deny", "bandwidth_max", "registries",   "registry_hosts" };

    for (size_t i = 0; i < BH_COUNT(others); i++) {
        if (strcmp(others[i], name) == 0)
            return false;
    }
    return (strcmp(name, "runtime") != 0 && strcmp(name, "nvml_library") != 0 && strcmp(name, "umoci") != 0
            && strcmp(name, "skopeo") != 0)
           || strchr(text, '/');
}

static bh_rc
conf_check(const struct bh_conf *conf, struct bh_err *err)
{
    bh_rc rc = BH_OK;

    for (size_t i = 0; i < BH_COUNT(rows) && rc == BH_OK; i++) {
        const void *place = (const char *)conf + rows[i].offset;
        const char *text;

        if (rows[i].kind == BH_PARAM_LIST)
            rc = conf_check_list(rows[i].name, place, conf_is_path(rows[i].name, ""), err);
        if (rows[i].kind != BH_PARAM_TEXT)
            continue;
        text = *(const char *const *)place;
        rc = conf_check_text(rows[i].name, text, conf_is_path(rows[i].name, text), err);
    }
    return rc;
}

/* ---- reading ---- */

bh_rc
bh_conf_parse(const char *file, const char *text, struct bh_arena *arena, struct bh_conf *ret_conf,
              struct bh_err *err)
{
    struct bh_conf conf = { 0 };
    bh_rc rc = bh_params_parse(&params, text, &conf, arena, err);

    if (rc == BH_OK)
        rc = conf_check(&conf, err);
    if (rc != BH_OK)
        return bh_err_wrap(err, "%s", file);
    *ret_conf = conf;
    return BH_OK;
}

static bh_rc
conf_check_owner(const char *path, struct bh_err *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return bh_err_errno(err, "inspect %s", path);
    if (geteuid() != 0 || (st.st_uid == 0 && (st.st_mode & (S_IWGRP | S_IWOTH)) == 0))
        return BH_OK;
    bh_err_set(err, BH_DENIED, "%s can be written by users other than root", path);
    return bh_err_hint(err, "chown root %s; chmod go-w %s", path, path);
}

/* A package knows the daemon's user by name: the number is made where it is installed. */
static bh_rc
conf_resolve_daemon(struct bh_conf *conf, struct bh_err *err)
{
    const struct passwd *user;

    if (!*conf->daemon_user)
        return BH_OK;
    user = getpwnam(conf->daemon_user);
    if (!user) {
        bh_err_set(err, BH_NOT_FOUND, "daemon_user: no user %.60s", conf->daemon_user);
        return bh_err_hint(err, "install bulkhead-daemon, or run systemd-sysusers");
    }
    conf->daemon_uid = user->pw_uid;
    conf->daemon_gid = user->pw_gid;
    return BH_OK;
}

bh_rc
bh_conf_read(const char *path, struct bh_arena *arena, struct bh_conf *ret_conf, struct bh_err *err)
{
    struct bh_buf text;
    bh_rc rc = conf_check_owner(path, err);

    if (rc != BH_OK)
        return rc;
    bh_buf_init(&text, BH_CONF_BYTES_MAX + 1);
    rc = bh_file_read(path, BH_CONF_BYTES_MAX, &text, err);
    if (rc == BH_OK && text.length > 0 && memchr(text.bytes, '\0', text.length))
        rc = bh_err_set(err, BH_INVALID, "%s contains a NUL byte", path);
    if (rc == BH_OK)
        rc = bh_conf_parse(path, text.length > 0 ? bh_buf_text(&text) : "", arena, ret_conf, err);
    bh_buf_fini(&text);
    return rc == BH_OK ? conf_resolve_daemon(ret_conf, err) : rc;
}

void
bh_conf_help(void)
{
    struct bh_buf text;

    bh_buf_init(&text, BH_CONF_BYTES_MAX);
    bh_params_help(&params, &text);
    if (text.length > 0)
        fputs(bh_buf_text(&text), stdout);
    bh_buf_fini(&text);
}

bool
bh_conf_gpu_allowed(const struct bh_conf *conf, const char *uuid)
{
    for (uint32_t i = 0; i < conf->gpus.count; i++) {
        if (strcmp(conf->gpus.items[i], "all") == 0 || strcmp(conf->gpus.items[i], uuid) == 0)
            return true;
    }
    return false;
}
