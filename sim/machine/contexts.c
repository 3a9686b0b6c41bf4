#include "sim/machine/contexts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim/machine/vram.h"

#define CHUNK_BYTES 65536
#define FILE_NAME "/memory"
#define PATH_BYTES 4096

/* Of <linux/fs.h> since Linux 6.11: the areas of a maps file that one asks for, in binary. */
struct area_query {
    uint64_t size, wanted, address;
    uint64_t start, end, flags, page_bytes, offset, inode;
    uint32_t major, minor, name_bytes, build_id_bytes;
    uint64_t name, build_id;
};

#define AREA_QUERY _IOWR('f', 17, struct area_query)
enum { AREA_READABLE = 1, AREA_SHARED = 8, AREA_OR_NEXT = 16, AREA_OF_FILE = 32 };

struct area {
    uint64_t start, end;
    uint64_t offset; /* in the file */
    bool context;    /* readable and shared: a context, and not the simulator's own look-up */
    struct sim_mapping file;
};

static bool
contexts_parse_area(const char *line, struct area *ret_area)
{
    char access[8];
    unsigned major, minor;

    if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %x:%x %" SCNu64, &ret_area->start,
               &ret_area->end, access, &ret_area->offset, &major, &minor, &ret_area->file.inode)
        != 7)
        return false;
    ret_area->context = access[0] == 'r' && access[3] == 's';
    ret_area->file.device = (uint64_t)major << 32 | minor;
    return true;
}

typedef void (*visit_fn)(void *self, const struct area *area);

/* The same as contexts_each_line, where the kernel can be asked for shared areas alone: most processes
 * have none, and the text of all that they map takes it ten times as long.  False where it
 * cannot be asked. */
static bool
contexts_each_shared(int fd, visit_fn visit, void *self)
{
    char name[PATH_BYTES];
    struct area_query query = { .size = sizeof(query), .wanted = AREA_SHARED | AREA_OR_NEXT | AREA_OF_FILE };

    for (;;) {
        query.name = (uintptr_t)name;
        query.name_bytes = sizeof(name);
        query.build_id_bytes = 0;
        if (ioctl(fd, AREA_QUERY, &query) != 0) {
            query.name_bytes = 0; /* a name that is too long is none of the simulator's */
            name[0] = '\0';
            if (errno != ENAMETOOLONG || ioctl(fd, AREA_QUERY, &query) != 0)
                return errno != ENOTTY && errno != EINVAL;
        }
        if (strstr(name, FILE_NAME) != NULL)
            visit(self, &(struct area){ .start = query.start,
                                        .end = query.end,
                                        .offset = query.offset,
                                        .context = (query.flags & AREA_READABLE) != 0,
                                        .file = { (uint64_t)query.major << 32 | query.minor, query.inode } });
        query.address = query.end;
    }
}

static void
contexts_each_line(int fd, visit_fn visit, void *self)
{
    char *text = malloc(CHUNK_BYTES + 1);
    size_t kept = 0;
    ssize_t got;
    struct area area;

    while (text != NULL && (got = read(fd, text + kept, CHUNK_BYTES - kept)) > 0) {
        char *line = text, *end;

        text[kept + (size_t)got] = '\0';
        for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            if (strstr(line, FILE_NAME) != NULL && contexts_parse_area(line, &area))
                visit(self, &area);
        }
        kept = strlen(line);
        if (kept >= CHUNK_BYTES)
            break;
        memmove(text, line, kept);
    }
    free(text);
}

/* Call `visit` for each shared area of a maps file that names a memory file. */
static void
contexts_each_area(const char *path, visit_fn visit, void *self)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    if (!contexts_each_shared(fd, visit, self))
        contexts_each_line(fd, visit, self);
    close(fd);
}

struct contexts_search {
    uint64_t address;
    bool found;
    struct sim_mapping file;
};

static void
contexts_match_address(void *self, const struct area *area)
{
    struct contexts_search *search = self;

    if (area->start != search->address)
        return;
    search->found = true;
    search->file = area->file;
}

bool
sim_mapping_find(const char *path, struct sim_mapping *ret_mapping)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct contexts_search search = { 0 };
    void *page;

    if (fd < 0)
        return false;
    page = mmap(NULL, 1, PROT_NONE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED)
        return false;
    search.address = (uintptr_t)page;
    contexts_each_area("/proc/self/maps", contexts_match_address, &search);
    munmap(page, 1);
    *ret_mapping = search.file;
    return search.found;
}

/* A lease for writing is given where no other process has the file open, and one that maps it has it
 * open.  One that opens it in the microsecond between waits for this one, and the kernel sends a
 * signal then, which shall be one that does nothing. */
bool
sim_contexts_any(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool any;

    if (fd < 0)
        return errno != ENOENT;
    any = fcntl(fd, F_SETSIG, SIGURG) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0;
    if (!any)
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    close(fd);
    return any;
}

int
sim_contexts_hold(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd >= 0 && fcntl(fd, F_SETSIG, SIGURG) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

struct collection {
    const struct sim_mapping *files;
    size_t file_count;
    struct sim_context *contexts;
    size_t count, most;
    uint32_t pid;
};

static bool
contexts_is_same_file(const struct sim_mapping *one, const struct sim_mapping *other)
{
    return one->inode == other->inode && one->device == other->device;
}

static bool
contexts_is_wanted(const struct collection *all, const struct sim_mapping *file)
{
    for (size_t i = 0; i < all->file_count; i++)
        if (contexts_is_same_file(&all->files[i], file))
            return true;
    return false;
}

/* The entry of the process that is looked at now; NULL: there is no room for it. */
static struct sim_context *
contexts_entry_for(struct collection *all, const struct sim_mapping *file)
{
    for (size_t i = all->count; i-- > 0 && all->contexts[i].pid == all->pid;)
        if (contexts_is_same_file(&all->contexts[i].file, file))
            return &all->contexts[i];
    if (all->count == all->most)
        return NULL;
    all->contexts[all->count] = (struct sim_context){ .file = *file, .pid = all->pid };
    return &all->contexts[all->count++];
}

/* A page whose number is a slot's: what the process has stands in the ledger.  A process has one
 * slot: of several pages the first says which, and one beyond the table none. */
static void
contexts_collect(void *self, const struct area *area)
{
    struct collection *all = self;
    uint64_t slot = area->offset / SIM_BLOCK_BYTES;
    struct sim_context *context =
        area->context && contexts_is_wanted(all, &area->file) ? contexts_entry_for(all, &area->file) : NULL;

    if (context == NULL)
        return;
    if (slot == 0)
        context->bytes += area->end - area->start;
    else if (context->slot == 0 && slot < SIM_SLOTS_MAX)
        context->slot = (uint32_t)slot;
}

/* CPU time and start of a process, from the 14th, 15th and 22nd field of its
 * stat line; the name, the 2nd, may hold blanks and brackets. */
static void
contexts_read_cpu(struct sim_context *context)
{
    char path[64], text[1024];
    uint64_t user = 0, system = 0, started = 0;
    uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);
    int fd;
    ssize_t got;

    snprintf(path, sizeof(path), "/proc/%u/stat", context->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    got = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    const char *fields = strrchr(text, ')');
    if (fields == NULL
        || sscanf(fields + 1,
                  " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
                  " %*d %*d %*d %*d %*d %*d %" SCNu64,
                  &user, &system, &started)
               != 3)
        return;
    context->cpu_ns = (user + system) * tick_ns;
    context->started_ns = started * tick_ns;
}

size_t
sim_contexts_scan(const struct sim_mapping *files, size_t file_count, struct sim_context *contexts,
                  size_t most)
{
    struct collection all = { .files = files, .file_count = file_count, .contexts = contexts, .most = most };
    DIR *folder = opendir("/proc");
    const struct dirent *entry;
    char path[300];

    if (folder == NULL)
        return 0;
    while ((entry = readdir(folder)) != NULL) {
        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        all.pid = (uint32_t)strtoul(entry->d_name, NULL, 10);
        snprintf(path, sizeof(path), "/proc/%s/maps", entry->d_name);
        contexts_each_area(path, contexts_collect, &all);
    }
    closedir(folder);
    for (size_t i = 0; i < all.count; i++)
        contexts_read_cpu(&contexts[i]);
    return all.count;
}

uint64_t
sim_contexts_used(const char *path, struct sim_context *room, size_t most)
{
    struct sim_mapping file;
    uint64_t used = 0;
    size_t count;

    if (!sim_contexts_any(path) || !sim_mapping_find(path, &file))
        return 0;
    count = sim_contexts_scan(&file, 1, room, most);
    for (size_t i = 0; i < count; i++)
        used += room[i].bytes;
    return used;
}
