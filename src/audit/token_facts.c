#include "audit/token_facts.h"

#include <string.h>

#include "base/fields.h"
#include "base/json.h"

static const char opening[] = "{\"token\":";

static const struct bh_field facts_fields[] = {
    BH_F(struct bh_token_facts, expires_ns, BH_FIELD_NS),
    BH_F(struct bh_token_facts, principal, BH_FIELD_U32),
    BH_F(struct bh_token_facts, scopes, BH_FIELD_TEXT),
};
static const struct bh_fields fields = BH_FIELDS("token", struct bh_token_facts, facts_fields);

void
bh_token_facts_put(struct bh_buf *out, const struct bh_token_facts *facts)
{
    struct bh_token_facts shown = *facts;

    if (shown.scopes && !*shown.scopes)
        shown.scopes = NULL;
    bh_buf_puts(out, opening);
    bh_json_encode(out, &fields, &shown);
    bh_buf_putc(out, '}');
}

bool
bh_token_facts_is(const char *ev_json)
{
    return ev_json && strncmp(ev_json, opening, strlen(opening)) == 0;
}
