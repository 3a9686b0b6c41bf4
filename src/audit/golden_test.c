/* Another program's log, made again: the 15 entries of Tessera's test log lead to its 16
 * published checkpoints, byte for byte, and they open with its published key.
 *
 * Vectors: transparency-dev/tessera, testdata/log and testdata/build_log.sh (Apache-2.0), as
 * of commits 842b908e and a508c5b8.  The key is a published test key.  Of the log's tiles,
 * which are binary, none is kept here: their hashes are those that the roots are made of. */
#include "audit/checkpoint.h"

#include "audit/merkle.h"
#include "base/base64.h"
#include "base/test.h"
#include "ports/crypto.h"

static const struct bh_crypto_ops *const crypto = &bh_crypto_openssl;

static const char origin[] = "example.com/log/testdata";
static const char private_text[] = "AeymY/SZAX0jZcJ8enZ5FY1Dz+wTML2yWSkK+9DSF3eg";
static const char vkey[] = "example.com/log/testdata+33d7b496+AeHTu4Q3hEIMHNqc6fASMsq3rKNx280NI+oO5xCFkkSx";

/* `entry` is the last one of a log of that size. */
static const struct {
    const char *entry, *root, *signature;
} sizes[] = {
    { NULL, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
      "M9e0lhxJACzE1KoUdqKuPa+9p6R7dSW8BlEvrg/noo8FkGg6PbJoRNOcdjqjOq89wVvTA60eubCc4oufo5Bv"
      "IVEgtQc=" },
    { "one", "0Nc2CrefWKseHj/mStd+LqC8B+NrX0btIiPt2SmN+ek=",
      "M9e0lhr9kuLxGdAtaUrhm84TQffVsLdcy808sN0a3WyniNlfcr9+bywoiIke1YYciCNjJGkCgIlQ8b16jhsm"
      "g/SChAM=" },
    { "two", "T1X2GdkhUjV3iyufF9b0kVsWFxIU0VI4EpNml2Teci4=",
      "M9e0llH4NKmlf0u7C8tkJioQOmi7l5ELqljXgKRg6R3G5JJ7vx7emDWo5fpqKuA/Dk/jRrI6il+7QCVirNhy"
      "UAWGoAk=" },
    { "three", "Wqx3HImawpLnS/Gv4ubjAvi1WIOy0b8Ze0amvqbavKk=",
      "M9e0lvAQRtH832pk2RTbeSeZMkp4FZSdJYFBUjO5SKxuRbywPUF3cx+HUrb50kjd3rUWW/fj53Wj1dwcwh9b"
      "GQnqVAg=" },
    { "four", "zY1lN35vrXYAPixXSd59LsU29xUJtuW4o2dNNg5Y2Co=",
      "M9e0lnFuWt0cp60moO4jAkeXvMNLIIOGn4WdyeHQurBt9mBi0tWdfkldiAt9k0FpwuZymvttsVn9uwyouXU3"
      "vPpeNAc=" },
    { "five", "gy5gl3aksFyiCO95a/1vLXz88A3dRq+0l9Sxte8ZqZQ=",
      "M9e0lmn5eDHyHP10zJObZdFAX2y1V8fdDKBi4IiHbDYf1TCUBwxZOhqwv2QZCqrdda2zTRTrmnwjwscN5RBT"
      "EmZUYAs=" },
    { "six", "a6sWvsc2eEzmj72vah7mZ5dwFltivehh2b11qwlp5Jg=",
      "M9e0ln+nHSdGSHEZBcjvqyYDXDbG8WxDwCDjbbGAMv/NTynAtJWhckSXIpuwpN3yJ4PTtzUbD34YGqIZr6Rg"
      "JRn16gU=" },
    { "seven", "IrSXADBqJ7EQoUODSDKROySgNveeL6CFhik2w/+fS7U=",
      "M9e0luA5JhTRUki/BBQD0QNiH6AEJ2pdtsA5CQjqJErViuuKrN6513RCTL2640wXJv0dCed3neRGI6dMzBq9"
      "uANf2Qc=" },
    { "eit", "bC+VwvrJbalNVjfkdI8kUgs7mJoXrqiXCE7bgnD28pY=",
      "M9e0lq1EK37dHtgv9O3UzPxisw5vwIPcJsX9ab0xt4mvVfbdUR1fbMjN6sBFYpBoBEmD4+cWhj/AVgI5MitC"
      "O5+mews=" },
    { "nain", "CvhHViE3S9E3htHLR+25mapWoGCJ3WckMq1UtC3VmEY=",
      "M9e0ls3mdnWX0qk4P3uGG0eYiFRWSwPR+RdeD1ARmrHPHjXP0x9UJWASPFTOTqJo0mp7Epck2O9RFB0J9IjD"
      "dAewagw=" },
    { "ten", "y8/gZsZCtitsMan09tY+k8I7Qpr7Y5fbO2tLi9GQnfU=",
      "M9e0lrmwaVEOWFZ+HS5ITnRd2YMOSWE5QeoYu+6DHwJLnJ+SVeJ2ZiYeD7lVC5oGJx76gbfLSyCUEq6D8Jka"
      "rrsuiQQ=" },
    { "ileven", "Yok1cS5VdokGLBy73BC2I16b3atss6KBN9jnIi6Fz/A=",
      "M9e0lqbRtWirJwbUy4w3VrK2RyzfW8P+OIkc8t6b6AVG/tQd1Q2SN+uCLYzNNFnf/PhzeCdURSGQe1MRnohC"
      "xPu21wg=" },
    { "twelf", "uZo6M+IhVna+CLgWCrJs0xBPUHbozHkYTQASduHSLME=",
      "M9e0lrFzoTgi+ovhrqX0DpsEAp3wLu1coMLIkeCwSkGfS4Ox4pLXo2LHudqm4merh0ZkCNzHr8kQwq5gS5mm"
      "imIvdA4=" },
    { "threeten", "av0kLH0VkkVDrTuZzBGIx7d9z5G1l/GlKz/nAV/8woQ=",
      "M9e0liO8x8xfEOGmZVYODUjQajkEpjccPQ9EkG3yEEDet4K3BWE/DFRPH6H+b6gFFFaG5KS1bBmYS/xeZJs8"
      "lj+z+wM=" },
    { "fourten", "SvCd38yNade7xEPY1a/aAc1M3A2AHYVF8lIiUnsH1ao=",
      "M9e0lu8roIpjC+NXEG7JDkajIahoYDYWgxDtxfx/6rzLoztU9t/PvivZ48xt8ygJpjzaboSpkbVv3Jb+D3Nd"
      "XWQf5wo=" },
    { "fivten", "rKbDipCvhuX1GZ7g5BBe8sA6BbJ7ja/1nk427v383cs=",
      "M9e0luh4jTG+UMBqOUo9/q+yAEvx1ilBEniMvjf1zfcBOhg+CKubMt53MvIt/uEWP6zdkdIQzd/fmwlM/dlP"
      "WF74ewI=" },
};

static void
add_entry(struct bh_merkle_frontier *frontier, const char *entry)
{
    uint8_t hash[32];

    bh_merkle_leaf(crypto, entry, strlen(entry), hash);
    bh_merkle_frontier_add(frontier, crypto, hash);
}

/* The published private key: a byte for Ed25519, then the key. */
static void
read_private_key(uint8_t ret_key[32])
{
    char memory[64];
    struct bh_buf bytes;

    bh_buf_init_fixed(&bytes, memory, sizeof memory);
    assert_true(bh_base64_decode(&bytes, private_text, strlen(private_text)));
    assert_int_equal(bytes.length, 33);
    assert_int_equal(memory[0], 1);
    memcpy(ret_key, memory + 1, 32);
}

static void
every_checkpoint_byte_for_byte(void **state)
{
    struct bh_merkle_frontier frontier = { 0 };
    struct bh_checkpoint checkpoint, opened;
    struct bh_note_key key;
    uint8_t private_key[32];
    struct bh_err err;

    read_private_key(private_key);
    assert_int_equal(bh_note_key_parse(crypto, vkey, &key, &err), BH_OK);
    for (uint64_t size = 0; size < BH_COUNT(sizes); size++) {
        char note[1024], published[1024];
        struct bh_buf out;

        if (sizes[size].entry)
            add_entry(&frontier, sizes[size].entry);
        checkpoint = (struct bh_checkpoint){ .size = size };
        memcpy(checkpoint.origin, origin, sizeof origin);
        bh_merkle_frontier_root(&frontier, crypto, checkpoint.root);
        bh_buf_init_fixed(&out, note, sizeof note);
        assert_int_equal(bh_checkpoint_sign(crypto, &checkpoint, private_key, &out, &err), BH_OK);
        snprintf(published, sizeof published, "%s\n%d\n%s\n\n— %s %s\n", origin, (int)size, sizes[size].root,
                 origin, sizes[size].signature);
        BH_CHECK_STR(sizes[size].entry ? sizes[size].entry : "none", bh_buf_text(&out), published);
        BH_CHECK_EQ("opens", bh_checkpoint_open(crypto, &key, published, &opened, &err), BH_OK);
    }
    BH_CHECK_EQ("sizes", BH_COUNT(sizes), 16);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_checkpoint_byte_for_byte),
};

BH_TEST_MAIN(tests)
