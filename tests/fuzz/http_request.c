/* Whatever a request is, the API answers it: with a status that it documents, and JSON
 * in the error shape when it is an error.
 *
 * The first line is "METHOD PATH?QUERY USER TYPE"; the rest is the body. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/fixture_test.h"
#include "base/assert.h"
#include "base/json.h"
#include "tests/fuzz/fuzz.h"

enum { REQUEST_MAX = 65536 };

static struct received got;

static const struct user {
    const char *name;
    uint32_t uid;
} users[] = { { "alice", ALICE }, { "bob", BOB }, { "carol", CAROL },
              { "dave", DAVE },   { "root", 0 },  { "eve", STRANGER } };

static uint32_t
uid_of(const char *name)
{
    for (size_t i = 0; i < BH_COUNT(users); i++)
        if (name && strcmp(users[i].name, name) == 0)
            return users[i].uid;
    return ALICE;
}

static enum bh_method
method_of(const char *name)
{
    for (int method = 0; method < BH_METHODS; method++)
        if (name && strcmp(bh_method_names[method], name) == 0)
            return (enum bh_method)method;
    return BH_GET;
}

static void
check_reply(void)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    struct bh_err err;

    BH_ASSERT(got.status >= 200 && got.status < 600);
    if (got.status < 400)
        return;
    BH_ASSERT(bh_json_parse(got.text, strlen(got.text), &json, &err) == BH_OK);
    BH_ASSERT(bh_json_get(bh_json_get(bh_json_root(json), "error"), "code"));
    BH_ASSERT(bh_json_get(bh_json_get(bh_json_root(json), "error"), "next"));
}

/* One site for all inputs: nothing that is asked of the API changes it, since its owner only
 * remembers what it was sent.  Making one takes longer than hundreds of requests. */
static struct fixture *
the_site(void)
{
    static struct fixture *f;

    if (!f) {
        f = bh_fixture_open();
        bh_fixture_put_job(f, 1, 2, 1, "running");
        bh_fixture_put_job(f, 2, 4, 2, "completed");
    }
    return f;
}

static void
send_request(char *line, const char *body)
{
    struct fixture *f = the_site();
    char *rest = line, *method = strsep(&rest, " "), *target = strsep(&rest, " ");
    char *user = strsep(&rest, " "), *type = strsep(&rest, " "), *path;
    struct sent sent = {
        .method = method_of(method), .body = body, .uid = uid_of(user), .type = type && *type ? type : NULL
    };

    path = target ? strsep(&target, "?") : NULL;
    sent.path = path && path[0] == '/' ? path : "/";
    sent.query = target;
    bh_fixture_send(f, &sent, &got);
    check_reply();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text, *body;

    if (size > REQUEST_MAX || memchr(data, '\0', size))
        return 0;
    text = bh_fuzz_text(data, size);
    body = strchr(text, '\n');
    if (body)
        *body++ = '\0';
    send_request(text, body ? body : "");
    free(text);
    return 0;
}
