#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts/accounts.h"
#include "api/api.h"
#include "base/assert.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/proc.h"
#include "base/time.h"
#include "daemon/batch/batch.h"
#include "daemon/certificate.h"
#include "daemon/changes/rotate.h"
#include "daemon/owner/crash.h"
#include "daemon/owner/defragger.h"
#include "daemon/owner/owner.h"
#include "daemon/owner/request_door.h"
#include "daemon/owner/start.h"
#include "daemon/owner/ticker.h"
#include "daemon/series/recording.h"
#include "daemon/streams/streams.h"
#include "fetch/fetch.h"
#include "http_server/server.h"
#include "ports/crypto.h"
#include "store/sqlite.h"
#include "web/web.h"

/* bulkheadd: parse, wire up, run. */

static const char version[] = BULKHEAD_VERSION;
static const char default_config[] = "/etc/bulkhead/bulkheadd.conf";

/* Where bulkhead-fetch may be, seen from bulkheadd's own folder: installed, or built. */
static const char *const program_folders[] = { ".", "../libexec/bulkhead", "../fetch" };

static const uint64_t accounts_tick_ns = 30 * BH_NS_PER_S;

static const uint64_t streams_tick_ns = 5 * BH_NS_PER_S;

enum { CONFIG_ARENA_MAX = 1 << 20, SOCKET_MODE = 0666 };

/* The engine's block grows by copies.  What it leaves goes back to the system: without a size that
 * is fixed the allocator would keep blocks as large as the first that was freed. */
enum { LARGE_BYTES = 1 << 20 };
#define SIGNER_PATIENCE (10 * BH_NS_PER_S)

static const char usage[] =
    "usage: bulkheadd [--config FILE] [--set KEY=VALUE]... [--allow-root]\n"
    "\n"
    "The Bulkhead control daemon: API, engine, journal and store.  Runs in the\n"
    "foreground as an unprivileged user; the identity of a client on the unix socket\n"
    "is its peer credentials.\n"
    "\n"
    "  -c, --config FILE   configuration (default /etc/bulkhead/bulkheadd.conf)\n"
    "  -s, --set KEY=VALUE set one parameter, over the file's\n"
    "      --rotate-root FILE\n"
    "                      wrap the key tree by the root key in FILE, and leave: for sites\n"
    "                      whose root key is a credential, which then is to be replaced\n"
    "      --allow-root    run as root nevertheless\n"
    "      --help-config   explain every parameter and leave\n"
    "  -h, --help          this text\n"
    "      --version       print the version\n";

struct daemon_program {
    struct bh_arena *arena;
    struct bh_daemon_config config;
    struct bh_core core;
    struct bh_signing_process *signing;
    struct bh_owner_thread *owner;
    struct bh_owner port;
    struct bh_ticker *defragger, *accounts_ticker, *streams_ticker;
    struct bh_accounts *accounts;
    struct bh_fetch *fetch;
    struct bh_streams *streams;
    struct bh_recording *recording;
    struct bh_api *api;
    struct bh_web *web;
    struct bh_request_door socket_door, https_door;
    struct bh_server *socket_server, *https_server;
    uint64_t records; /* when the owner thread took over */
};

static void
daemon_print_help_config(void)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = 1 << 16 };

    bh_params_help(&bh_daemon_params, &text);
    fputs(bh_buf_text(&text), stdout);
}

struct daemon_arguments {
    const char *config;
    const char *sets[32];
    int set_count;
    bool allow_root, config_given;
    const char *rotate_root;
};

/* The exit status, or -1 to continue. */
static int
daemon_parse_arguments(int argc, char **argv, struct daemon_arguments *args)
{
    /* clang-format off */
    static const struct option options[] = {
        { "config", required_argument, NULL, 'c' }, { "set", required_argument, NULL, 's' },
        { "rotate-root", required_argument, NULL, 'R' },
        { "allow-root", no_argument, NULL, 'r' },   { "help-config", no_argument, NULL, 'p' },
        { "help", no_argument, NULL, 'h' },         { "version", no_argument, NULL, 'v' },
        { 0 },
    };
    /* clang-format on */
    int option;

    args->config = default_config;
    while ((option = getopt_long(argc, argv, "c:s:h", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            args->config = optarg;
            args->config_given = true;
            break;
        case 's':
            if (args->set_count == (int)BH_COUNT(args->sets))
                return 2;
            args->sets[args->set_count++] = optarg;
            break;
        case 'R':
            args->rotate_root = optarg;
            break;
        case 'r':
            args->allow_root = true;
            break;
        case 'p':
            daemon_print_help_config();
            return 0;
        case 'h':
            fputs(usage, stdout);
            return 0;
        case 'v':
            printf("bulkheadd %s\n", version);
            return 0;
        default:
            return 2;
        }
    }
    return optind == argc ? -1 : 2;
}

static bh_rc
daemon_load_config(struct daemon_program *program, const struct daemon_arguments *args, struct bh_err *err)
{
    bh_rc rc = bh_daemon_config_load(args->config, args->config_given, &program->config, program->arena, err);

    for (int i = 0; i < args->set_count && rc == BH_OK; i++)
        rc = bh_params_set(&bh_daemon_params, args->sets[i], &program->config, program->arena, err);
    return rc;
}

/* What to do about a full disk, files of others, and a store that SQLite cannot open or read, by what it
 * says. */
static bh_rc
daemon_advise_on_store(const char *path, bh_rc rc, struct bh_err *err)
{
    if (rc == BH_FULL && err->sys_kind == BH_SYS_ERRNO && !*err->hint)
        return bh_err_hint(err, "make room on the disk of %.60s, then start again", path);
    if (rc == BH_DENIED && !*err->hint)
        return bh_err_hint(
            err, "bulkheadd's account must be able to read and write %s and what is in its folder", path);
    if (rc == BH_OK || err->sys_kind != BH_SYS_SQL || *err->hint)
        return rc;
    if (bh_store_sqlite_is_damage(err))
        bh_err_hint(err,
                    "%s is damaged: put back its newest copy; `bulkhead audit verify --store` "
                    "says of a copy whether it is whole",
                    path);
    else
        bh_err_hint(err,
                    "bulkheadd's account must be able to read and write %s and its folder, "
                    "on a disk with room and without errors",
                    path);
    return rc;
}

static bh_rc
daemon_open_core(struct daemon_program *program, struct bh_err *err)
{
    struct bh_core *core = &program->core;
    char path[4096];
    bh_rc rc = bh_dir_make(program->config.state_dir, 0700, err);

    if (rc != BH_OK)
        return rc;
    snprintf(path, sizeof path, "%s/bulkhead.db", program->config.state_dir);
    program->config.credentials = getenv("CREDENTIALS_DIRECTORY"); /* systemd's, and only a path */
    core->config = &program->config;
    core->crypto = &bh_crypto_openssl;
    core->hub = bh_hub_new();
    program->signing = bh_signing_process_new(&program->config);
    (void)!bh_signing_process_await(program->signing, SIGNER_PATIENCE); /* opening it reports a fault */
    core->journal.checkpoints.signing = bh_signing_process_port(program->signing);
    rc = bh_crash_open(core, version, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_store_sqlite_open(path, BH_STORE_WRITE, core->crypto, &core->store, err);
    if (rc == BH_OK)
        rc = bh_core_open(core, err);
    return daemon_advise_on_store(path, rc, err);
}

/* Started to do this only. */
static bh_rc
daemon_rotate_root(struct daemon_program *program, const char *path, struct bh_err *err)
{
    uint64_t count = 0;
    bh_rc rc = daemon_open_core(program, err);

    if (rc == BH_OK)
        rc = bh_rotate_to_file(&program->core, path, &count, err);
    if (rc == BH_OK)
        bh_log(ROOT_KEY_ROTATED, BH_U64("tenants", count));
    if (program->core.store.ops)
        program->core.store.ops->close(program->core.store.self);
    return rc;
}

static void
daemon_log_places(const struct bh_crowding *crowding)
{
    bh_log(PLACES_CROWDED, BH_STR("who", crowding->who), BH_U64("holds", crowding->held),
           BH_U64("taken_back", crowding->taken_back), BH_U64("refused", crowding->refused));
}

static void
daemon_log_streams(const struct bh_crowding *crowding)
{
    bh_log(STREAMS_CROWDED, BH_STR("who", crowding->who), BH_U64("holds", crowding->held),
           BH_U64("refused", crowding->refused));
}

static bh_rc
daemon_serve_socket(struct daemon_program *program, struct bh_err *err)
{
    struct bh_server_options options = { .handler = bh_request_door_handle,
                                         .self = &program->socket_door,
                                         .crowded = daemon_log_places,
                                         .connections_max = program->config.connections_max };
    bh_rc rc = bh_unix_listen(program->config.socket, SOCKET_MODE, &options.fd, err);

    program->socket_door = (struct bh_request_door){ &program->core, bh_api_handle, program->api };
    return rc == BH_OK ? bh_server_start(&options, &program->socket_server, err) : rc;
}

static bh_rc
daemon_serve_https(struct daemon_program *program, struct bh_err *err)
{
    struct bh_server_options options = { .handler = bh_request_door_handle,
                                         .self = &program->https_door,
                                         .crowded = daemon_log_places,
                                         .connections_max = program->config.connections_max };
    BH_AUTO(bh_certificate_free) struct bh_certificate *certificate = NULL;
    bh_rc rc;

    program->https_door = (struct bh_request_door){ &program->core, bh_web_handle, program->web };
    rc = bh_certificate_load_or_make(program->core.crypto, program->config.state_dir, &certificate, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_certificate_read_clients(certificate, program->config.client_ca, err);
    options.certificate = bh_certificate_pem(certificate);
    options.key = bh_certificate_key(certificate);
    options.client_ca = bh_certificate_clients(certificate);
    if (rc != BH_OK)
        return rc;
    rc = bh_tcp_listen(program->config.https_address, (uint16_t)program->config.https_port, &options.fd, err);
    if (rc != BH_OK)
        return rc;
    return bh_server_start(&options, &program->https_server, err);
}

/* The blocks of addresses in a parameter, as a list. */
static bool
daemon_split(struct bh_arena *arena, const char *text, struct bh_texts *ret_texts)
{
    char *copy = bh_arena_strdup(arena, text), *at, *rest = NULL;

    *ret_texts = (struct bh_texts){ bh_arena_alloc(arena, 32 * sizeof(const char *)), 0 };
    if (!copy || !ret_texts->items)
        return false;
    for (at = strtok_r(copy, " ", &rest); at && ret_texts->count < 32; at = strtok_r(NULL, " ", &rest))
        ret_texts->items[ret_texts->count++] = at;
    return true;
}

/* bulkhead-fetch stands with the other programs that are not for people. */
static const char *
daemon_fetch_program(struct daemon_program *program)
{
    const char *name = program->config.fetch_program;
    char own[4096];
    struct bh_err ignored;

    if (strchr(name, '/'))
        return name;
    if (bh_proc_own_folder(own, sizeof own, &ignored) != BH_OK)
        return name;
    for (size_t i = 0; i < BH_COUNT(program_folders); i++) {
        const char *path = bh_arena_printf(program->arena, "%s/%s/%s", own, program_folders[i], name);

        if (path && access(path, X_OK) == 0)
            return path;
    }
    return name;
}

static bh_rc
daemon_start_fetch(struct daemon_program *program, struct bh_err *err)
{
    const struct bh_daemon_config *config = &program->config;
    struct bh_fetch_options options = {
        .program = daemon_fetch_program(program),
        .ca = config->provider_ca[0] ? config->provider_ca : NULL,
        .proxy = config->provider_proxy[0] ? config->provider_proxy : NULL,
        .plain_loopback = true, /* the site file says for which issuer */
    };

    if (!daemon_split(program->arena, config->provider_networks, &options.allow))
        return bh_err_set(err, BH_FULL, "provider_networks is too long");
    return bh_fetch_start(&options, &program->fetch, err);
}

static bh_rc
daemon_open_accounts(struct daemon_program *program, struct bh_err *err)
{
    struct bh_accounts_options options = { .owner = program->port,
                                           .store = program->core.store,
                                           .crypto = &bh_crypto_openssl,
                                           .keys = program->core.ring.keys,
                                           .secrets_dir = program->config.secrets_dir,
                                           .state_dir = program->config.state_dir };
    struct bh_err none;

    /* Without the process there is no sign-in at an issuer; all else works. */
    if (daemon_start_fetch(program, &none) == BH_OK)
        options.https = bh_fetch_port(program->fetch);
    else
        bh_log(FETCH_MISSING, BH_ERRLOG(&none));
    return bh_accounts_open(&options, &program->accounts, err);
}

static void
daemon_maintain_accounts(void *self)
{
    bh_accounts_maintain(self);
}

static void
daemon_expire_streams(void *self)
{
    bh_streams_expire(self);
}

static bh_rc
daemon_start(struct daemon_program *program, struct bh_err *err)
{
    struct bh_api_options options = { .crypto = &bh_crypto_openssl,
                                      .version = version,
                                      .log_keys = bh_journal_read_keys,
                                      .log_folder = program->config.state_dir,
                                      .metrics_host_label = program->config.metrics_host_label,
                                      .job_uid_first = program->config.job_uid_first,
                                      .rates = { program->config.rate_reads, program->config.rate_changes,
                                                 program->config.rate_expensive },
                                      .streams_max = program->config.streams_max,
                                      .crowded = daemon_log_streams };
    bh_rc rc = daemon_open_core(program, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_start_record(&program->core, err);
    if (rc != BH_OK)
        return rc;
    program->records = program->core.journal.next_seq;
    rc = bh_owner_start(&program->core, &program->owner, err);
    if (rc != BH_OK)
        return rc;
    program->port = options.owner = bh_owner_port(program->owner);
    options.store = program->core.store;
    options.keys = program->core.ring.keys;
    rc = daemon_open_accounts(program, err);
    if (rc != BH_OK)
        return rc;
    options.accounts = bh_accounts_port(program->accounts);
    program->streams = bh_streams_new(program->port, &bh_crypto_openssl);
    options.streams = bh_streams_port(program->streams);
    program->recording = bh_recording_start(&program->core, &program->port);
    options.series = bh_recording_store(program->recording);
    program->api = bh_api_new(&options);
    program->web =
        bh_web_new(&(struct bh_web_options){ .api = bh_api_handle,
                                             .api_self = program->api,
                                             .crypto = &bh_crypto_openssl,
                                             .site = "Bulkhead",
                                             .owner = program->config.https_port ? &program->port : NULL });
    rc = bh_ticker_start(program->config.defrag_interval, bh_defragger_run, &program->port,
                         &program->defragger, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_ticker_start(accounts_tick_ns, daemon_maintain_accounts, program->accounts,
                         &program->accounts_ticker, err);
    if (rc != BH_OK)
        return rc;
    rc = bh_ticker_start(streams_tick_ns, daemon_expire_streams, program->streams, &program->streams_ticker,
                         err);
    if (rc == BH_OK && program->config.https_port != 0 && daemon_serve_https(program, err) != BH_OK)
        rc = bh_err_wrap(err, "https");
    if (rc != BH_OK)
        return rc;
    return daemon_serve_socket(program, err); /* the last: a client that reaches it finds the rest there */
}

/* Wait for SIGTERM or SIGINT; the owner sends one when it cannot continue. */
static void
daemon_wait_for_end(int signal_fd)
{
    struct signalfd_siginfo info;

    while (read(signal_fd, &info, sizeof info) < 0 && errno == EINTR)
        ;
}

static int
daemon_block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signalfd(-1, &set, SFD_CLOEXEC);
}

/* A connection each to thousands of nodes and clients: as many files as may be open. */
static void
daemon_raise_files_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        return; /* what there is serves a server */
}

/* Keys and texts of people would stand in a core file.  A limit of 0 does not keep the kernel
 * from handing a dump to a program (core(5), "Piping core dumps"); a process that is not
 * dumpable has none at all, and its own user may not look into its memory. */
static bh_rc
daemon_forbid_core_dumps(struct bh_err *err)
{
    const struct rlimit none = { 0, 0 };

    if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
        return bh_err_errno(err, "forbid core dumps");
    return BH_OK;
}

static void
daemon_stop(struct daemon_program *program)
{
    bh_log(STOPPING);
    bh_ticker_stop(program->streams_ticker);
    bh_streams_stop(program->streams); /* while their ends can be recorded */
    bh_recording_stop(program->recording);
    bh_owner_halt(program->owner);
    bh_web_stop(program->web);
    bh_server_stop(program->https_server);
    bh_server_stop(program->socket_server);
    bh_ticker_stop(program->defragger);
    bh_ticker_stop(program->accounts_ticker);
    bh_accounts_maintain(program->accounts);
    bh_web_free(program->web); /* its thread asks the owner, */
    bh_api_free(program->api); /* and so does this one's */
    bh_owner_stop(program->owner);
    bh_recording_free(program->recording);
    bh_streams_free(program->streams);
    bh_accounts_close(program->accounts);
    bh_fetch_stop(program->fetch);
    program->core.store.ops->close(program->core.store.self);
    bh_core_close(&program->core);
    bh_signing_process_free(program->signing);
    bh_hub_free(program->core.hub);
    unlink(program->config.socket);
}

static int
daemon_fail(const struct bh_err *err)
{
    bh_log(FAILED, BH_ERRLOG(err), BH_STR("next", err->hint));
    return bh_rc_exit(err->rc);
}

int
main(int argc, char **argv)
{
    struct daemon_arguments args = { 0 };
    static struct daemon_program whole; /* what a refused start leaves goes with the process */
    struct daemon_program *program = &whole;
    struct bh_err err;
    int status = daemon_parse_arguments(argc, argv, &args), signal_fd;
    bool failed;

    if (status >= 0) {
        if (status == 2)
            fputs(usage, stderr);
        return status;
    }
    umask(0077);
    mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    program->arena = bh_arena_new(CONFIG_ARENA_MAX);
    bh_log_setup("bulkheadd", false, BH_LOG_INFO);
    if (daemon_load_config(program, &args, &err) != BH_OK)
        return daemon_fail(&err);
    bh_log_setup("bulkheadd", program->config.log_json, BH_LOG_INFO);
    if (geteuid() == 0 && !args.allow_root) {
        bh_err_set(&err, BH_DENIED, "bulkheadd does not run as root");
        bh_err_hint(&err, "start it as a user of its own, as `bulkhead up` does");
        return daemon_fail(&err);
    }
    if (daemon_forbid_core_dumps(&err) != BH_OK)
        return daemon_fail(&err);
    if (args.rotate_root)
        return daemon_rotate_root(program, args.rotate_root, &err) == BH_OK ? 0 : daemon_fail(&err);
    signal_fd = daemon_block_signals();
    daemon_raise_files_limit();
    if (daemon_start(program, &err) != BH_OK)
        return daemon_fail(&err);
    bh_log(READY, BH_STR("socket", program->config.socket), BH_U64("records", program->records));
    daemon_wait_for_end(signal_fd);
    failed = bh_owner_failed(program->owner, &err);
    daemon_stop(program);
    bh_arena_free(program->arena);
    return failed ? daemon_fail(&err) : 0; /* its reason is the last line */
}
