/* The start of the CUDA runtime, played on the shim: it opens the library, finds one call, and by it some 440
 * others and three tables without names.  Each must be what the driver would have given, but for the hooks,
 * whose place is taken by the shim's of the same ABI.
 *
 *   startup_test DRIVER */
#include "base/test.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "tests/shim/sandbox.h"
#include "tests/shim/child.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CAP = 512, CONTEXT = 32 };

typedef __typeof__(cuGetProcAddress_v2) look_up_call;
typedef __typeof__(cuGetExportTable) table_call;

static const struct look_up {
    const char *name;
    int version;
    uint64_t flags;
} look_ups[] = {
#define LOOK_UP(name, version, flags) { name, version, flags },
#include "tables/runtime_look_ups.tbl"
};

static const char *const hooks[] = {
#define HOOK(name) #name,
#define SUBMIT(name, when, stream, own, work, parameters, arguments) #name,
#include "tables/hooks.tbl"
};

/* ---- the look-ups ---- */

/* The shim's function for the driver's answer: the hook of that call, or the call itself. */
static bool
is_in_its_place(void *found, void *driver, void *shim, void *answer)
{
    bool hooked = false;

    for (size_t i = 0; i < COUNT(hooks); i++)
        if (dlsym(driver, hooks[i]) == answer) {
            hooked = true;
            if (found == dlsym(shim, hooks[i]))
                return true;
        }
    return !hooked && found == answer;
}

/* The driver's answer is a form of that call, and of the two forms the one that was asked for. */
static bool
is_of(const struct look_up *asked, void *answer)
{
    size_t length = strlen(asked->name);
    Dl_info info;
    bool own;

    if (dladdr(answer, &info) == 0 || info.dli_sname == NULL)
        return false;
    own = strstr(info.dli_sname, "_ptsz") != NULL || strstr(info.dli_sname, "_ptds") != NULL;
    return strncmp(info.dli_sname, asked->name, length) == 0
           && (info.dli_sname[length] == '\0' || info.dli_sname[length] == '_')
           && own == (asked->flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
}

/* Returns how many were not as they should be. */
static unsigned
compare(look_up_call *look, look_up_call *real, void *driver, void *shim)
{
    unsigned bad = 0, found = 0;

    for (size_t i = 0; i < COUNT(look_ups); i++) {
        const struct look_up *asked = &look_ups[i];
        CUdriverProcAddressQueryResult status, wanted;
        void *function = &bad, *answer = &bad;
        CUresult rc = look(asked->name, &function, asked->version, asked->flags, &status);
        CUresult driver_rc = real(asked->name, &answer, asked->version, asked->flags, &wanted);

        found += rc == CUDA_SUCCESS;
        if (rc == driver_rc && status == wanted
            && (rc != CUDA_SUCCESS ? function == NULL && answer == NULL
                                   : is_of(asked, answer) && is_in_its_place(function, driver, shim, answer)))
            continue;
        fprintf(stderr, "%s %d %d\n", asked->name, asked->version, (int)asked->flags);
        bad++;
    }
    fprintf(stderr, "# %u of %zu found\n", found, COUNT(look_ups));
    return found > 150 ? bad : bad + 1;
}

static int
look_all_up(void *self)
{
    void *driver = dlopen(BH_SHARE_DRIVER_DIR "/libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void *shim = dlopen("libcuda.so.1", RTLD_NOW), *function = &driver;
    look_up_call *look, *real;

    CHECK(driver != NULL && shim != NULL && driver != shim);
    look = (look_up_call *)dlsym(shim, "cuGetProcAddress_v2");
    real = (look_up_call *)dlsym(driver, "cuGetProcAddress_v2");
    CHECK(look == cuGetProcAddress_v2 && real != NULL && real != look);
    CHECK(look("", &function, 0, 0, NULL) == CUDA_ERROR_NOT_FOUND && function == NULL);
    GOOD(look("cuGetProcAddress", &function, 12000, 0, NULL));
    CHECK(compare((look_up_call *)function, real, driver, shim) == 0);
    return 0;
}

static void
as_the_driver_answers(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("look-ups", bh_sandbox_run(look_all_up, NULL), 0);
    BH_CHECK_DONE();
}

/* ---- the tables ---- */

static const CUuuid tables[] = {
    { { (char)0xf8, (char)0xcf, (char)0xf9, 0x51, 0x21, 0x46, (char)0x8b, 0x4e, (char)0xb9, (char)0xe2,
        (char)0xfb, 0x46, (char)0x9e, 0x7c, 0x0d, (char)0xd9 } },
    { { 0x6b, (char)0xd5, (char)0xfb, 0x6c, 0x5b, (char)0xf4, (char)0xe7, 0x4a, (char)0x89, (char)0x87,
        (char)0xd9, 0x39, 0x12, (char)0xfd, (char)0x9d, (char)0xf9 } },
    { { (char)0xa0, (char)0x94, 0x79, (char)0x8c, 0x2e, 0x74, 0x2e, 0x74, (char)0x93, (char)0xf2, 0x08, 0x00,
        0x20, 0x0c, 0x0a, 0x66 } },
};

/* Found as the runtime finds it; each begins with its size, and no slot within it is empty. */
static int
ask_for_tables(void *self)
{
    table_call *real = (table_call *)bh_sandbox_driver("cuGetExportTable"), *ask;
    const CUuuid unknown = { { 1 } };
    const void *table = &unknown, *wanted = NULL;
    void *function;

    GOOD(cuGetProcAddress_v2("cuGetExportTable", &function, 3000, 0, NULL));
    ask = (table_call *)function;
    for (size_t i = 0; i < COUNT(tables); i++) {
        GOOD(ask(&table, &tables[i]));
        GOOD(real(&wanted, &tables[i]));
        CHECK(table == wanted);
        CHECK(*(const size_t *)table >= 7 * sizeof(void *));
        for (size_t slot = 1; slot < *(const size_t *)table / sizeof(void *); slot++)
            CHECK(((void *const *)table)[slot] != NULL);
    }
    CHECK(ask(&table, &unknown) == CUDA_ERROR_INVALID_VALUE && table == NULL);
    CHECK(ask(NULL, &unknown) == CUDA_ERROR_INVALID_VALUE);
    return 0;
}

static void
three_tables(void **state)
{
    bh_sandbox_share(1, CAP, CONTEXT);
    BH_CHECK_EQ("tables", bh_sandbox_run(ask_for_tables, NULL), 0);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(as_the_driver_answers),
    cmocka_unit_test(three_tables),
};

BH_SANDBOX_MAIN(tests)
