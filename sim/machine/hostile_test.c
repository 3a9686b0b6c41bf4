/* What jobs can write, read by processes that are not the job: any content. */

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test.h"
#include "sim/machine/files.h"
#include "sim/machine/gauge.h"
#include "sim/machine/geometry.h"
#include "sim/machine/meter.h"
#include "sim/machine/queue.h"

#define MINUTE_NS (60ull * 1000000000u)
#define ROUNDS 4
#define SEED 20261123u
#define LOOKS_WHILE 12

static char dir[40], folder[80];

static void
make_server(void)
{
    struct sim_gpu gpu = { .minor = 0 };

    snprintf(dir, sizeof(dir), "/tmp/bh-hostile-XXXXXX");
    assert_non_null(mkdtemp(dir));
    assert_true(sim_vram_publish(dir, &gpu, NULL));
    snprintf(folder, sizeof(folder), "%s/vram/0-w", dir);
}

/* A file of the folder, as a job has it. */
static void *
map_file(const char *name, size_t length)
{
    char path[SIM_PATH_MAX];
    void *map = MAP_FAILED;
    int fd = sim_path(path, "%s/%s", folder, name) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    if (fd >= 0)
        map = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    close(fd);
    return map;
}

/* ---- moments ---- */

/* What the record says beside the moment that it is: later, by so much. */
static const struct moment {
    const char *name;
    uint64_t later_ns, busy_ns, sample_ns;
} moments[] = {
    { "in a minute", MINUTE_NS, 0, 0 },
    { "in ten years", 60 * 24 * 3650 * MINUTE_NS, 0, 0 },
    { "never", UINT64_MAX / 2, UINT64_MAX, UINT64_MAX },
    { "busy before the clock began", 0, UINT64_MAX, 0 },
    { "busy more than the sample is long", 0, 0, UINT64_MAX / 100 },
};

static void
check_moment(const struct moment *moment)
{
    struct sim_queue *queue = sim_queue_open(folder, 7);
    struct sim_device *device = map_file(SIM_TASK_FILE, sizeof(*device));
    uint64_t before = sim_queue_now(), busy_ns = 0, number = before / SIM_TASK_SAMPLE_NS;
    struct sim_gauge_share share = { 0 };
    struct sim_gauge *gauge;

    assert_non_null(queue);
    device->slot[0].submitted = 1;
    device->slot[0].busy_ns = moment->busy_ns;
    device->sample[number % SIM_TASK_SAMPLES] =
        (struct sim_task_sample){ number * SIM_TASK_SAMPLE_NS, device->slot[0].birth, moment->sample_ns };
    device->now_ns = before + moment->later_ns;
    gauge = sim_gauge_open(folder);
    assert_non_null(gauge);
    BH_CHECK(moment->name, sim_gauge_at(gauge) >= before);
    BH_CHECK(moment->name, sim_gauge_at(gauge) <= sim_queue_now());
    BH_CHECK(moment->name, sim_gauge_busy(gauge, 7, &busy_ns));
    BH_CHECK(moment->name, busy_ns <= sim_gauge_at(gauge));
    if (sim_gauge_share_of(gauge, 7, 0, &share)) {
        BH_CHECK(moment->name, share.percent <= 100);
        BH_CHECK(moment->name, share.last_ns <= sim_gauge_at(gauge));
    }
    sim_gauge_close(gauge);
    /* and others on the same device go on */
    BH_CHECK_EQ(moment->name, sim_queue_depth(queue), 0);
    sim_queue_lock(queue);
    BH_CHECK(moment->name, device->now_ns <= sim_queue_now());
    sim_queue_unlock(queue);
    sim_queue_close(queue);
    munmap(device, sizeof(*device));
}

static void
no_moment_is_later_than_now(void **state)
{
    for (size_t i = 0; i < sizeof(moments) / sizeof(moments[0]); i++) {
        make_server();
        check_moment(&moments[i]);
        assert_true(sim_remove_tree(dir));
    }
    BH_CHECK_DONE();
}

/* ---- any words at all ---- */

/* Words as they lead astray: anything, all ones, a number next to a bound, or zero. */
static const struct words {
    const char *name;
    unsigned any, ones, bound; /* so many of 100 words; the others are zero */
    /* clang-format off */
} words[] = {
    { "any", 100, 0, 0 },    { "ones", 0, 100, 0 },   { "bounds", 0, 0, 100 },
    { "some", 40, 10, 25 },  { "few", 2, 1, 10 },     { "sparse", 1, 0, 1 },
    { "halves", 50, 50, 0 }, { "large", 0, 50, 50 },
};
/* clang-format on */

static const uint64_t bounds[] = {
    1,
    2,
    15,
    16,
    17,
    71,
    72,
    127,
    128,
    129,
    1023,
    1024,
    1025,
    0x0001000100010001u,
    0x00020002,
    0x100000001u,
    0x200000002u,
    0x300000400u,
    0x7fffffffu,
    0x80000000u,
    0xfffffffffffff000u,
};

/* xorshift64: the same words from the same seed. */
static uint64_t
next_word(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static uint64_t
choose_word(const struct words *kind, uint64_t *seed)
{
    uint64_t word = next_word(seed);
    unsigned at = (unsigned)(next_word(seed) >> 33) % 100;

    if (at < kind->any)
        return word;
    if (at < kind->any + kind->ones)
        return UINT64_MAX;
    return at < kind->any + kind->ones + kind->bound ? bounds[word % (sizeof(bounds) / sizeof(bounds[0]))]
                                                     : 0;
}

static void
scribble(void *start, size_t bytes, const struct words *kind, uint64_t *seed)
{
    volatile uint64_t *word = start;

    for (size_t i = 0; i < bytes / sizeof(*word); i++)
        word[i] = choose_word(kind, seed);
}

/* Of a GPU's memory, what jobs have of it; with a process's lock on some of its slots, which are
 * not a dead one's then. */
struct files {
    struct sim_slot *slots;
    size_t head_bytes;
    struct sim_device *device;
    int unit, work;
};

static int
live_in_some(const char *name)
{
    char path[SIM_PATH_MAX];
    int fd = sim_path(path, "%s/%s", folder, name) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    for (off_t at = 1; at < 1024; at = at * 3 / 2 + 1) {
        struct flock life = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = at, .l_len = 1 };

        assert_int_equal(fcntl(fd, F_OFD_SETLK, &life), 0);
    }
    return fd;
}

static struct files
open_files(void)
{
    struct files files = { .head_bytes = 128 << 10 };

    make_server();
    files.slots = map_file("0", files.head_bytes);
    files.device = map_file(SIM_TASK_FILE, sizeof(*files.device));
    files.unit = live_in_some("0");
    files.work = live_in_some(SIM_TASK_FILE);
    return files;
}

static void
close_files(const struct files *files)
{
    munmap(files->slots, files->head_bytes);
    munmap(files->device, sizeof(*files->device));
    close(files->unit);
    close(files->work);
    assert_true(sim_remove_tree(dir));
}

/* The magic, by which any other file is refused, and the lock stay. */
static void
scribble_files(const struct files *files, const struct words *kind, uint64_t *seed)
{
    size_t head = offsetof(struct sim_device, slice_ns);

    scribble(files->slots, files->head_bytes, kind, seed);
    scribble((char *)files->device + head, sizeof(*files->device) - head, kind, seed);
}

/* ---- NVML's looks ---- */

static void
look_at_memory(const char *name)
{
    struct sim_gpu gpu = { .minor = 0 };
    uint64_t bytes = (uint64_t)sim_model_at(gpu.model)->memory_mib << 20;
    struct sim_meter *meter = sim_meter_open(folder, &gpu, bytes);
    static struct sim_meter_reading reading;

    assert_non_null(meter);
    BH_CHECK(name, sim_meter_used(meter) <= bytes);
    sim_meter_read(meter, &reading);
    BH_CHECK_EQ(name, reading.total_bytes, bytes);
    BH_CHECK(name, reading.used_bytes <= bytes);
    BH_CHECK(name, reading.users < SIM_SLOTS_MAX);
    for (size_t i = 0; i < reading.users; i++) {
        BH_CHECK(name, reading.user[i].slot > 0 && reading.user[i].slot < SIM_SLOTS_MAX);
        BH_CHECK(name, reading.user[i].bytes <= bytes);
        BH_CHECK_EQ(name, sim_meter_slot(&reading, reading.user[i].slot), reading.user[i].bytes);
    }
    for (uint32_t slot = 0; slot < 2 * SIM_SLOTS_MAX; slot += 7)
        (void)sim_meter_is_away(meter, slot);
    BH_CHECK("beyond", !sim_meter_is_away(meter, UINT32_MAX));
    sim_meter_close(meter);
}

static void
look_at_work(const char *name, const struct sim_device *device)
{
    uint64_t before = sim_queue_now(), busy_ns = 0;
    struct sim_gauge *gauge = sim_gauge_open(folder);
    struct sim_gauge_share share = { 0 };

    assert_non_null(gauge);
    BH_CHECK(name, sim_gauge_at(gauge) >= before);
    BH_CHECK(name, sim_gauge_at(gauge) <= sim_queue_now());
    for (uint32_t i = 0; i < SIM_TASK_SLOTS; i++) {
        uint32_t user = __atomic_load_n(&device->slot[i].user, __ATOMIC_RELAXED);

        if (sim_gauge_busy(gauge, user, &busy_ns))
            BH_CHECK(name, busy_ns <= sim_gauge_at(gauge));
        if (sim_gauge_share_of(gauge, user, 0, &share))
            BH_CHECK(name, share.percent <= 100 && share.last_ns <= sim_gauge_at(gauge));
    }
    sim_gauge_close(gauge);
}

/* ---- those of another job on the same GPU ---- */

static void
use_memory(void)
{
    struct sim_gpu gpu = { .minor = 0 };
    uint64_t bytes = (uint64_t)sim_model_at(gpu.model)->memory_mib << 20;
    struct sim_vram *vram = sim_vram_open(folder, &gpu, bytes);
    struct sim_extents pages = { 0 };
    uint32_t slot = 0;
    int fd;

    assert_non_null(vram);
    if (sim_ledger_join(vram) && sim_ledger_take(vram, 5, SIM_TAKE_CLEAR, &pages)) {
        (void)sim_vram_is_clear(vram, sim_extents_at(&pages, 0)->page);
        fd = sim_ledger_share(vram, &pages, 5 * SIM_PAGE_BYTES, 1, &slot);
        if (fd >= 0) {
            (void)sim_ledger_shared_slot(vram, fd);
            close(fd);
        }
        sim_ledger_release(vram, slot == 0 ? sim_ledger_own(vram) : slot, &pages);
    }
    for (uint32_t at = 0; at < SIM_SLOTS_MAX; at += 97) {
        BH_CHECK("held", sim_ledger_held(vram, at) <= bytes / SIM_PAGE_BYTES);
        if (sim_ledger_pages(vram, at, &pages))
            sim_ledger_release(vram, at, &pages);
        fd = sim_ledger_reopen(vram, at, 1);
        if (fd >= 0)
            close(fd);
    }
    BH_CHECK("all", sim_ledger_snapshot(vram, NULL) <= bytes / SIM_PAGE_BYTES);
    sim_vram_close(vram);
}

/* The record without its lock: what is pure of it, on a copy of one's own. */
static void
use_work(const struct sim_device *scribbled)
{
    struct sim_device *device = malloc(sizeof(*device));
    const struct sim_task work = { .cost_ns = 1000, .sms = SIM_TASK_ALL_SMS };
    uint64_t now = sim_queue_now();

    assert_non_null(device);
    memcpy(device, scribbled, sizeof(*device));
    for (uint32_t slot = 0; slot < SIM_TASK_SLOTS; slot += 5) {
        (void)sim_task_find_due(&device->slot[slot], 1);
        (void)sim_task_ended(&device->slot[slot], device->slot[slot].next - 1);
        (void)sim_task_earliest(device, slot, device->slot[slot].next - 1);
        (void)sim_task_submit(device, slot, &work);
        sim_task_finish(device, slot, device->slot[slot].first);
    }
    sim_task_catch(device, now);
    BH_CHECK("the clock", device->now_ns <= now);
    sim_task_advance(device, now);
    BH_CHECK_EQ("the clock", device->now_ns, now);
    if (sim_task_enter(device, 1) < SIM_TASK_SLOTS)
        sim_task_advance(device, now + 1);
    free(device);
}

static void
look_at_all(const char *name, const struct files *files)
{
    look_at_memory(name);
    look_at_work(name, files->device);
    use_memory();
    use_work(files->device);
}

static void
any_words_are_only_numbers(void **state)
{
    struct files files = open_files();
    uint64_t seed = SEED;

    for (unsigned round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
            scribble_files(&files, &words[i], &seed);
            look_at_all(words[i].name, &files);
        }
    close_files(&files);
    BH_CHECK_DONE();
}

/* What was looked at is another word by the time that it is used. */
static void
words_that_change_are_read_once(void **state)
{
    struct files files = open_files();
    pid_t pid = fork();
    int status;

    if (pid == 0)
        for (uint64_t seed = SEED;;)
            for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
                scribble_files(&files, &words[i], &seed);
    for (unsigned look = 0; look < LOOKS_WHILE; look++)
        look_at_all("while a job writes", &files);
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close_files(&files);
    BH_CHECK_DONE();
}

/* ---- what one leaves for the next ---- */

static const char secret[] = "SECRET-OF-ONE-TENANT";

/* A part of a file of the whole GPU's folder where no page's bytes lie. */
static const struct hiding {
    const char *name, *file;
    off_t at;
} hidings[] = {
    { "the record of work", SIM_TASK_FILE, sizeof(struct sim_device) / 2 },
    { "the beginning of it", SIM_TASK_FILE, 0 },
    { "its lock", SIM_TASK_FILE, 8 },
    { "behind it", SIM_TASK_FILE, sizeof(struct sim_device) + 100 },
    { "slots of the ledger", "0", 64 },
    { "behind the records of pages", "1", 1 << 20 },
    { "behind the bytes", "2", (off_t)1 << 36 },
};

static bool
has_secret(const struct hiding *hiding)
{
    char path[SIM_PATH_MAX], found[sizeof(secret)] = "";
    int fd = sim_path(path, "%s/%s", folder, hiding->file) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    assert_true(fd >= 0);
    (void)!pread(fd, found, sizeof(found), hiding->at);
    close(fd);
    return memcmp(found, secret, sizeof(secret)) == 0;
}

static void
hide_secret(const struct hiding *hiding)
{
    char path[SIM_PATH_MAX];
    int fd = sim_path(path, "%s/%s", folder, hiding->file) ? open(path, O_RDWR | O_CLOEXEC) : -1;

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, secret, sizeof(secret), hiding->at), sizeof(secret));
    close(fd);
    BH_CHECK(hiding->name, has_secret(hiding));
}

/* Nothing is made anew on a whole GPU: what a job wrote would be there for the next one. */
static void
a_free_gpu_begins_anew(void **state)
{
    struct sim_gpu gpu = { .minor = 0, .memory_faults = SIM_FAULT_LEAK };
    struct sim_device *device;
    struct stat st;
    char path[SIM_PATH_MAX];

    make_server();
    assert_true(sim_queue_set_slice(folder, 7));
    for (size_t i = 0; i < sizeof(hidings) / sizeof(hidings[0]); i++)
        hide_secret(&hidings[i]);
    assert_true(sim_vram_renew(dir, &gpu));
    for (size_t i = 0; i < sizeof(hidings) / sizeof(hidings[0]); i++)
        BH_CHECK(hidings[i].name, !has_secret(&hidings[i]));
    device = map_file(SIM_TASK_FILE, sizeof(*device));
    BH_CHECK_EQ("what the site's operator set", device->slice_ns, 7);
    munmap(device, sizeof(*device));
    assert_true(sim_path(path, "%s/" SIM_TASK_FILE, folder));
    assert_int_equal(stat(path, &st), 0);
    BH_CHECK_EQ("its length", st.st_size, sizeof(struct sim_device));
    assert_true(sim_vram_publish(dir, &gpu, NULL));
    device = map_file(SIM_TASK_FILE, sizeof(*device));
    BH_CHECK("the usual one again", device->slice_ns != 7);
    munmap(device, sizeof(*device));
    assert_true(sim_remove_tree(dir));
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_free_gpu_begins_anew),
    cmocka_unit_test(no_moment_is_later_than_now),
    cmocka_unit_test(any_words_are_only_numbers),
    cmocka_unit_test(words_that_change_are_read_once),
};
BH_TEST_MAIN(tests)
