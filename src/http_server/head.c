#include "http_server/head.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/assert.h"

#if MHD_VERSION >= 0x00097002
typedef enum MHD_Result result;
#else
typedef int result;
#endif

/* Since 1.0 the library refuses other ends of lines than CR LF, and continued lines, when it is
 * asked to be strict.  Before, it takes them; but it leaves the lines where it received them, with
 * zeros over their ends.  So each line must begin two bytes behind the one before it. */
#if MHD_VERSION < 0x01000000
enum { LINES_STAND_AS_RECEIVED = 1 };
#else
enum { LINES_STAND_AS_RECEIVED = 0 };
#endif

/* Fields of one value, of which only the first would be read. */
static const char *const singles[] = {
    MHD_HTTP_HEADER_AUTHORIZATION,
    MHD_HTTP_HEADER_CONTENT_TYPE,
    MHD_HTTP_HEADER_COOKIE,
    MHD_HTTP_HEADER_ORIGIN,
    "Idempotency-Key",
    "Sec-Fetch-Site",
};
enum { SINGLES = sizeof singles / sizeof singles[0] };

struct head {
    const char *next; /* where the next line begins, if all is well */
    uint32_t hosts, lengths;
    bool met[SINGLES];
    bool strict; /* so far */
};

static bool
is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~";

    for (const char *at = name; *at; at++) {
        char c = *at;

        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
              || strchr(others, c)))
            return false;
    }
    return name[0];
}

static bool
head_is_plain(const char *value)
{
    for (; *value; value++)
        if (((unsigned char)*value < 0x20 && *value != '\t') || *value == 0x7f)
            return false;
    return true;
}

/* A coding of the body other than this one is not undone here, and a reader that passes over it
 * takes the body for the next request. */
static bool
is_coding(const char *name)
{
    return strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0;
}

static bool
is_length(const char *name)
{
    return strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 || is_coding(name);
}

/* Whether the field may stand here, as no other of its name did before. */
static bool
head_meets_once(struct head *head, const char *name)
{
    for (uint32_t i = 0; i < SINGLES; i++)
        if (strcasecmp(name, singles[i]) == 0) {
            bool again = head->met[i];

            head->met[i] = true;
            return !again;
        }
    return true;
}

static result
head_check_field(void *self, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct head *head = self;

    if (!value)
        value = "";
    head->strict = head->strict && is_token(name) && head_is_plain(value) && head_meets_once(head, name)
                   && (!is_coding(name) || strcasecmp(value, "chunked") == 0)
                   && (!LINES_STAND_AS_RECEIVED || name == head->next);
    head->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    head->lengths += is_length(name);
    head->next = value + strlen(value) + 2;
    return MHD_YES;
}

/* One blank between the parts: where there is more, a NUL has cut one of them short. */
static bool
line_is_whole(const struct bh_head_line *line)
{
    return line->target == line->method + strlen(line->method) + 1 && line->version == line->target_end + 1;
}

bool
bh_head_is_strict(struct MHD_Connection *mhd, const struct bh_head_line *line)
{
    const char *version = line->version;
    struct head head = { .next = version + strlen(version) + 2, .strict = true };

    if (strncmp(version, "HTTP/1.", 7) != 0) /* nor does it lie anywhere */
        return false;
    if (LINES_STAND_AS_RECEIVED && !line_is_whole(line))
        return false;
    (void)MHD_get_connection_values(mhd, MHD_HEADER_KIND, head_check_field, &head);
    if (!head.strict || head.hosts > 1 || head.lengths > 1)
        return false;
    if (head.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0)
        return false;
    /* the empty line behind the last one: what is there would be the next request's */
    return !LINES_STAND_AS_RECEIVED || (head.next[-1] == 0 && head.next[0] == 0 && head.next[1] == 0);
}
