/* Durable placements per second through bulkheadd on a fleet of simulated nodes.
 *
 *   fleet_bench BULKHEADD [NODES [JOBS [CLIENTS]]]      (1000 8000 64)
 *
 * Starts a real bulkheadd as an unprivileged user on a store of its own, with journal
 * and fsync, and NODES nodes of 8 whole GPUs that answer every order at once.  Prints one
 * JSON line for each of three ways to place JOBS one-GPU jobs:
 *   submit    from the first submission until the last START's outcome is committed
 *   again     the same once more: every partition is there already, nothing is carved
 *   place     all wait for a cordoned fleet; from the uncordoning until then
 * and how long the fleet needs to connect, and to come back after kill -9 of the daemon.
 * A job counts when the daemon acknowledges its START's outcome, which it does only after
 * the commit.  Needs root, to be another user.  Cleans up after itself. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <grp.h>
#include <libgen.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"
#include "base/num.h"
#include "bench/fleet_nodes.h"
#include "bench/http.h"

enum { DAEMON_UID = 64101, CLIENTS_MAX = 256, ROUNDS_MAX = 2, WAIT_S = 300 };

static struct {
    char dir[64], socket[96];
    uint32_t nodes, jobs, clients;
    const char *bulkheadd;
    pid_t daemon;
    struct fleet *fleet;
    char *submission;
    bh_ns *submitted_ns; /* by job number */
    uint64_t first_job;  /* of the round */
} bench;
static atomic_uint next_job, failed;

static int
unlink_entry(const char *path, const struct stat *unused, int type, struct FTW *walk)
{
    return remove(path);
}

static void
die(const char *what)
{
    char path[128], tail[4096];
    off_t size;
    ssize_t n;
    int fd;

    fprintf(stderr, "fleet_bench: %s; bulkheadd said:\n", what);
    snprintf(path, sizeof path, "%s/daemon.log", bench.dir);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    size = lseek(fd, 0, SEEK_END);
    n = pread(fd, tail, sizeof tail, size > (off_t)sizeof tail ? size - (off_t)sizeof tail : 0);
    fwrite(tail, 1, n > 0 ? (size_t)n : 0, stderr);
    if (bench.daemon > 0 && kill(bench.daemon, SIGKILL) == 0)
        waitpid(bench.daemon, NULL, 0);
    nftw(bench.dir, unlink_entry, 16, FTW_DEPTH | FTW_PHYS);
    exit(1);
}

/* ---- the daemon ---- */

static void
write_file(const char *name, const char *text)
{
    char path[128];
    struct bh_err err;

    snprintf(path, sizeof path, "%s/%s", bench.dir, name);
    if (bh_file_replace(path, text, strlen(text), 0644, &err) != BH_OK)
        die(err.msg);
}

static void
make_folder(const char *name, uid_t owner)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", bench.dir, name);
    BH_ASSERT(mkdir(path, 0755) == 0 && chown(path, owner, owner) == 0);
}

/* The daemon starts it by its path, so a copy stands where the daemon's user can see it. */
static void
copy_signer(void)
{
    char own[2048], path[4096], copy[128];
    struct bh_buf program;
    struct bh_err err;

    snprintf(own, sizeof own, "%s", bench.bulkheadd);
    snprintf(path, sizeof path, "%s/../signer/bulkhead-signer", dirname(own));
    snprintf(copy, sizeof copy, "%s/bulkhead-signer", bench.dir);
    bh_buf_init(&program, 64 << 20);
    if (bh_file_read(path, 64 << 20, &program, &err) != BH_OK
        || bh_file_replace(copy, program.bytes, program.length, 0755, &err) != BH_OK)
        die(err.msg);
    bh_buf_fini(&program);
}

static void
prepare(void)
{
    char text[1024];

    snprintf(bench.dir, sizeof bench.dir, "/tmp/bulkhead-fleet-XXXXXX");
    BH_ASSERT(mkdtemp(bench.dir) && chown(bench.dir, 0, DAEMON_UID) == 0 && chmod(bench.dir, 01775) == 0);
    snprintf(bench.socket, sizeof bench.socket, "%s/bulkhead.sock", bench.dir);
    make_folder("state", DAEMON_UID);
    make_folder("nodes", 0);
    snprintf(text, sizeof text,
             "site_name = bench.example/audit/fleet\nstate_dir = %s/state\nlog_dir = %s\n"
             "socket = %s\nnode_socket = %s/nodes\nhttps_port = 0\nsigner = %s/bulkhead-signer\n",
             bench.dir, bench.dir, bench.socket, bench.dir, bench.dir);
    write_file("bulkheadd.conf", text);
    copy_signer();
}

/* The program is opened first: the daemon's user need not see the build tree. */
static void
become_daemon(void)
{
    char config[128], log[128];
    int program = open(bench.bulkheadd, O_RDONLY | O_CLOEXEC), out;
    char *const args[] = { (char *)"bulkheadd", (char *)"--config", config, NULL };
    char *const env[] = { NULL };

    snprintf(config, sizeof config, "%s/bulkheadd.conf", bench.dir);
    snprintf(log, sizeof log, "%s/daemon.log", bench.dir);
    out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (program < 0 || out < 0 || dup2(out, 2) < 0 || dup2(out, 1) < 0 || setgroups(0, NULL) != 0
        || setgid(DAEMON_UID) != 0 || setuid(DAEMON_UID) != 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
        _exit(126);
    fexecve(program, args, env);
    _exit(127);
}

static int
connect_api(void)
{
    struct bh_err err;
    int fd;

    for (int tries = 0; tries < 3000; tries++) {
        if (bh_unix_connect(bench.socket, &fd, &err) == BH_OK)
            return fd;
        if (waitpid(bench.daemon, NULL, WNOHANG) == bench.daemon)
            die("bulkheadd ended");
        bh_time_sleep(10 * BH_NS_PER_MS);
    }
    die("bulkheadd does not serve");
    return -1;
}

static void
start_daemon(void)
{
    bench.daemon = fork();
    BH_ASSERT(bench.daemon >= 0);
    if (bench.daemon == 0)
        become_daemon();
    close(connect_api());
}

static void
stop_daemon(void)
{
    int status;

    kill(bench.daemon, SIGTERM);
    if (waitpid(bench.daemon, &status, 0) != bench.daemon || status != 0)
        die("bulkheadd did not end well");
    bench.daemon = 0;
}

/* ---- what clients send ---- */

static void
apply_site(bool cordoned)
{
    char body[1024], reply[512];
    BH_AUTO(bh_fd_close) int fd = connect_api();
    char *request;

    snprintf(body, sizeof body,
             "tenants:\n"
             "  - {name: acme, kind: organization}\n"
             "  - {name: acme/batch, kind: project}\n"
             "skus:\n"
             "  - {name: large, grade: B, models: [{model: H100-80GB, profile: whole}]}\n"
             "principals: []\n"
             "bindings: []\n"
             "gpus: [{uuid: all, managed: true, cordoned: %s}]\n",
             cordoned ? "true" : "false");
    request = bh_http_request("PUT", "/v1/site", "application/yaml", body);
    if (!bh_http_exchange(fd, request, strlen(request), reply, sizeof reply))
        die(reply);
    free(request);
}

static uint64_t
status_number(const char *reply, const char *key)
{
    const char *at = strstr(reply, key);

    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

struct counts {
    uint64_t commits, records;
    uint64_t ticks;   /* of the daemon's CPU time */
    bh_ns busiest_ns; /* CPU time of its busiest thread, the owner */
};

static uint64_t
read_number(const char *path, int skip)
{
    char text[1024], *at = text;
    BH_AUTO(bh_fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);

    text[n > 0 ? n : 0] = '\0';
    while (skip-- > 0 && (at = strchr(at, ' ')))
        at++;
    return at ? strtoull(at, NULL, 10) : 0;
}

/* The owner thread's number follows the main thread's and the store's; it is the one
 * with the most CPU time. */
static bh_ns
busiest_thread(void)
{
    bh_ns most = 0;

    for (pid_t tid = bench.daemon; tid < bench.daemon + 16; tid++) {
        char path[96];
        bh_ns span;

        snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", bench.daemon, tid);
        span = read_number(path, 0);
        most = span > most ? span : most;
    }
    return most;
}

static struct counts
count_now(void)
{
    BH_AUTO(bh_fd_close) int fd = connect_api();
    char *request = bh_http_request("GET", "/v1/status", "application/json", "");
    char reply[2048], path[64];
    struct counts counts;

    if (!bh_http_exchange(fd, request, strlen(request), reply, sizeof reply))
        die("no status");
    free(request);
    snprintf(path, sizeof path, "/proc/%d/stat", bench.daemon);
    counts = (struct counts){ .commits = status_number(reply, "\"commits\":"),
                              .records = status_number(reply, "\"records\":"),
                              .ticks = read_number(path, 13) + read_number(path, 14),
                              .busiest_ns = busiest_thread() };
    return counts;
}

static void *
run_client(void *unused)
{
    BH_AUTO(bh_fd_close) int fd = connect_api();
    size_t length = strlen(bench.submission);
    char reply[1024];

    while (atomic_fetch_add(&next_job, 1) < bench.jobs) {
        bh_ns begun = bh_time_monotonic();
        uint64_t id;

        if (!bh_http_exchange(fd, bench.submission, length, reply, sizeof reply)) {
            atomic_fetch_add(&failed, 1);
            return NULL;
        }
        id = status_number(reply, "\"id\":");
        if (id < bench.first_job + bench.jobs)
            bench.submitted_ns[id] = begun;
    }
    return NULL;
}

static void
submit_all(void)
{
    pthread_t threads[CLIENTS_MAX];

    atomic_store(&next_job, 0);
    for (uint32_t i = 0; i < bench.clients; i++)
        pthread_create(&threads[i], NULL, run_client, NULL);
    for (uint32_t i = 0; i < bench.clients; i++)
        pthread_join(threads[i], NULL);
    if (atomic_load(&failed))
        die("submissions failed");
}

/* ---- rounds ---- */

static void
await_running(uint32_t count)
{
    bh_ns deadline = bh_time_monotonic() + WAIT_S * BH_NS_PER_S;

    while (bh_fleet_running(bench.fleet) != count) {
        if (bh_time_monotonic() > deadline) {
            fprintf(stderr, "fleet_bench: %u of %u run\n", bh_fleet_running(bench.fleet), count);
            die("not all jobs came to run");
        }
        bh_time_sleep(BH_NS_PER_MS);
    }
}

static void
await_greeted(uint32_t count)
{
    bh_ns deadline = bh_time_monotonic() + WAIT_S * BH_NS_PER_S;

    while (bh_fleet_greeted(bench.fleet) < count) {
        if (bh_time_monotonic() > deadline)
            die("not all nodes were greeted");
        bh_time_sleep(BH_NS_PER_MS);
    }
}

static int
compare(const void *a, const void *b)
{
    const bh_ns *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Times from submission, or from `begun_ns` for jobs that waited, to START. */
static void
put_latency(bh_ns waited_until_ns)
{
    bh_ns *spans = calloc(bench.jobs, sizeof *spans);

    BH_ASSERT(spans);
    for (uint32_t i = 0; i < bench.jobs; i++) {
        bh_ns from = bench.submitted_ns[bench.first_job + i];

        if (from < waited_until_ns)
            from = waited_until_ns;
        spans[i] = bh_fleet_started_ns(bench.fleet, bench.first_job + i) - from;
    }
    qsort(spans, bench.jobs, sizeof *spans, compare);
    printf("\"p50_ms\":%.1f,\"p99_ms\":%.1f", (double)spans[bench.jobs / 2] / 1e6,
           (double)spans[(uint64_t)bench.jobs * 99 / 100] / 1e6);
    free(spans);
}

static void
report_phase(const char *phase, struct counts before, bh_ns begun_ns, bool waited)
{
    bh_ns span = bh_time_monotonic() - begun_ns;
    struct counts now = count_now();
    uint64_t commits = now.commits - before.commits, records = now.records - before.records;
    double load = 0, jobs = bench.jobs;

    BH_ASSERT(getloadavg(&load, 1) == 1);
    printf("{\"phase\":\"%s\",\"nodes\":%u,\"jobs\":%u,\"clients\":%u,\"per_s\":%.0f,"
           "\"seconds\":%.3f,\"commits\":%llu,\"records\":%llu,\"batch\":%.1f,",
           phase, bench.nodes, bench.jobs, bench.clients, jobs * (double)BH_NS_PER_S / (double)span,
           (double)span / 1e9, (unsigned long long)commits, (unsigned long long)records,
           commits ? (double)records / (double)commits : 0);
    put_latency(waited ? begun_ns : 0);
    printf(",\"owner_cpu_us\":%.1f,\"cpu_us\":%.1f,\"load\":%.1f}\n",
           (double)(now.busiest_ns - before.busiest_ns) / 1e3 / jobs,
           (double)(now.ticks - before.ticks) * 1e6 / (double)sysconf(_SC_CLK_TCK) / jobs, load);
    fflush(stdout);
}

static void
end_round(void)
{
    bh_fleet_end_all(bench.fleet);
    await_running(0);
    bench.first_job += bench.jobs; /* the next round's numbers follow */
}

static void
round_submit(const char *phase)
{
    struct counts before = count_now();
    bh_ns begun = bh_time_monotonic();

    submit_all();
    await_running(bench.jobs);
    report_phase(phase, before, begun, false);
    end_round();
}

/* kill -9 with everything running: until every node is back, with all its jobs. */
static void
restart(void)
{
    uint32_t greeted = bh_fleet_greeted(bench.fleet);
    bh_ns begun;

    kill(bench.daemon, SIGKILL);
    waitpid(bench.daemon, NULL, 0);
    begun = bh_time_monotonic();
    start_daemon();
    await_greeted(greeted + bench.nodes);
    count_now(); /* what the daemon sends after the last RETAIN is sent by then */
    await_running(bench.jobs);
    if (bh_fleet_unnamed(bench.fleet) > 0)
        die("a RETAIN did not name a running job");
    printf("{\"phase\":\"restart\",\"nodes\":%u,\"jobs\":%u,\"seconds\":%.3f}\n", bench.nodes, bench.jobs,
           (double)(bh_time_monotonic() - begun) / 1e9);
}

static void
round_place(void)
{
    struct counts before;
    bh_ns begun;

    apply_site(true);
    submit_all();
    before = count_now();
    begun = bh_time_monotonic();
    apply_site(false);
    await_running(bench.jobs);
    report_phase("place", before, begun, true);
    restart();
    end_round();
}

static bool
parse_arguments(int argc, char **argv)
{
    struct bh_err err;

    bench.nodes = 1000;
    bench.clients = 64;
    if (argc < 2 || argc > 5
        || (argc > 2 && bh_parse_u32(argv[2], 1, FLEET_NODES_MAX, &bench.nodes, &err) != BH_OK))
        return false;
    bench.jobs = FLEET_GPUS_MAX * bench.nodes;
    if (argc > 3 && bh_parse_u32(argv[3], 1, bench.jobs, &bench.jobs, &err) != BH_OK)
        return false;
    if (argc > 4 && bh_parse_u32(argv[4], 1, CLIENTS_MAX, &bench.clients, &err) != BH_OK)
        return false;
    bench.bulkheadd = argv[1];
    return true;
}

/* A new store, a new daemon, nodes without partitions. */
static void
start_site(void)
{
    char folder[96];
    bh_ns begun;

    prepare();
    start_daemon();
    apply_site(false);
    snprintf(folder, sizeof folder, "%s/nodes", bench.dir);
    begun = bh_time_monotonic();
    bench.first_job = 1;
    bench.submitted_ns = calloc(ROUNDS_MAX * (size_t)bench.jobs + 1, sizeof *bench.submitted_ns);
    BH_ASSERT(bench.submitted_ns);
    bench.fleet = bh_fleet_start(folder, bench.nodes, ROUNDS_MAX * bench.jobs + 1);
    await_greeted(bench.nodes);
    printf("{\"phase\":\"connect\",\"nodes\":%u,\"seconds\":%.3f}\n", bench.nodes,
           (double)(bh_time_monotonic() - begun) / 1e9);
}

static void
stop_site(void)
{
    stop_daemon();
    bh_fleet_stop(bench.fleet);
    nftw(bench.dir, unlink_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(bench.submitted_ns);
}

int
main(int argc, char **argv)
{
    struct rlimit files;

    if (!parse_arguments(argc, argv)) {
        fprintf(stderr, "usage: fleet_bench BULKHEADD [NODES [JOBS [CLIENTS]]]\n");
        return 2;
    }
    if (geteuid() != 0) {
        fprintf(stderr, "fleet_bench: needs root\n");
        return 77;
    }
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    signal(SIGPIPE, SIG_IGN);
    bench.submission = bh_http_request("POST", "/v1/jobs", "application/json",
                                       "{\"args\":[\"true\"],\"sku\":\"large\","
                                       "\"tenant\":\"acme/batch\"}");
    start_site();
    round_submit("submit");
    round_submit("again");
    stop_site();
    start_site();
    round_place();
    stop_site();
    free(bench.submission);
    return 0;
}
