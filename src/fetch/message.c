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
    BH_F(struct bh_fetch_request, authorization, BH_FIELD_TEXT, .max = BH_HTTPS_HEADER_MAX),
    BH_F(struct bh_fetch_request, body, BH_FIELD_TEXT, .max = BH_HTTPS_BODY_MAX),
    BH_F(struct bh_fetch_request, call, BH_FIELD_U64),
    BH_F(struct bh_fetch_request, certificate, BH_FIELD_TEXT, .max = BH_HTTPS_NAME_MAX),
    BH_F(struct bh_fetch_request, post, BH_FIELD_BOOL),
    BH_F(struct bh_fetch_request, url, BH_FIELD_TEXT, .max = BH_HTTPS_URL_MAX),
};

static const struct bh_field answer_fields[] = {
    BH_F(struct bh_fetch_response, body, BH_FIELD_TEXT, .max = BH_HTTPS_BYTES_MAX),
    BH_F(struct bh_fetch_response, call, BH_FIELD_U64),
    BH_F_ENUM(struct bh_fetch_response, cause, cause_names),
    BH_F(struct bh_fetch_response, max_age_s, BH_FIELD_U32),
    BH_F(struct bh_fetch_response, status, BH_FIELD_U32),
};

static const struct bh_fields messages[] = {
    [BH_FETCH_MSG_READY] = BH_FIELDS("ready", struct bh_fetch_ready, ready_fields),
    [BH_FETCH_MSG_REQUEST] = BH_FIELDS("ask", struct bh_fetch_request, ask_fields),
    [BH_FETCH_MSG_RESPONSE] = BH_FIELDS("answer", struct bh_fetch_response, answer_fields),
};

const struct bh_fields *
bh_fetch_message_fields(uint32_t number)
{
    if (number >= BH_COUNT(messages) || !messages[number].name)
        return NULL;
    return &messages[number];
}
