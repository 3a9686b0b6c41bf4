/* Servers over TLS, as the openssl program sees them. */
#include "http_server/server.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/test.h"
#include "http_server/ticks_test.h"
#include "ports/crypto.h"

enum { MANY = 5000 /* ticks */, HALVES = 40 };

static const char *const tls_ciphers[] = {
    "-tls1_3 -ciphersuites TLS_AES_128_GCM_SHA256",
    "-tls1_3 -ciphersuites TLS_AES_256_GCM_SHA384",
    "-tls1_3 -ciphersuites TLS_CHACHA20_POLY1305_SHA256",
};

static char folder[] = "/tmp/bh-server-test-XXXXXX";

static void
server_tls_test_handle(void *self, const struct bh_request *request, struct bh_reply *reply)
{
    reply->status = 200;
    if (strcmp(request->path, "/many") == 0) {
        bh_ticks_start(reply, MANY);
        return;
    }
    bh_buf_printf(&reply->body, "%s %s uid=%u from=%s certificate=", bh_method_names[request->method],
                  request->path, request->transport->uid, request->transport->address);
    bh_buf_put_hex(&reply->body, request->transport->certificate, 32);
}

static unsigned
count_in(const char *text, const char *what)
{
    unsigned count = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        count++;
    return count;
}

/* What `openssl s_client` prints for a request sent with these options. */
static const char *
ask_openssl(uint16_t port, const char *path, const char *with)
{
    static char text[65536];
    char command[300];
    FILE *pipe_end;
    size_t got;
    int ends[2], status;
    pid_t child;

    snprintf(command, sizeof command,
             "printf 'GET %s HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n' | "
             "timeout 5 openssl s_client -connect 127.0.0.1:%u %s -ign_eof 2>&1",
             path, port, with);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    pipe_end = fdopen(ends[0], "r");
    assert_non_null(pipe_end);
    got = fread(text, 1, sizeof text - 1, pipe_end);
    text[got] = '\0';
    fclose(pipe_end);
    waitpid(child, &status, 0);
    return text;
}

static struct bh_server *
serve_with_authority(const char *authority, uint16_t *ret_port)
{
    struct bh_server_options options = { .handler = server_tls_test_handle,
                                         .fd = -1,
                                         .client_ca = authority };
    static char certificate[4096], key[4096];
    struct bh_server *tls = NULL;
    struct bh_err err;

    assert_int_equal(bh_crypto_openssl.make_certificate("localhost", certificate, sizeof certificate, key,
                                                        sizeof key, &err),
                     BH_OK);
    options.certificate = certificate;
    options.key = key;
    assert_int_equal(bh_tcp_listen("127.0.0.1", 0, &options.fd, &err), BH_OK);
    *ret_port = bh_tcp_port(options.fd);
    return bh_server_start(&options, &tls, &err) == BH_OK ? tls : NULL;
}

static void
tls_is_1_3_only(void **state)
{
    BH_AUTO(bh_server_stop) struct bh_server *tls = NULL;
    const char *text;
    uint16_t port;

    tls = serve_with_authority(NULL, &port);
    assert_non_null(tls);
    text = ask_openssl(port, "/tls", "-tls1_3");
    BH_CHECK("1.3", strstr(text, "GET /tls") && strstr(text, "from=127.0.0.1"));
    BH_CHECK("no uid from afar", strstr(text, "uid=4294967295"));
    text = ask_openssl(port, "/tls", "-tls1_2");
    BH_CHECK("1.2 refused", !strstr(text, "GET /tls") && strstr(text, "Cipher is (NONE)"));
    BH_CHECK_DONE();
}

static void
a_stream_over_tls_arrives_whole(void **state)
{
    BH_AUTO(bh_server_stop) struct bh_server *tls = NULL;
    const char *text;
    uint16_t port;

    tls = serve_with_authority(NULL, &port);
    assert_non_null(tls);
    for (size_t i = 0; i < BH_COUNT(tls_ciphers); i++) {
        text = ask_openssl(port, "/many", tls_ciphers[i]);
        BH_CHECK_EQ(tls_ciphers[i], count_in(text, "tick\n"), MANY);
        BH_CHECK("its end", strstr(text, "\r\n0\r\n\r\n"));
        BH_CHECK("the connection's", strstr(text, "\nclosed\n"));
    }
    BH_CHECK("closed", bh_ticks_all_closed());
    BH_CHECK_DONE();
}

/* Of hands that are shaken slowly each waits for itself. */
static void
half_shaken_hands_hold_nobody_up(void **state)
{
    static const char hello[] = "\x16\x03\x01\x02\x00\x01\x00";
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
    BH_AUTO(bh_server_stop) struct bh_server *tls = NULL;
    int halves[HALVES];
    uint16_t port;

    tls = serve_with_authority(NULL, &port);
    assert_non_null(tls);
    at.sin_port = htons(port);
    for (int i = 0; i < HALVES; i++) {
        halves[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(halves[i], (struct sockaddr *)&at, sizeof at), 0);
        (void)!send(halves[i], hello, (size_t)i % sizeof hello, MSG_NOSIGNAL);
    }
    BH_CHECK("a request", strstr(ask_openssl(port, "/tls", "-tls1_3"), "GET /tls"));
    BH_CHECK_EQ("a stream", count_in(ask_openssl(port, "/many", "-tls1_3"), "tick\n"), MANY);
    for (int i = 0; i < HALVES; i++)
        bh_fd_close(halves[i]);
    BH_CHECK_DONE();
}

/* ---- clients' certificates ---- */

/* A shell's script, run in the test's folder. */
static bool
shell(const char *script)
{
    pid_t child = fork();
    int status = -1;

    if (child == 0) {
        if (chdir(folder) == 0)
            execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Two authorities, and certificates of theirs: NAME.crt and NAME.key in the folder. */
static bool
make_certificates(void)
{
    static const char *const made[] = {
        "authority good clientAuth '-days 2'",     "authority second clientAuth '-days 2'",
        "stranger other clientAuth '-days 2'",     "authority server serverAuth '-days 2'",
        "authority expired clientAuth '-days -1'",
    };
    static const char setup[] =
        "for a in authority stranger; do openssl req -x509 -newkey ec -pkeyopt "
        "ec_paramgen_curve:P-256 -nodes -subj /CN=$a -keyout $a.key -out $a.crt -days 2 || exit 1; "
        "done 2>/dev/null; cat >sign <<'END'\n"
        "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$2 -keyout "
        "$2.key -out $2.csr 2>/dev/null && echo extendedKeyUsage=$3 >$2.ext && "
        "openssl x509 -req -in $2.csr -CA $1.crt -CAkey $1.key -set_serial 7 -extfile $2.ext "
        "-out $2.crt $4 2>/dev/null\nEND\n";
    char command[300];
    bool good = shell(setup);

    for (size_t i = 0; i < BH_COUNT(made) && good; i++) {
        snprintf(command, sizeof command, "sh ./sign %s", made[i]);
        good = shell(command);
    }
    return good;
}

/* The thumbprint of a certificate as the openssl program counts it. */
static const char *
thumbprint(const char *name)
{
    static char text[65];
    char path[200];
    FILE *file;

    snprintf(path, sizeof path, "openssl x509 -in %s.crt -outform DER | sha256sum >print", name);
    assert_true(shell(path));
    snprintf(path, sizeof path, "%s/print", folder);
    file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, 64, file), 64);
    fclose(file);
    return text;
}

static const char *
ask_as(uint16_t port, const char *name)
{
    char options[300];

    snprintf(options, sizeof options, "-tls1_3 -cert %s/%s.crt -key %s/%s.key", folder, name, folder, name);
    return ask_openssl(port, "/tls", options);
}

#define NO_PRINT "certificate=0000000000000000000000000000000000000000000000000000000000000000"

static void
client_certificates_are_verified(void **state)
{
    static const char *const bad[] = { "other", "expired", "server", "stranger" };
    BH_AUTO(bh_server_stop) struct bh_server *tls = NULL;
    static char authority[8192];
    char path[100];
    struct bh_buf pem;
    struct bh_err err;
    uint16_t port;

    assert_true(make_certificates());
    snprintf(path, sizeof path, "%s/authority.crt", folder);
    bh_buf_init_fixed(&pem, authority, sizeof authority);
    assert_int_equal(bh_file_read(path, sizeof authority - 1, &pem, &err), BH_OK);
    bh_buf_text(&pem);
    BH_CHECK("no authority", !serve_with_authority("nonsense", &port));
    tls = serve_with_authority(authority, &port);
    assert_non_null(tls);
    BH_CHECK("good", strstr(ask_as(port, "good"), thumbprint("good")));
    BH_CHECK("another good one", strstr(ask_as(port, "second"), thumbprint("second")));
    BH_CHECK("none", strstr(ask_openssl(port, "/tls", "-tls1_3"), NO_PRINT));
    for (size_t i = 0; i < BH_COUNT(bad); i++) {
        const char *text = ask_as(port, bad[i]);

        BH_CHECK(bad[i],
                 strstr(text, " 403 ") && strstr(text, "\"code\":\"denied\"") && !strstr(text, "GET /tls"));
    }
    bh_server_stop(tls);
    tls = serve_with_authority(NULL, &port);
    BH_CHECK("not asked", strstr(ask_as(port, "other"), NO_PRINT));
    BH_CHECK_DONE();
}

static int
make_folder(void **state)
{
    if (access("/usr/bin/openssl", X_OK) != 0) {
        printf("1..0 # SKIP there is no openssl program\n");
        exit(0);
    }
    signal(SIGPIPE, SIG_IGN);
    return mkdtemp(folder) && chmod(folder, 0755) == 0 ? 0 : -1;
}

static int
remove_folder(void **state)
{
    return shell("rm -r \"$PWD\"") ? 0 : -1;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tls_is_1_3_only),
        cmocka_unit_test(a_stream_over_tls_arrives_whole),
        cmocka_unit_test(half_shaken_hands_hold_nobody_up),
        cmocka_unit_test(client_certificates_are_verified),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
