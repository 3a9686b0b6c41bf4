#include "fetch/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/capability.h"
#include "base/fd.h"
#include "fetch/filter.h"
#include "fetch/resolver_files.h"

enum { NOBODY = 65534, DESCRIPTORS_MAX = 256 };

/* ---- rights ---- */

/* In a user namespace without that user the process stays root there, with nothing that
 * root may do. */
static bh_rc
become_nobody(struct bh_err *err)
{
    if (geteuid() != 0)
        return BH_OK;
    if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0
        || setresuid(NOBODY, NOBODY, NOBODY) != 0) {
        if (errno != EINVAL && errno != EPERM)
            return bh_err_errno(err, "cannot become the user nobody");
    }
    return bh_capability_keep(NULL, 0, err);
}

bh_rc
bh_fetch_sandbox_drop(struct bh_err *err)
{
    static const struct rlimit none = { 0, 0 };
    static const struct rlimit few = { DESCRIPTORS_MAX, DESCRIPTORS_MAX };
    bh_rc rc;

    if (setrlimit(RLIMIT_CORE, &none) != 0 || setrlimit(RLIMIT_NOFILE, &few) != 0)
        return bh_err_errno(err, "cannot set limits");
    rc = become_nobody(err);
    if (rc != BH_OK)
        return rc;
    /* After the change of user, which may set it anew. */
    if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return bh_err_errno(err, "cannot give up rights");
    /* A change of user forgets this one, too.  A parent that died before this call has
     * closed the socket, which ends the program as well. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return BH_OK;
}

/* ---- files ---- */

static const char *const folders[] = {
    "/usr", "/lib", "/lib64", "/etc/ssl", "/etc/pki", "/etc/crypto-policies", "/run/nscd",
};

static const char *const files[] = { "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom" };

enum {
    READ_FILE = LANDLOCK_ACCESS_FS_READ_FILE,
    READ_FOLDER = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
};

/* What is not there needs no rule. */
static bool
sandbox_allow(int ruleset, const char *path, uint64_t access)
{
    BH_AUTO(bh_fd_close)
    int fd = open(path, O_PATH | O_CLOEXEC);
    struct landlock_path_beneath_attr rule = { .allowed_access = access, .parent_fd = fd };

    return fd < 0 || syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) == 0;
}

/* resolv.conf is often a link to a file that is replaced now and then: its folder stays. */
static bool
allow_resolver(int ruleset)
{
    char path[PATH_MAX];
    bool good = true;

    for (size_t i = 0; bh_fetch_resolver_files[i]; i++)
        good = good && sandbox_allow(ruleset, bh_fetch_resolver_files[i], READ_FILE);
    if (realpath("/etc/resolv.conf", path) && strncmp(path, "/etc/", strlen("/etc/")) != 0)
        good = good && sandbox_allow(ruleset, dirname(path), READ_FOLDER);
    return good;
}

static bh_rc
lock_files(struct bh_err *err)
{
    /* What every version of Landlock knows: all ways to use a file. */
    struct landlock_ruleset_attr all = { .handled_access_fs = (LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1 };
    BH_AUTO(bh_fd_close)
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
    bool good = true;

    if (ruleset < 0 && (errno == ENOSYS || errno == EOPNOTSUPP))
        return BH_OK;
    if (ruleset < 0)
        return bh_err_errno(err, "cannot make file rules");
    for (size_t i = 0; i < BH_COUNT(folders); i++)
        good = good && sandbox_allow(ruleset, folders[i], READ_FOLDER);
    for (size_t i = 0; i < BH_COUNT(files); i++)
        good = good && sandbox_allow(ruleset, files[i], READ_FILE);
    if (!good || !allow_resolver(ruleset) || syscall(SYS_landlock_restrict_self, ruleset, 0) != 0)
        return bh_err_errno(err, "cannot enforce file rules");
    return BH_OK;
}

bh_rc
bh_fetch_sandbox_enter(struct bh_err *err)
{
    bh_rc rc = lock_files(err);

    return rc == BH_OK ? bh_fetch_filter_load(err) : rc;
}
