#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/num.h"
#include "base/time.h"
#include "ports/crypto.h"
#include "signer/filter.h"
#include "signer/signer.h"

/* bulkhead-signer: holds the audit log's key and signs what bulkheadd has made durable. */

static const char usage[] =
    "usage: bulkhead-signer --dir DIR                        answer on descriptor 3\n"
    "       bulkhead-signer --dir DIR --socket PATH --peer USER\n"
    "       bulkhead-signer --dir DIR --rotate|--retire\n"
    "\n"
    "Holds the audit log's signing key (DIR/audit.key, made when it is missing), its name\n"
    "(DIR/audit.public: no other key is taken in its place) and the largest tree that was\n"
    "signed (DIR/audit.signed).  bulkheadd starts the first form by itself; the second runs\n"
    "as a user of its own and answers processes of USER (name or id).\n"
    "--rotate makes another key, and the present one signs beside it until --retire; for\n"
    "either the signer must be stopped, and started again.\n";

/* Its folder admits only the signer and the daemon's group: it may not give the socket away. */
enum { CHANNEL = 3, SOCKET_MODE = 0666 };

#define UNKNOWN_PEERS_PAUSE_NS (60 * BH_NS_PER_S)

struct signer_arguments {
    const char *folder, *socket;
    uint32_t peer_uid;
    bool has_peer, rotate, retire;
};

/* A user's id, by number or by name. */
static bool
signer_find_user(const char *text, struct signer_arguments *ret)
{
    const struct passwd *entry;
    struct bh_err err;
    uint64_t uid;

    ret->has_peer = true;
    if (bh_parse_u64(text, &uid, &err) == BH_OK) {
        ret->peer_uid = (uint32_t)uid;
        return uid <= UINT32_MAX;
    }
    entry = getpwnam(text);
    ret->peer_uid = entry ? entry->pw_uid : UINT32_MAX;
    return entry != NULL;
}

/* The exit status, or -1 to continue. */
static int
signer_parse(int argc, char **argv, struct signer_arguments *ret)
{
    /* clang-format off */
    static const struct option options[] = {
        { "dir", required_argument, NULL, 'd' },  { "socket", required_argument, NULL, 's' },
        { "peer", required_argument, NULL, 'u' }, { "help", no_argument, NULL, 'h' },
        { "rotate", no_argument, NULL, 'o' }, { "retire", no_argument, NULL, 'e' },
        { "version", no_argument, NULL, 'v' },    { 0 },
    };
    /* clang-format on */
    int option;

    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h' || option == 'v') {
            puts(option == 'h' ? usage : "bulkhead-signer " BULKHEAD_VERSION);
            return 0;
        }
        if (option == 'd')
            ret->folder = optarg;
        else if (option == 's')
            ret->socket = optarg;
        else if (option == 'o')
            ret->rotate = true;
        else if (option == 'e')
            ret->retire = true;
        else if (option != 'u' || !signer_find_user(optarg, ret))
            return 2;
    }
    if (ret->rotate + ret->retire + (ret->socket != NULL) > 1)
        return 2;
    return optind == argc && ret->folder && !ret->socket == !ret->has_peer ? -1 : 2;
}

/* ---- answering ---- */

/* A whole question; false when the other end is gone. */
static bool
signer_receive(int fd, struct bh_signer_request *ret_question)
{
    char *bytes = (char *)ret_question;
    size_t held = 0;

    while (held < sizeof *ret_question) {
        ssize_t got = read(fd, bytes + held, sizeof *ret_question - held);

        if (got == 0 || (got < 0 && errno != EINTR))
            return false;
        held += got > 0 ? (size_t)got : 0;
    }
    return true;
}

static void
signer_serve(struct bh_signer *signer, int fd)
{
    static struct bh_signer_request question;
    static struct bh_signer_reply answer;
    struct bh_err err;

    while (signer_receive(fd, &question)) {
        bh_signer_reply(signer, &question, &answer);
        if (bh_fd_write_all(fd, &answer, sizeof answer, &err) != BH_OK)
            return;
    }
}

/* A line for the first, and at most one a minute for those after it. */
static void
signer_log_unknown_peer(uint32_t uid)
{
    static bh_ns logged_at;
    static uint64_t unlogged;
    bh_ns now = bh_time_monotonic();

    if (logged_at && now - logged_at < UNKNOWN_PEERS_PAUSE_NS) {
        unlogged++;
        return;
    }
    bh_log(SIGNER_STRANGER, BH_U64("uid", uid), BH_U64("untold", unlogged));
    logged_at = now;
    unlogged = 0;
}

/* One connection after the other: there is one daemon. */
static bh_rc
signer_serve_socket(struct bh_signer *signer, int listener, uint32_t peer_uid, struct bh_err *err)
{
    for (;;) {
        BH_AUTO(bh_fd_close) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct bh_peer peer;

        if (fd < 0 && errno != EINTR && errno != ECONNABORTED)
            return bh_err_errno(err, "accept");
        if (fd < 0 || bh_unix_peer(fd, &peer, err) != BH_OK)
            continue;
        if (peer.uid == peer_uid)
            signer_serve(signer, fd);
        else
            signer_log_unknown_peer(peer.uid);
    }
}

/* One signer for one key: the one of a daemon that died ends when it has answered, and is
 * waited for.  Held until the end. */
static bh_rc
signer_lock(const char *folder, bool wait, struct bh_err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    while (fd >= 0 && flock(fd, wait ? LOCK_EX : LOCK_EX | LOCK_NB) != 0)
        if (errno == EWOULDBLOCK)
            return bh_err_set(err, BH_CONFLICT, "a signer has %s open: stop it first", folder);
        else if (errno != EINTR)
            return bh_err_errno(err, "lock %s", folder);
    return fd >= 0 ? BH_OK : bh_err_errno(err, "%s", folder);
}

/* What signing needs of libcrypto is loaded before the filter forbids to. */
static bh_rc
signer_warm_up(const struct bh_signer *signer, struct bh_err *err)
{
    uint8_t signature[64];

    return signer->crypto->sign(signer->private_key, "", 0, signature, err);
}

static bh_rc
signer_prepare(const struct signer_arguments *args, struct bh_signer *signer, int *ret_listener,
               struct bh_err *err)
{
    bh_rc rc = bh_signer_drop(err);

    if (rc != BH_OK)
        return rc;
    rc = signer_lock(args->folder, !args->rotate && !args->retire, err);
    if (rc != BH_OK)
        return rc;
    rc = (args->retire ? bh_signer_open_to_retire : bh_signer_open)(signer, &bh_crypto_openssl, args->folder,
                                                                    err);
    if (rc != BH_OK)
        return rc;
    rc = signer_warm_up(signer, err);
    if (rc != BH_OK)
        return rc;
    if (args->socket)
        rc = bh_unix_listen(args->socket, SOCKET_MODE, ret_listener, err);
    if (rc != BH_OK)
        return rc;
    return bh_signer_filter(err);
}

/* To the daemon that started it, as the answer to its first question. */
static void
signer_complain(const struct bh_err *err)
{
    static struct bh_signer_request question;
    static struct bh_signer_reply answer;
    struct bh_err unlogged_count;

    if (!signer_receive(CHANNEL, &question))
        return;
    answer =
        (struct bh_signer_reply){ .version = BH_SIGNER_VERSION, .rc = err->rc, .number = question.number };
    snprintf(answer.why, sizeof answer.why, "%s", err->msg);
    snprintf(answer.hint, sizeof answer.hint, "%s", err->hint);
    if (bh_fd_write_all(CHANNEL, &answer, sizeof answer, &unlogged_count) != BH_OK)
        return; /* it is gone, too */
}

int
main(int argc, char **argv)
{
    struct signer_arguments args = { 0 };
    struct bh_signer signer = { 0 };
    struct bh_err err = { 0 };
    int status = signer_parse(argc, argv, &args), listener = -1;
    bh_rc rc;

    if (status >= 0) {
        if (status == 2)
            fputs(usage, stderr);
        return status;
    }
    umask(0077);
    signal(SIGPIPE, SIG_IGN);
    bh_log_setup("bulkhead-signer", false, BH_LOG_INFO);
    rc = signer_prepare(&args, &signer, &listener, &err);
    if (rc == BH_OK && signer.made)
        bh_log(KEY_MADE, BH_STR("folder", signer.folder));
    if (rc == BH_OK && args.rotate)
        rc = bh_signer_rotate(&signer, &err);
    else if (rc == BH_OK && args.retire)
        rc = bh_signer_retire(&signer, &err);
    else if (rc == BH_OK && args.socket)
        rc = signer_serve_socket(&signer, listener, args.peer_uid, &err);
    else if (rc == BH_OK)
        signer_serve(&signer, CHANNEL);
    if (rc != BH_OK)
        bh_log(FAILED, BH_ERRLOG(&err), BH_STR("next", err.hint));
    if (rc != BH_OK && !args.socket && !args.rotate && !args.retire)
        signer_complain(&err);
    bh_signer_close(&signer);
    /* What would be torn down at exit may want calls that the filter forbids. */
    fflush(NULL);
    _exit(bh_rc_exit(rc));
}
