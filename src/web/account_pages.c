#include "web/account_pages.h"

#include "web/qr.h"
#include "web/show.h"

static void
account_page_put_time(struct bh_html *html, const char *what, bh_ns at)
{
    bh_html_text(html, what);
    bh_html_text(html, " ");
    bh_show_time(html, at);
}

/* "Remove Ada's phone", for screen readers: there are several such buttons. */
static void
pages_put_button_form(struct bh_html *html, const struct bh_page_frame *frame, struct bh_button_form button,
                      const char *name)
{
    char text[256];
    struct bh_buf about;

    bh_buf_init_fixed(&about, text, sizeof text);
    bh_buf_puts(&about, button.label);
    bh_buf_putc(&about, ' ');
    bh_buf_puts(&about, name);
    button.about = bh_buf_text(&about);
    if (!button.about)
        button.about = button.label;
    bh_frame_button_form(html, frame, &button);
}

static void
pages_put_passkeys(struct bh_html *html, const struct bh_account_view *view)
{
    bh_html_open(html, "ul");
    for (uint32_t i = 0; i < view->passkey_count; i++) {
        const struct bh_passkey_view *passkey = &view->passkeys[i];

        bh_html_open(html, "li");
        bh_html_element(html, "strong", NULL, passkey->name);
        bh_html_open(html, "p");
        bh_html_attr(html, "class", "note");
        account_page_put_time(
            html, passkey->synced ? "Passkey on several devices, added" : "Passkey on one device, added",
            passkey->created);
        account_page_put_time(html, ", used", passkey->used);
        bh_html_close(html, "p");
        pages_put_button_form(
            html, &view->frame,
            (struct bh_button_form){ "/account/passkey/remove", "id", passkey->id, "Remove", NULL },
            passkey->name);
        bh_html_close(html, "li");
    }
    bh_html_close(html, "ul");
    bh_frame_passkey_form(html, &view->frame, "create", "/account/passkey", "/account/passkey/options");
    bh_frame_input(html, &(struct bh_input){ .id = "name",
                                             .label = "Name of a new passkey",
                                             .name = "name",
                                             .autocomplete = "off",
                                             .length_max = 64,
                                             .optional = true });
    bh_frame_button(html, NULL, "Add a passkey");
    bh_html_close(html, "form");
}

static void
pages_put_totp(struct bh_html *html, const struct bh_account_view *view)
{
    if (view->totp) {
        bh_html_element(html, "p", NULL, "An authenticator app is set up.");
        pages_put_button_form(html, &view->frame,
                              (struct bh_button_form){ "/account/totp/remove", "id", "totp", "Remove", NULL },
                              "the authenticator app");
        return;
    }
    bh_frame_form(html, &view->frame, "/account/totp/new");
    bh_frame_button(html, "plain", "Add an authenticator app");
    bh_html_close(html, "form");
}

static void
pages_put_recovery(struct bh_html *html, const struct bh_account_view *view)
{
    bh_html_open(html, "p");
    bh_html_text(html, "Recovery codes left: ");
    bh_html_u64(html, view->recovery_left);
    bh_html_text(html, ".");
    bh_html_close(html, "p");
    bh_frame_form(html, &view->frame, "/account/recovery");
    bh_frame_button(html, "plain", "Create new recovery codes");
    bh_html_close(html, "form");
}

static void
pages_put_tokens(struct bh_html *html, const struct bh_account_view *view)
{
    bh_html_element(html, "h2", NULL, "API tokens");
    if (view->token_count == 0)
        bh_html_element(html, "p", NULL, "There is none: no program acts for you.");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, "A program acts for you with a token: ");
    bh_html_element(html, "code", NULL, "bulkhead token create --note NAME --lifetime 30d");
    bh_html_text(html, " shows its secret once. You yourself sign in with ");
    bh_html_element(html, "code", NULL, "bulkhead login");
    bh_html_text(html, ", which makes a session.");
    bh_html_close(html, "p");
    bh_html_open(html, "ul");
    for (uint32_t i = 0; i < view->token_count; i++) {
        const struct bh_token_view *token = &view->tokens[i];

        bh_html_open(html, "li");
        bh_html_element(html, "strong", NULL, token->name);
        bh_html_open(html, "p");
        bh_html_attr(html, "class", "note");
        account_page_put_time(html, "Created", token->created);
        account_page_put_time(html, ", used", token->used);
        account_page_put_time(html, ", expires", token->expires);
        bh_html_close(html, "p");
        pages_put_button_form(
            html, &view->frame,
            (struct bh_button_form){ "/account/token/revoke", "id", token->id, "Revoke", NULL }, token->name);
        bh_html_close(html, "li");
    }
    bh_html_close(html, "ul");
}

static void
pages_put_sessions(struct bh_html *html, const struct bh_account_view *view)
{
    bh_html_element(html, "h2", NULL, "Sessions");
    bh_html_open(html, "ul");
    for (uint32_t i = 0; i < view->session_count; i++) {
        const struct bh_session_view *session = &view->sessions[i];

        bh_html_open(html, "li");
        bh_html_element(html, "strong", NULL, session->from);
        if (session->present)
            bh_html_text(html, " (this one)");
        bh_html_open(html, "p");
        bh_html_attr(html, "class", "note");
        bh_html_text(html, session->how);
        account_page_put_time(html, ", started", session->begun);
        account_page_put_time(html, ", seen", session->last_used);
        bh_html_close(html, "p");
        if (!session->present)
            pages_put_button_form(
                html, &view->frame,
                (struct bh_button_form){ "/account/session/end", "id", session->id, "End", NULL },
                session->from);
        bh_html_close(html, "li");
    }
    bh_html_close(html, "ul");
}

void
bh_account_page(struct bh_buf *out, struct bh_account_view *view)
{
    struct bh_html html;

    view->frame.title = "Your account";
    view->frame.passkeys = true;
    view->frame.times = true;
    html = bh_frame_begin(out, &view->frame);
    bh_html_element(&html, "h2", NULL, "Second factors");
    pages_put_passkeys(&html, view);
    pages_put_totp(&html, view);
    pages_put_recovery(&html, view);
    if (view->local) {
        bh_html_element(&html, "h2", NULL, "Password");
        bh_html_open(&html, "p");
        bh_html_open(&html, "a");
        bh_html_attr(&html, "href", "/account/password");
        bh_html_text(&html, "Change the password");
        bh_html_close(&html, "a");
        bh_html_close(&html, "p");
    }
    pages_put_tokens(&html, view);
    pages_put_sessions(&html, view);
    bh_frame_end(&html, &view->frame);
}

void
bh_totp_page(struct bh_buf *out, struct bh_totp_view *view)
{
    struct bh_html html;

    view->frame.title = "Add an authenticator app";
    html = bh_frame_begin(out, &view->frame);
    bh_html_element(&html, "p", NULL,
                    "Scan this picture with the app, or type the secret into it. Neither is shown again.");
    bh_qr_put(&html, view->address, "The secret as a QR code");
    bh_html_open(&html, "p");
    bh_html_text(&html, "Secret: ");
    bh_html_element(&html, "span", "secret", view->secret);
    bh_html_close(&html, "p");
    bh_frame_form(&html, &view->frame, "/account/totp");
    bh_frame_input(&html, &(struct bh_input){ .id = "code",
                                              .label = "Code that the app shows now",
                                              .name = "code",
                                              .autocomplete = "one-time-code",
                                              .inputmode = "numeric",
                                              .length_max = 8,
                                              .focus = true });
    bh_frame_button(&html, NULL, "Add it");
    bh_html_close(&html, "form");
    bh_frame_end(&html, &view->frame);
}

void
bh_codes_page(struct bh_buf *out, struct bh_codes_view *view)
{
    struct bh_html html;

    view->frame.title = "Recovery codes";
    html = bh_frame_begin(out, &view->frame);
    bh_html_element(
        &html, "p", NULL,
        "Each works once in place of a second factor. Print them or write them down: they are not shown again, and earlier codes no longer work.");
    bh_html_open(&html, "ul");
    bh_html_attr(&html, "class", "codes");
    for (uint32_t i = 0; i < view->count; i++)
        bh_html_element(&html, "li", NULL, view->codes[i]);
    bh_html_close(&html, "ul");
    bh_html_open(&html, "p");
    bh_html_open(&html, "a");
    bh_html_attr(&html, "href", "/account");
    bh_html_text(&html, "Done");
    bh_html_close(&html, "a");
    bh_html_close(&html, "p");
    bh_frame_end(&html, &view->frame);
}
