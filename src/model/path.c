#include "model/path.h"

#include <string.h>

#include "model/ids.h"

enum { PART_MAX = 255 }; /* NAME_MAX of every file system */

bool
bh_tenant_path_valid(const char *path)
{
    char part[BH_NAME_MAX + 1];

    if (strlen(path) > BH_TENANT_PATH_MAX)
        return false;
    for (;;) {
        const char *end = strchr(path, '/');
        size_t length = end ? (size_t)(end - path) : strlen(path);

        if (length > BH_NAME_MAX)
            return false;
        memcpy(part, path, length);
        part[length] = '\0';
        if (!bh_name_valid(part))
            return false;
        if (!end)
            return true;
        path = end + 1;
    }
}

unsigned
bh_tenant_path_depth(const char *path)
{
    unsigned depth = 0;

    for (; *path; path++)
        depth += *path == '/';
    return depth;
}

bool
bh_tenant_path_is_parent(const char *parent, const char *path)
{
    const char *last = strrchr(path, '/');
    size_t length = last ? (size_t)(last - path) : 0;

    return last && strlen(parent) == length && memcmp(parent, path, length) == 0;
}

static bool
has_control(const char *path)
{
    for (; *path; path++)
        if ((unsigned char)*path < 0x20 || *path == 0x7f)
            return true;
    return false;
}

static bool
is_part(const char *at, const char *part)
{
    size_t length = strlen(part);

    return strncmp(at, part, length) == 0 && (at[length] == '/' || at[length] == '\0');
}

const char *
bh_file_path_fault(const char *path)
{
    if (path[0] != '/')
        return "is not absolute";
    if (strlen(path) > BH_FILE_PATH_MAX)
        return "is too long";
    if (has_control(path))
        return "has a control character";
    for (const char *at = path; at; at = strchr(at, '/')) {
        at++;
        if (is_part(at, ".."))
            return "leads upward with \"..\"";
        if (is_part(at, ".") || *at == '/')
            return "has an empty part or \".\"";
    }
    return NULL;
}

/* The folders that the sandbox itself fills, with what is said of them. */
#define RESERVED(name)                                                                                       \
    {                                                                                                        \
        name, "is below /" name ", which belongs to the sandbox"                                             \
    }

static const char *
reserved_fault(const char *path)
{
    static const struct {
        const char *name, *fault;
    } rows[] = {
        RESERVED("bin"),   RESERVED("boot"),  RESERVED("dev"),    RESERVED("etc"),  RESERVED("lib"),
        RESERVED("lib32"), RESERVED("lib64"), RESERVED("libx32"), RESERVED("proc"), RESERVED("run"),
        RESERVED("sbin"),  RESERVED("sys"),   RESERVED("usr"),
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (is_part(path + 1, rows[i].name))
            return rows[i].fault;
    return NULL;
}

const char *
bh_sandbox_path_fault(const char *path)
{
    _Static_assert(BH_SANDBOX_PATH_MAX == 1000 && PART_MAX == 255, "the texts say so");

    if (path[1] == '\0')
        return "is the root itself";
    if (strlen(path) > BH_SANDBOX_PATH_MAX)
        return "is longer than 1000 bytes, the limit for a path inside a job";
    if (path[strlen(path) - 1] == '/')
        return "ends with a slash";
    for (const char *at = path; *at; at += strcspn(at, "/")) {
        at++;
        if (strcspn(at, "/") > PART_MAX)
            return "has a part longer than 255 bytes";
    }
    return reserved_fault(path);
}

bool
bh_file_path_within(const char *above, const char *path)
{
    size_t length = strlen(above);

    while (length > 0 && above[length - 1] == '/')
        length--;
    return strncmp(above, path, length) == 0 && (path[length] == '/' || path[length] == '\0');
}
