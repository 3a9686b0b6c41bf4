/* What a session's seal puts, its client opens: for each cipher and size, and nothing but the seal sends. */
#include "http_server/seal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gnutls/x509.h>

#include "base/fd.h"
#include "base/test.h"
#include "base/time.h"

enum { TEXT_MAX = 3 * BH_SEAL_TEXT_MAX + 1, RECORDS_BYTES = TEXT_MAX + 64 * BH_SEAL_OVERHEAD };

/* Both ends of a connection, in this thread. */
struct pair {
    int fds[2];
    gnutls_session_t server, client;
    gnutls_certificate_credentials_t shown, trusted;
};

static char text[TEXT_MAX], opened[TEXT_MAX], sealed[RECORDS_BYTES];
static gnutls_x509_crt_t certificate;
static gnutls_x509_privkey_t key;

static int
make_certificate(void **state)
{
    time_t now = (time_t)(bh_time_now() / BH_NS_PER_S);

    return gnutls_x509_privkey_init(&key)
           || gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, 256, 0)
           || gnutls_x509_crt_init(&certificate) || gnutls_x509_crt_set_version(certificate, 3)
           || gnutls_x509_crt_set_serial(certificate, "1", 1) || gnutls_x509_crt_set_key(certificate, key)
           || gnutls_x509_crt_set_activation_time(certificate, now)
           || gnutls_x509_crt_set_expiration_time(certificate, now + 3600)
           || gnutls_x509_crt_sign2(certificate, certificate, key, GNUTLS_DIG_SHA512, 0);
}

static int
forget_certificate(void **state)
{
    gnutls_x509_crt_deinit(certificate);
    gnutls_x509_privkey_deinit(key);
    return 0;
}

static gnutls_session_t
seal_test_session(unsigned end, const char *cipher, int fd, gnutls_certificate_credentials_t *ret_credentials)
{
    gnutls_session_t session;
    char priorities[160];

    snprintf(priorities, sizeof priorities, "NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+%s", cipher);
    assert_int_equal(gnutls_init(&session, end | GNUTLS_NONBLOCK), 0);
    assert_int_equal(gnutls_priority_set_direct(session, priorities, NULL), 0);
    assert_int_equal(gnutls_certificate_allocate_credentials(ret_credentials), 0);
    if (end == GNUTLS_SERVER)
        assert_int_equal(gnutls_certificate_set_x509_key(*ret_credentials, &certificate, 1, key), 0);
    assert_int_equal(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, *ret_credentials), 0);
    gnutls_transport_set_int(session, fd);
    return session;
}

static void
seal_test_shake_hands(struct pair *pair)
{
    int server = GNUTLS_E_AGAIN, client = GNUTLS_E_AGAIN;

    while (server != 0 || client != 0) {
        client = client == 0 ? 0 : gnutls_handshake(pair->client);
        server = server == 0 ? 0 : gnutls_handshake(pair->server);
        assert_false(client != 0 && gnutls_error_is_fatal(client));
        assert_false(server != 0 && gnutls_error_is_fatal(server));
    }
}

static struct pair
seal_test_open(const char *cipher)
{
    struct pair pair;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair.fds), 0);
    pair.server = seal_test_session(GNUTLS_SERVER, cipher, pair.fds[0], &pair.shown);
    pair.client = seal_test_session(GNUTLS_CLIENT, cipher, pair.fds[1], &pair.trusted);
    return pair;
}

static struct pair
seal_test_connect(const char *cipher)
{
    struct pair pair = seal_test_open(cipher);

    seal_test_shake_hands(&pair);
    return pair;
}

static void
seal_test_disconnect(struct pair *pair)
{
    gnutls_deinit(pair->server);
    gnutls_deinit(pair->client);
    gnutls_certificate_free_credentials(pair->shown);
    gnutls_certificate_free_credentials(pair->trusted);
    bh_fd_close(pair->fds[0]);
    bh_fd_close(pair->fds[1]);
}

/* Sends what was sealed and opens it on the way, as much as the client gets. */
static size_t
seal_test_carry(const struct pair *pair, const struct bh_buf *records)
{
    size_t sent = 0, got = 0;

    for (;;) {
        ssize_t more = sent < records->length
                           ? send(pair->fds[0], records->bytes + sent, records->length - sent, MSG_NOSIGNAL)
                           : 0;

        sent += more > 0 ? (size_t)more : 0;
        more = gnutls_record_recv(pair->client, opened + got, sizeof opened - got);
        if (more <= 0 && sent == records->length && more != GNUTLS_E_INTERRUPTED)
            return got;
        got += more > 0 ? (size_t)more : 0;
    }
}

static bool
seal_test_opens(const struct pair *pair, struct bh_seal *seal, size_t length)
{
    struct bh_buf records;

    bh_buf_init_fixed(&records, sealed, sizeof sealed);
    return bh_seal_put(seal, text, length, &records) && seal_test_carry(pair, &records) == length
           && memcmp(text, opened, length) == 0;
}

static void
every_size_is_opened_with_every_cipher(void **state)
{
    static const char *const ciphers[] = { "AES-128-GCM", "AES-256-GCM", "CHACHA20-POLY1305", "AES-128-CCM" };
    static const size_t sizes[] = {
        1, 2, 3, 1000, BH_SEAL_TEXT_MAX - 1, BH_SEAL_TEXT_MAX, BH_SEAL_TEXT_MAX + 1, TEXT_MAX, 1
    };

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 7 + i / 256);
    for (size_t i = 0; i < BH_COUNT(ciphers); i++) {
        struct pair pair = seal_test_connect(ciphers[i]);
        struct bh_seal *seal;
        struct bh_buf end;

        assert_int_equal(gnutls_record_send(pair.server, "head", 4), 4); /* as the library sent before */
        assert_int_equal(gnutls_record_recv(pair.client, opened, sizeof opened), 4);
        seal = bh_seal_take(pair.server);
        assert_non_null(seal);
        for (size_t k = 0; k < BH_COUNT(sizes); k++)
            BH_CHECK(ciphers[i], seal_test_opens(&pair, seal, sizes[k]));
        BH_CHECK("the session sends no more", gnutls_record_send(pair.server, "x", 1) < 0);
        BH_CHECK("nor its end", gnutls_bye(pair.server, GNUTLS_SHUT_WR) != 0);
        BH_CHECK_EQ("nothing came", recv(pair.fds[1], opened, 1, MSG_DONTWAIT), -1);
        bh_buf_init_fixed(&end, sealed, sizeof sealed);
        BH_CHECK("an end", bh_seal_put_end(seal, &end));
        assert_int_equal(send(pair.fds[0], end.bytes, end.length, MSG_NOSIGNAL), (ssize_t)end.length);
        BH_CHECK_EQ("is one", gnutls_record_recv(pair.client, opened, sizeof opened), 0);
        bh_seal_free(seal);
        seal_test_disconnect(&pair);
    }
    BH_CHECK_DONE();
}

/* The client ends the connection where a record is larger. */
static void
a_client_that_wants_small_records_gets_them(void **state)
{
    static const size_t most[] = { 512, 1000, 5000 };

    for (size_t i = 0; i < BH_COUNT(most); i++) {
        struct pair pair = seal_test_open("AES-128-GCM");
        struct bh_seal *seal;

        assert_int_equal(gnutls_record_set_max_recv_size(pair.client, most[i]), 0);
        seal_test_shake_hands(&pair);
        seal = bh_seal_take(pair.server);
        assert_non_null(seal);
        BH_CHECK("opened", seal_test_opens(&pair, seal, BH_SEAL_TEXT_MAX));
        bh_seal_free(seal);
        seal_test_disconnect(&pair);
    }
    BH_CHECK_DONE();
}

/* A client may ask for new keys beside its request: the session answers with its next record, or has not when
 * the stream begins, and then the old keys go on. */
static void
a_client_may_ask_for_new_keys(void **state)
{
    for (int answered = 0; answered < 2; answered++) {
        struct pair pair = seal_test_connect("AES-128-GCM");
        struct bh_seal *seal;

        assert_int_equal(gnutls_session_key_update(pair.client, GNUTLS_KU_PEER), 0);
        assert_int_equal(gnutls_record_send(pair.client, "GET", 3), 3);
        while (gnutls_record_recv(pair.server, opened, sizeof opened) != 3)
            ;
        if (answered) {
            assert_int_equal(gnutls_record_send(pair.server, "head", 4), 4);
            while (gnutls_record_recv(pair.client, opened, sizeof opened) != 4)
                ;
        }
        seal = bh_seal_take(pair.server);
        assert_non_null(seal);
        BH_CHECK(answered ? "answered" : "not answered", seal_test_opens(&pair, seal, TEXT_MAX));
        bh_seal_free(seal);
        seal_test_disconnect(&pair);
    }
    BH_CHECK_DONE();
}

static void
what_has_no_room_is_refused(void **state)
{
    struct pair pair = seal_test_connect("AES-128-GCM");
    struct bh_seal *seal = bh_seal_take(pair.server);
    struct bh_buf records;

    assert_non_null(seal);
    bh_buf_init_fixed(&records, sealed, 100);
    BH_CHECK("refused", !bh_seal_put(seal, text, 100, &records));
    bh_seal_free(seal);
    seal_test_disconnect(&pair);
    BH_CHECK_DONE();
}

static void
a_session_without_keys_is_left_alone(void **state)
{
    gnutls_session_t session;

    assert_int_equal(gnutls_init(&session, GNUTLS_SERVER), 0);
    BH_CHECK("none", !bh_seal_take(session));
    gnutls_deinit(session);
    bh_seal_free(NULL);
    BH_CHECK_DONE();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_size_is_opened_with_every_cipher),
        cmocka_unit_test(a_client_that_wants_small_records_gets_them),
        cmocka_unit_test(a_client_may_ask_for_new_keys),
        cmocka_unit_test(what_has_no_room_is_refused),
        cmocka_unit_test(a_session_without_keys_is_left_alone),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, make_certificate, forget_certificate);
}
