#include "api/audit/record_outcome.h"

#include <inttypes.h>
#include <string.h>

#include "base/attr.h"
#include "base/buf.h"
#include "base/err.h"

/* Events that answer, and which member of them says how it went; left out, it is "ok". */
static const struct {
    const char *event, *member;
    /* clang-format off */
} answers[] = {
    { "carved", "outcome" },    { "checked", "outcome" },  { "destroyed", "outcome" },
    { "ended", "cause" },       { "resumed", "outcome" },  { "serviced", "outcome" },
    { "started", "outcome" },   { "suspended", "outcome" },
};
/* clang-format on */

static const char *
member_of(const char *event)
{
    for (size_t i = 0; i < BH_COUNT(answers); i++)
        if (strcmp(answers[i].event, event) == 0)
            return answers[i].member;
    return NULL;
}

static bool
find_number(struct bh_slice event, const char *key, uint64_t *ret_number)
{
    struct bh_slice value;

    return bh_slice_get(event, key, &value) && bh_slice_u64(value, ret_number);
}

const char *
bh_record_outcome(struct bh_slice leaf, char ret_text[BH_RECORD_OUTCOME_SIZE])
{
    char name[24], word[40];
    struct bh_slice events, event, value;
    const char *member;
    struct bh_buf text;
    uint64_t number;

    if (!bh_slice_get(leaf, "ev", &events) || !bh_slice_first_key(events, name, sizeof name, &event)
        || !(member = member_of(name)))
        return NULL;
    if (!bh_slice_get(event, member, &value))
        memcpy(word, "ok", sizeof "ok");
    else if (!bh_slice_str(value, word, sizeof word))
        return NULL;
    bh_buf_init_fixed(&text, ret_text, BH_RECORD_OUTCOME_SIZE);
    bh_buf_puts(&text, word);
    if (find_number(event, "rc", &number) && number > 0)
        bh_buf_printf(&text, ": %s", bh_rc_name((bh_rc)number));
    if (find_number(event, "exit_status", &number) && number > 0)
        bh_buf_printf(&text, ", status %" PRIu64, number);
    return bh_buf_text(&text);
}
