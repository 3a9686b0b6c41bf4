/* What a reader of the audit log takes along: a proof as a file, and what web/proof.js asks for. */
#include <string.h>

#include "web/headers.h"
#include "web/page.h"
#include "web/question.h"
#include "web/show.h"

static const char *
audit_parameter(const void *self, const char *name)
{
    return bh_page_field(self, name);
}

static bool
audit_is_number(const char *text)
{
    return text[0] && text[strspn(text, "0123456789")] == '\0';
}

void
bh_show_audit_proof(struct bh_page *page)
{
    BH_AUTO(bh_api_response_fini) struct bh_api_response response = { .status = 404 };
    const char *record = bh_page_field(page, "record");
    const char *path = bh_arena_printf(page->request->arena, "/v1/records/%s/proof", record);
    const char *name =
        bh_arena_printf(page->request->arena, "attachment; filename=\"%s.tlog-proof\"", record);

    if (path && name && audit_is_number(record))
        response = bh_page_call(page, BH_GET, path, NULL);
    if (response.status == 401) {
        bh_page_require_sign_in(page);
    } else if (!bh_api_response_is_ok(&response)) {
        bh_page_error(page, response.status);
    } else {
        page->reply->status = 200;
        page->reply->content_type = "text/plain; charset=utf-8";
        bh_reply_header(page->reply, "Content-Disposition", name);
        bh_buf_puts(&page->reply->body, bh_api_response_text(&response, "proof"));
    }
}

void
bh_show_audit_consistency(struct bh_page *page)
{
    struct bh_question *question = bh_arena_alloc(page->request->arena, sizeof *question);

    if (question
        && bh_question_fill("/v1/consistency?old={?old}&new={?new}", "", audit_parameter, page, question))
        bh_page_forward_question(page, question);
    else
        bh_page_error(page, 400);
}
