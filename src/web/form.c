#include "web/form.h"

#include <string.h>

#include "base/assert.h"

enum { NEXT_MAX = 1024 };

void
bh_csrf_token(const char *secret, char ret_token[BH_SECRET_TEXT])
{
    bh_secret_mac(secret, "bulkhead form token", ret_token);
}

/* Does the request come from a page of `origin` ("https://gpu.example")?  By Origin where
 * there is one, else by Sec-Fetch-Site; a request with neither comes from no browser of
 * this decade, and is refused. */
static bool
form_is_same_origin(const struct bh_request *request, const char *origin)
{
    if (request->origin)
        return strcmp(request->origin, origin) == 0;
    return request->fetch_site && strcmp(request->fetch_site, "same-origin") == 0;
}

static bool
is_form(const char *type)
{
    static const char want[] = "application/x-www-form-urlencoded";
    size_t length = sizeof want - 1;

    return type && strncmp(type, want, length) == 0
           && (type[length] == '\0' || type[length] == ';' || type[length] == ' ');
}

enum bh_identity_fault
bh_form_receive(const struct bh_request *request, const char *origin, const char *token,
                struct bh_form *ret_form)
{
    enum bh_identity_fault fault;
    const char *given;

    BH_ASSERT(token[0]); /* or none would be the right one */
    if (!form_is_same_origin(request, origin))
        return BH_FAULT_ELSEWHERE;
    if (!is_form(request->content_type))
        return BH_FAULT_FORM;
    fault = bh_form_parse_lines(request->body, request->body_length, ret_form);
    if (fault != BH_FAULT_NONE)
        return fault;
    given = bh_form_get(ret_form, "csrf");
    return given && bh_secret_equal(given, token) ? BH_FAULT_NONE : BH_FAULT_ELSEWHERE;
}

bool
bh_cookie_find(const struct bh_request *request, const char *name, char *ret_value, size_t size)
{
    const char *at = request->cookie ? request->cookie : "";
    size_t length = strlen(name), found = SIZE_MAX;

    while (*at) {
        size_t part;

        at += strspn(at, " ;");
        part = strcspn(at, ";");
        if (part > length && strncmp(at, name, length) == 0 && at[length] == '=') {
            if (found != SIZE_MAX || part - length > size)
                return false;
            found = part - length - 1;
            memcpy(ret_value, at + length + 1, found);
            ret_value[found] = '\0';
        }
        at += part;
    }
    return found != SIZE_MAX;
}

const char *
bh_next_path(const char *text, const char *fallback)
{
    static const char plain[] = "%?ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/=&";

    if (!text || text[0] != '/' || text[1] == '/' || text[strspn(text, plain)] != '\0'
        || text[strcspn(text, "%?")] == '%' || strlen(text) > NEXT_MAX)
        return fallback;
    return text;
}
