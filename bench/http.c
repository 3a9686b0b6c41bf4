#include "bench/http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/fd.h"

/* Keep of `length` new body bytes what still fits behind `*kept`. */
static void
keep(const char *bytes, size_t length, char *ret_body, size_t size, size_t *kept)
{
    size_t room = size - 1 - *kept, take = length < room ? length : room;

    memcpy(ret_body + *kept, bytes, take);
    *kept += take;
    ret_body[*kept] = '\0';
}

static bool
read_body(int fd, size_t left, char *ret_body, size_t size, size_t kept)
{
    char memory[65536];

    while (left > 0) {
        ssize_t n = read(fd, memory, left < sizeof memory ? left : sizeof memory);

        if (n <= 0)
            return false;
        keep(memory, (size_t)n, ret_body, size, &kept);
        left -= (size_t)n;
    }
    return true;
}

bool
bh_http_exchange(int fd, const char *request, size_t length, char *ret_body, size_t size)
{
    char memory[4096];
    size_t got = 0, kept = 0;
    struct bh_err err;

    if (bh_fd_write_all(fd, request, length, &err) != BH_OK)
        return false;
    while (got < sizeof memory - 1) {
        ssize_t n = read(fd, memory + got, sizeof memory - 1 - got);
        const char *end, *said;
        size_t body, here;

        if (n <= 0)
            return false;
        got += (size_t)n;
        memory[got] = '\0';
        end = strstr(memory, "\r\n\r\n");
        said = strcasestr(memory, "content-length: ");
        if (!end || !said)
            continue;
        body = strtoul(said + 16, NULL, 10);
        here = got - (size_t)(end + 4 - memory);
        keep(end + 4, here, ret_body, size, &kept);
        return read_body(fd, body - here, ret_body, size, kept) && strncmp(memory, "HTTP/1.1 2", 10) == 0;
    }
    return false;
}

char *
bh_http_request(const char *method, const char *path, const char *type, const char *body)
{
    char *request = NULL;

    BH_ASSERT(asprintf(&request,
                       "%s %s HTTP/1.1\r\nHost: bulkhead\r\nContent-Type: %s\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       method, path, type, strlen(body), body)
              > 0);
    return request;
}
