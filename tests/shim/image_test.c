/* What an image of code is charged, and that nothing in one is believed. */
#include "base/test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shim/calls/image.h"
#include "shim/calls/ptx.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define UNKNOWN BH_IMAGE_UNKNOWN_BYTES

/* ---- PTX ---- */

#define HEAD ".version 8.0\n.target sm_90\n.address_size 64\n\n"

static const struct {
    const char *name, *text;
    uint64_t variables;
} texts[] = {
    { "none", HEAD ".visible .entry k(\n.param .u64 p\n)\n{\nret;\n}\n", 0 },
    { "bytes", HEAD ".global .align 1 .b8 big[104857600];", 104857600 },
    { "words", HEAD ".visible .global .align 4 .f32 v[1000];", 4000 },
    { "a vector", HEAD ".global .v4 .f32 v[10];", 160 },
    { "two dimensions", HEAD ".global .b64 v[8][ 16 ];", 1024 },
    { "one of them", HEAD ".global .u32 counter;", 4 },
    { "a constant", HEAD ".const .align 4 .b8 c[16384];", 16384 },
    { "with a value", HEAD ".global .align 4 .b8 i[4000] = {1, 0, 0};", 4000 },
    { "managed", HEAD ".global .attribute(.managed) .align 4 .b8 m[1200000];", 1200000 },
    { "hexadecimal", HEAD ".global .b8 v[0x100];", 256 },
    { "another module's", HEAD ".extern .global .align 4 .b8 e[4096];", 0 },
    { "shared", HEAD ".shared .align 4 .b8 s[4096];", 0 },
    { "a parameter", HEAD ".entry k(.param .u64 .ptr .global .align 4 p)\n{ret;}", 0 },
    { "loads and stores", HEAD ".entry k()\n{ld.global.f32 %f1, [%rd1];\nret;}", 0 },
    { "a comment", HEAD "// .global .b8 v[9];\n.global .b8 w[7];", 7 },
    { "behind a file's name", HEAD ".file 1 \"/a/;/b.cu\"\n.global .b8 v[7];", 7 },
    { "a long name",
      HEAD ".global .b8 _ZN9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one"
           "9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one9a_l"
           "ong_one9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one9a_long_one[4096];",
      4096 },
    { "after a function", HEAD ".func f()\n{\nret;\n}\n.global .b8 v[5];", 5 },
    { "more than there is", HEAD ".global .b64 v[18446744073709551615];", UINT64_MAX },
    { "two that are", HEAD ".global .b8 v[18446744073709551615];\n.global .b8 w[3];", UINT64_MAX },
};

static void
variables_of_ptx_are_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct bh_ptx whole = { 0 }, parts = { 0 };
        size_t length = strlen(texts[i].text);
        uint64_t sum;

        (void)bh_ptx_read(&whole, texts[i].text, length + 1);
        BH_CHECK_EQ(texts[i].name, whole.variables, texts[i].variables);
        for (size_t at = 0; at <= length; at++)
            (void)bh_ptx_read(&parts, texts[i].text + at, 1);
        BH_CHECK_EQ(texts[i].name, parts.variables, texts[i].variables);
        if (__builtin_add_overflow(texts[i].variables, 4 * length, &sum))
            sum = UINT64_MAX;
        BH_CHECK_EQ(texts[i].name, bh_image_bytes(texts[i].text, 90), sum);
    }
    BH_CHECK_DONE();
}

/* ---- cubins and fat binaries ---- */

struct cubin {
    Elf64_Ehdr head;
    char names[64];
    Elf64_Shdr section[6];
};

static struct cubin
cubin(uint64_t code, uint64_t zeroes)
{
    static const char names[] = "\0.text\0.nv.global\0.nv.shared.k\0.debug";
    struct cubin made = {
        .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64 },
                  .e_machine = 190,
                  .e_shoff = offsetof(struct cubin, section),
                  .e_shentsize = sizeof(Elf64_Shdr),
                  .e_shnum = 6,
                  .e_shstrndx = 1 },
        .section = { { 0 },
                     { .sh_type = SHT_STRTAB, .sh_offset = offsetof(struct cubin, names) },
                     { .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC, .sh_size = code },
                     { .sh_name = 7, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_size = zeroes },
                     { .sh_name = 18, .sh_type = SHT_NOBITS, .sh_flags = SHF_ALLOC, .sh_size = 100000 },
                     { .sh_name = 31, .sh_type = SHT_PROGBITS, .sh_size = 70000 } },
    };

    memcpy(made.names, names, sizeof(names));
    return made;
}

struct entry {
    uint16_t kind, pad;
    uint32_t header_bytes;
    uint64_t bytes;
    uint32_t packed_bytes, pad2;
    uint16_t minor, major;
    uint32_t capability, name[2];
    uint64_t flags, zero, unpacked_bytes;
};

struct fat {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t bytes;
    struct {
        struct entry entry;
        struct cubin cubin;
    } for_80, for_90;
    struct {
        struct entry entry;
        char text[64];
    } ptx;
    struct entry packed; /* for 100 */
};

static struct fat
fat(void)
{
    struct fat made = {
        .magic = 0xba55ed50,
        .version = 1,
        .header_bytes = 16,
        .bytes = sizeof(struct fat) - 16,
        .for_80 = { { 2, 0, 64, sizeof(struct cubin), .capability = 80 }, cubin(512, 1 << 20) },
        .for_90 = { { 2, 0, 64, sizeof(struct cubin), .capability = 90 }, cubin(1024, 2 << 20) },
        .ptx = { { 1, 0, 64, 64, .capability = 90 }, ".version 8.0\n" },
        .packed = { 2, 0, 64, 0, .capability = 100, .unpacked_bytes = 5 << 20 },
    };

    return made;
}

static const struct {
    unsigned capability;
    uint64_t bytes;
    /* clang-format off */
} devices[] = {
    { 80, 512 + (1 << 20) },  { 86, 512 + (1 << 20) }, /* of its own generation */
    { 90, 1024 + (2 << 20) }, { 100, 5 << 20 },        { 120, 4 * 13 }, /* compiled */
    { 75, 5 << 20 }, /* none fits */                   { 0, 5 << 20 },
};
/* clang-format on */

static void
the_image_for_the_device_counts(void **state)
{
    struct fat image = fat();
    struct {
        uint32_t magic, version;
        const void *image;
    } wrapper = { 0x466243b1, 1, &image };
    char path[] = "/tmp/bh-image-XXXXXX";
    int fd = mkstemp(path);

    (void)state;
    BH_CHECK("file", write(fd, &image, sizeof(image)) == (ssize_t)sizeof(image));
    for (size_t i = 0; i < COUNT(devices); i++) {
        BH_CHECK_EQ("in memory", bh_image_bytes(&image, devices[i].capability), devices[i].bytes);
        BH_CHECK_EQ("wrapped", bh_image_bytes(&wrapper, devices[i].capability), devices[i].bytes);
        BH_CHECK_EQ("in a file", bh_image_file_bytes(path, devices[i].capability), devices[i].bytes);
    }
    BH_CHECK_EQ("a cubin", bh_image_bytes(&image.for_90.cubin, 0), 1024 + (2 << 20));
    BH_CHECK_EQ("no such file", bh_image_file_bytes("/nowhere", 90), 0);
    BH_CHECK_EQ("a folder", bh_image_file_bytes("/tmp", 90), UNKNOWN);
    BH_CHECK_EQ("nothing", bh_image_bytes(NULL, 90), UNKNOWN);
    BH_CHECK_EQ("text", bh_image_bytes("anything", 90), UNKNOWN);
    close(fd);
    unlink(path);
    BH_CHECK_DONE();
}

/* ---- what makes no sense ---- */

/* Behind the image nothing is mapped: whoever reads on dies. */
static char *
at_the_edge(size_t bytes)
{
    char *pages = mmap(NULL, 12288, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(pages != MAP_FAILED && munmap(pages + 8192, 4096) == 0);
    return pages + 8192 - bytes;
}

static void
nothing_is_read_that_is_not_there(void **state)
{
    struct fat image = fat();
    size_t bytes = sizeof(image);
    uint64_t seed = 88172645463325252u;
    char *edge = at_the_edge(bytes);

    (void)state;
    for (size_t cut = 1; cut < bytes; cut++) { /* its end is missing */
        char *at = edge + bytes - cut;

        memcpy(at, &image, cut);
        (void)bh_image_bytes(at, 90);
    }
    for (int i = 0; i < 20000; i++) {
        memcpy(edge, &image, bytes);
        for (int k = 0; k < 4; k++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            edge[seed % bytes] = (char)(seed >> 40);
        }
        (void)bh_image_bytes(edge, 90);
        (void)bh_image_bytes(edge + offsetof(struct fat, for_90.cubin), 90);
    }
    BH_CHECK_EQ("bad address", bh_image_bytes((const void *)8, 90), UNKNOWN);
    BH_CHECK_EQ("end of memory", bh_image_bytes((const void *)(UINTPTR_MAX - 7), 90), UNKNOWN);
    munmap(edge + bytes - 8192, 8192);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(variables_of_ptx_are_found),
    cmocka_unit_test(the_image_for_the_device_counts),
    cmocka_unit_test(nothing_is_read_that_is_not_there),
};
BH_TEST_MAIN(tests)
