#include "node/core/limits.h"

#include <inttypes.h>
#include <unistd.h>

#include "model/spec.h"
#include "node/common/disk.h"

/* What version 1 takes for a CPU quota is 1 ms of 100 at least. */
enum { CPU_MILLI_MIN = BH_JOB_CPU_MILLI_MIN, CPU_MILLI_MAX = 4194303 };

static bh_rc
check_limit(const char *field, uint64_t asked, uint64_t most, const char *key, struct bh_err *err)
{
    if (asked <= most)
        return BH_OK;
    bh_err_set(err, BH_RANGE, "%s: %" PRIu64 " is more than %" PRIu64, field, asked, most);
    return key ? bh_err_hint(err, "the administrator can raise %s in node.conf", key) : err->rc;
}

uint64_t
bh_limits_memory_max(const struct bh_conf *conf)
{
    uint64_t machine = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

    /* whole MiB: the kernel keeps whole pages, and the checks compare with what was ordered */
    return conf->memory_max_mib ? (uint64_t)conf->memory_max_mib << 20 : (machine / 10 * 9) >> 20 << 20;
}

bh_rc
bh_limits_check(const struct bh_conf *conf, const struct bh_msg_start *start, struct bh_err *err)
{
    bh_rc rc = check_limit("pids", start->pids, conf->pids_max, "pids_max", err);

    if (rc != BH_OK)
        return rc;
    rc = check_limit("memory_bytes", start->memory_bytes, bh_limits_memory_max(conf), "memory_max_mib", err);
    if (rc != BH_OK)
        return rc;
    rc = check_limit("cpu_milli", start->cpu_milli, CPU_MILLI_MAX, NULL, err);
    if (rc != BH_OK)
        return rc;
    if (start->cpu_milli && start->cpu_milli < CPU_MILLI_MIN)
        return bh_err_set(err, BH_RANGE, "cpu_milli: %u is less than %d", start->cpu_milli, CPU_MILLI_MIN);
    return BH_OK;
}

bh_rc
bh_limits_io(const struct bh_conf *conf, struct bh_sandbox *sandbox, struct bh_err *err)
{
    const char *folder = *conf->scratch_dir ? conf->scratch_dir : conf->state_dir;
    bh_rc rc;

    if (conf->io_mib_s == 0)
        return BH_OK;
    sandbox->io_bytes = (uint64_t)conf->io_mib_s << 20;
    rc = bh_disk_of("/sys/dev/block", folder, &sandbox->io_major, &sandbox->io_minor, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "io_mib_s in node.conf");
}

void
bh_limits_put(const struct bh_conf *conf, const struct bh_msg_start *start, struct bh_sandbox *sandbox)
{
    sandbox->cpu_milli = start->cpu_milli;
    if (conf->cpu_milli_max && (!sandbox->cpu_milli || sandbox->cpu_milli > conf->cpu_milli_max))
        sandbox->cpu_milli = conf->cpu_milli_max;
    if (sandbox->cpu_milli && sandbox->cpu_milli < CPU_MILLI_MIN)
        sandbox->cpu_milli = CPU_MILLI_MIN;
    sandbox->pids = start->pids ? start->pids : conf->pids_default;
    if (sandbox->pids > conf->pids_max)
        sandbox->pids = conf->pids_max;
    sandbox->memory_bytes =
        start->memory_bytes ? start->memory_bytes : (uint64_t)conf->memory_default_mib << 20;
    if (sandbox->memory_bytes > bh_limits_memory_max(conf))
        sandbox->memory_bytes = bh_limits_memory_max(conf);
    sandbox->tmp_bytes = (uint64_t)conf->tmp_mib << 20;
    if (sandbox->tmp_bytes > sandbox->memory_bytes / 2)
        sandbox->tmp_bytes = sandbox->memory_bytes / 2;
}
