#include "crypto/openssl.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "base/fd.h"
#include "base/num.h"
#include "base/test.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

static const char *
openssl_test_hex(const uint8_t *bytes, size_t length)
{
    static char text[160];
    struct bh_buf out;

    bh_buf_init_fixed(&out, text, sizeof text);
    bh_buf_put_hex(&out, bytes, length);
    return bh_buf_text(&out);
}

static void
hmac_vectors(void **state)
{
    static const char key[] = "\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
                              "\x0b\x0b\x0b";
    char long_key[131];
    uint8_t digest[32];

    /* RFC 4231, cases 1, 2 and 6 */
    crypto->hmac(key, 20, "Hi There", 8, digest);
    BH_CHECK_STR("case 1", openssl_test_hex(digest, 32),
                 "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    crypto->hmac("Jefe", 4, "what do ya want for nothing?", 28, digest);
    BH_CHECK_STR("case 2", openssl_test_hex(digest, 32),
                 "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    memset(long_key, 0xaa, sizeof long_key);
    crypto->hmac(long_key, sizeof long_key, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
                 digest);
    BH_CHECK_STR("case 6", openssl_test_hex(digest, 32),
                 "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

/* The two vectors of c2sp.org/XAES-256-GCM, which take both ways through the doubling. */
static void
xaes_vectors(void **state)
{
    static const struct {
        uint8_t key;
        const char *bound, *sealed;
    } rows[] = {
        { 1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271" },
        { 3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d" },
    };
    static const char nonce[] = "ABCDEFGHIJKLMNOPQRSTUVWX", plain[] = "XAES-256-GCM";
    uint8_t key[32], sealed[12 + BH_AEAD_TAG_BYTES], opened[12];
    struct bh_err err;

    for (size_t i = 0; i < BH_COUNT(rows); i++) {
        const struct bh_aead aead = { key, (const uint8_t *)nonce, rows[i].bound, strlen(rows[i].bound) };

        memset(key, rows[i].key, sizeof key);
        BH_CHECK_EQ("seal", crypto->seal(&aead, plain, 12, sealed, &err), BH_OK);
        BH_CHECK_STR("sealed", openssl_test_hex(sealed, sizeof sealed), rows[i].sealed);
        BH_CHECK_EQ("open", crypto->open(&aead, sealed, sizeof sealed, opened, &err), BH_OK);
        BH_CHECK("opened", memcmp(opened, plain, 12) == 0);
    }
}

/* Whatever is changed is noticed, and nothing of the plaintext comes out. */
static void
sealed_is_bound(void **state)
{
    uint8_t key[32] = { 7 }, nonce[24] = { 9 }, sealed[5 + BH_AEAD_TAG_BYTES], opened[5];
    const uint8_t nothing[5] = { 0 };
    const struct bh_aead aead = { key, nonce, "row 1", 5 };
    struct bh_aead other = { key, nonce, "row 2", 5 };
    struct bh_err err;

    assert_int_equal(crypto->seal(&aead, "plain", 5, sealed, &err), BH_OK);
    for (size_t bit = 0; bit < sizeof sealed * 8; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        BH_CHECK_EQ("flipped bit", crypto->open(&aead, sealed, sizeof sealed, opened, &err), BH_INVALID);
        BH_CHECK("nothing", memcmp(opened, nothing, sizeof opened) == 0);
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    BH_CHECK_EQ("bound", crypto->open(&other, sealed, sizeof sealed, opened, &err), BH_INVALID);
    BH_CHECK_EQ("short", crypto->open(&aead, sealed, 15, opened, &err), BH_INVALID);
    other = aead;
    key[31] ^= 1;
    BH_CHECK_EQ("key", crypto->open(&other, sealed, sizeof sealed, opened, &err), BH_INVALID);
    key[31] ^= 1;
    BH_CHECK_EQ("again", crypto->open(&other, sealed, sizeof sealed, opened, &err), BH_OK);
}

static void
sha256_vectors(void **state)
{
    static const struct {
        const char *text, *digest;
    } rows[] = {
        /* FIPS 180-4 */
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    };
    struct bh_sha256 hash;
    uint8_t digest[32];
    char chunk[1000];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].text);

        for (size_t cut = 0; cut <= length; cut += 7) {
            crypto->sha256(rows[i].text, cut, rows[i].text + cut, length - cut, digest);
            BH_CHECK_STR(rows[i].text, openssl_test_hex(digest, 32), rows[i].digest);
        }
        crypto->sha256_begin(&hash);
        for (size_t k = 0; k < length; k++)
            crypto->sha256_put(&hash, rows[i].text + k, 1);
        crypto->sha256_finish(&hash, digest);
        BH_CHECK_STR(rows[i].text, openssl_test_hex(digest, 32), rows[i].digest);
    }
    memset(chunk, 'a', sizeof chunk);
    crypto->sha256_begin(&hash);
    for (int i = 0; i < 1000; i++)
        crypto->sha256_put(&hash, chunk, sizeof chunk);
    crypto->sha256_finish(&hash, digest);
    BH_CHECK_STR("a million a", openssl_test_hex(digest, 32),
                 "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    BH_CHECK_DONE();
}

static void
ed25519_vectors(void **state)
{
    static const struct { /* RFC 8032, 7.1, tests 1 to 3 */
        const char *private_key, *public_key, *message, *signature;
        size_t length;
    } rows[] = {
        { "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
          "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
          "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bac"
          "c61e39"
          "701cf9b46bd25bf5f0595bbe24655141438e7a100b",
          0 },
        { "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
          "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "\x72",
          "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e"
          "458f36"
          "13d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
          1 },
        { "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
          "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "\xaf\x82",
          "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290"
          "ae67f7"
          "60984dc6594a7c15e9716ed28dc027beceea1ec40a",
          2 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t private_key[32], public_key[32], signature[64];
        const char *name = rows[i].private_key;
        struct bh_err err;

        assert_true(bh_parse_hex(rows[i].private_key, private_key, 32));
        assert_int_equal(crypto->public_of(private_key, public_key, &err), BH_OK);
        BH_CHECK_STR(name, openssl_test_hex(public_key, 32), rows[i].public_key);
        assert_int_equal(crypto->sign(private_key, rows[i].message, rows[i].length, signature, &err), BH_OK);
        BH_CHECK_STR(name, openssl_test_hex(signature, 64), rows[i].signature);
        BH_CHECK_EQ(name, crypto->verify(public_key, rows[i].message, rows[i].length, signature, &err),
                    BH_OK);
        signature[i] ^= 1;
        BH_CHECK_EQ(name, crypto->verify(public_key, rows[i].message, rows[i].length, signature, &err),
                    BH_DENIED);
    }
    BH_CHECK_DONE();
}

static void
keys_and_randomness(void **state)
{
    uint8_t one[32], two[32], public_key[32], again[32], bytes[10000] = { 0 };
    unsigned zeros = 0;
    struct bh_err err;

    assert_int_equal(crypto->make_key(one, public_key, &err), BH_OK);
    assert_int_equal(crypto->public_of(one, again, &err), BH_OK);
    assert_memory_equal(public_key, again, 32);
    assert_int_equal(crypto->make_key(two, public_key, &err), BH_OK);
    assert_memory_not_equal(one, two, 32);
    assert_int_equal(crypto->random(bytes, sizeof bytes, &err), BH_OK);
    for (size_t i = 0; i < sizeof bytes; i++)
        zeros += bytes[i] == 0;
    assert_true(zeros < 200);
}

static X509 *
read_certificate(const char *cert, const char *key)
{
    BIO *bio = BIO_new_mem_buf(cert, -1);
    X509 *x509 = PEM_read_bio_X509(bio, NULL, NULL, NULL);
    EVP_PKEY *pkey;

    BIO_free(bio);
    bio = BIO_new_mem_buf(key, -1);
    pkey = PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL);
    BIO_free(bio);
    assert_non_null(x509);
    assert_int_equal(X509_check_private_key(x509, pkey), 1);
    assert_int_equal(X509_verify(x509, pkey), 1);
    EVP_PKEY_free(pkey);
    return x509;
}

static void
openssl_test_certificate(void **state)
{
    static const struct {
        const char *host, *good, *bad;
    } rows[] = {
        { "gpu-1.example.org", "gpu-1.example.org", "gpu-2.example.org" },
        { "10.1.2.3", "localhost", "10.1.2.3.example" },
    };
    char cert[4096], key[4096];
    struct bh_err err;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        X509 *x509;
        int days, seconds;

        assert_int_equal(crypto->make_certificate(rows[i].host, cert, sizeof cert, key, sizeof key, &err),
                         BH_OK);
        x509 = read_certificate(cert, key);
        BH_CHECK_EQ("host", X509_check_host(x509, rows[i].good, 0, 0, NULL), 1);
        BH_CHECK_EQ("other", X509_check_host(x509, rows[i].bad, 0, 0, NULL), 0);
        BH_CHECK_EQ("localhost", X509_check_host(x509, "localhost", 0, 0, NULL), 1);
        BH_CHECK_EQ("v4", X509_check_ip_asc(x509, "127.0.0.1", 0), 1);
        BH_CHECK_EQ("v6", X509_check_ip_asc(x509, "::1", 0), 1);
        BH_CHECK_EQ("own v4", X509_check_ip_asc(x509, "10.1.2.3", 0), i == 1);
        BH_CHECK_EQ("version", X509_get_version(x509), X509_VERSION_3);
        BH_CHECK_EQ("no authority", X509_check_ca(x509), 0);
        assert_int_equal(ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(x509), X509_get0_notAfter(x509)),
                         1);
        BH_CHECK_EQ("days", days, 398);
        X509_free(x509);
    }
    BH_CHECK_EQ("injected name",
                crypto->make_certificate("a,DNS:b", cert, sizeof cert, key, sizeof key, &err), BH_INVALID);
    BH_CHECK_EQ("no name", crypto->make_certificate("", cert, sizeof cert, key, sizeof key, &err),
                BH_INVALID);
    BH_CHECK_EQ("small", crypto->make_certificate("a", cert, 20, key, sizeof key, &err), BH_FULL);
    BH_CHECK_DONE();
}

static void
key_files(void **state)
{
    char folder[] = "/tmp/bh-crypto-XXXXXX", path[64];
    uint8_t one[32], two[32];
    struct stat status;
    struct bh_err err;
    bool made = false;

    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/key", folder);
    BH_CHECK_EQ("make", bh_crypto_key_load_or_make(crypto, path, one, &made, &err), BH_OK);
    BH_CHECK("made", made);
    BH_CHECK_EQ("stat", stat(path, &status), 0);
    BH_CHECK_EQ("mode", status.st_mode & 0777, 0600);
    BH_CHECK_EQ("load", bh_crypto_key_load_or_make(crypto, path, two, &made, &err), BH_OK);
    BH_CHECK("not made", !made);
    BH_CHECK("same", memcmp(one, two, 32) == 0);
    BH_CHECK_EQ("chmod", chmod(path, 0640), 0);
    BH_CHECK_EQ("open to others", bh_crypto_key_load_or_make(crypto, path, two, NULL, &err), BH_DENIED);
    BH_CHECK_EQ("short", bh_file_replace(path, one, 31, 0600, &err), BH_OK);
    BH_CHECK_EQ("short", bh_crypto_key_load_or_make(crypto, path, two, NULL, &err), BH_INVALID);
    BH_CHECK_EQ("long", bh_file_replace(path, "123456789012345678901234567890123", 33, 0600, &err), BH_OK);
    BH_CHECK_EQ("long", bh_crypto_key_load_or_make(crypto, path, two, NULL, &err), BH_INVALID);
    unlink(path);
    rmdir(folder);
    BH_CHECK_EQ("no folder", bh_crypto_key_load_or_make(crypto, path, two, NULL, &err), BH_NOT_FOUND);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sha256_vectors),
    cmocka_unit_test(hmac_vectors),
    cmocka_unit_test(xaes_vectors),
    cmocka_unit_test(sealed_is_bound),
    cmocka_unit_test(ed25519_vectors),
    cmocka_unit_test(keys_and_randomness),
    cmocka_unit_test(openssl_test_certificate),
    cmocka_unit_test(key_files),
};

BH_TEST_MAIN(tests)
