/* A program of a job, as it is: it looks for libcuda.so.1 by itself and takes all memory that it
 * gets.  Built with glibc, without its shared library, and with musl.
 *
 *   stranger LIBCUDA UNITS
 *
 * 0: it got so many units of 2 MiB and then no more; 3: it could not
 * load the library; 4: the library did not let it in; others: something is wrong. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*call_init)(unsigned);
typedef int (*call_retain)(void **, int);
typedef int (*call_set)(void *);
typedef int (*call_alloc)(unsigned long long *, size_t);
typedef int (*call_info)(size_t *, size_t *);

static void *library;

static void *
find(const char *name)
{
    void *found = dlsym(library, name);

    if (found == NULL)
        exit(5);
    return found;
}

int
main(int argc, char **argv)
{
    const unsigned *asked;
    unsigned units = 0;
    size_t left = 1, total = 0;
    unsigned long long at;
    void *context;
    int rc;

    library = argc > 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (library == NULL)
        return 3;
    if (((call_init)find("cuInit"))(0) != 0)
        return 4;
    if (((call_retain)find("cuDevicePrimaryCtxRetain"))(&context, 0) != 0
        || ((call_set)find("cuCtxSetCurrent"))(context) != 0)
        return 6;
    while ((rc = ((call_alloc)find("cuMemAlloc_v2"))(&at, 2 << 20)) == 0)
        units++;
    if (((call_info)find("cuMemGetInfo_v2"))(&left, &total) != 0 || left != 0)
        return 7;
    asked = dlsym(NULL, "bh_meddler_wall_clocks"); /* NULL: any library */
    if (asked != NULL && *asked != 0)
        return 9; /* the wall clock jumps */
    return rc == 2 && units == strtoul(argv[2], NULL, 10) ? 0 : 8;
}
