#include "fetch/message.h"

static const char *const cause_names[] = {
#define BH_HTTPS_CAUSE(id, text) [BH_HTTPS_##id] = #id,
#include "tables/https_causes.tbl"
#undef BH_HTTPS_CAUSE
};

static const struct bh_field ready_fields[] = {
    BH_F(struct bh_fetch_ready, fault, BH_FIELD_STR),
};

static const struct bh_field ask_fields[] = {
    BH_F(struct bh_fetch_ask, authorization, BH_FIELD_TEXT, .max = BH_HTTPS_HEADER_MAX),
    BH_F(struct bh_fetch_ask, body, BH_FIELD_TEXT, .max = BH_HTTPS_BODY_MAX),
    BH_F(struct bh_fetch_ask, call, BH_FIELD_U64),
    BH_F(struct bh_fetch_ask, certificate, BH_FIELD_TEXT, .max = BH_HTTPS_NAME_MAX),
    BH_F(struct bh_fetch_ask, post, BH_FIELD_BOOL),
    BH_F(struct bh_fetch_ask, url, BH_FIELD_TEXT, .max = BH_HTTPS_URL_MAX),
};

static const struct bh_field answer_fields[] = {
    BH_F(struct bh_fetch_answer, body, BH_FIELD_TEXT, .max = BH_HTTPS_BYTES_MAX),
    BH_F(struct bh_fetch_answer, call, BH_FIELD_U64),
    BH_F_ENUM(struct bh_fetch_answer, cause, cause_names),
    BH_F(struct bh_fetch_answer, max_age_s, BH_FIELD_U32),
    BH_F(struct bh_fetch_answer, status, BH_FIELD_U32),
};

static const struct bh_fields messages[] = {
    [BH_FETCH_MSG_READY] = BH_FIELDS("ready", struct bh_fetch_ready, ready_fields),
    [BH_FETCH_MSG_ASK] = BH_FIELDS("ask", struct bh_fetch_ask, ask_fields),
    [BH_FETCH_MSG_ANSWER] = BH_FIELDS("answer", struct bh_fetch_answer, answer_fields),
};

const struct bh_fields *
bh_fetch_message_fields(uint32_t number)
{
    if (number >= BH_COUNT(messages) || !messages[number].name)
        return NULL;
    return &messages[number];
}
