#include "web/signin_pages.h"

#include <stdio.h>

#include "base/attr.h"
#include "identity/form.h"

enum { ACCOUNT_MAX = 64, PASSWORD_MAX = 1024, CODE_MAX = 32, CODE_SHOWN = 8 };

static void
pages_put_next(struct bh_html *html, const char *next)
{
    if (next[0])
        bh_frame_hidden(html, "next", next);
}

/* A link, because content policy counts where a form is sent on to as its target, and the
 * provider is elsewhere.  Following one begins a sign-in that only this browser can end. */
static void
pages_put_issuer(struct bh_html *html, const struct bh_signin_issuer *issuer, const char *next, bool step_up)
{
    char text[4096];
    struct bh_buf address;

    bh_buf_init_fixed(&address, text, sizeof text);
    bh_buf_puts(&address, "/signin/provider?");
    bh_form_put(&address, "provider", issuer->id);
    if (step_up)
        bh_form_put(&address, "again", "1");
    if (next[0])
        bh_form_put(&address, "next", next);
    bh_html_open(html, "p");
    bh_html_open(html, "a");
    bh_html_attr(html, "class", "button");
    bh_html_attr(html, "href", bh_buf_text(&address) ? text : "/signin");
    bh_html_text(html, step_up ? "Confirm with " : "Sign in with ");
    bh_html_text(html, issuer->name);
    bh_html_close(html, "a");
    bh_html_close(html, "p");
}

static void
pages_put_passkey_form(struct bh_html *html, const struct bh_page_frame *frame, const char *action,
                       const char *next)
{
    bh_frame_passkey_form(html, frame, "get", action, "/signin/passkey/options");
    pages_put_next(html, next);
    bh_frame_button(html, NULL, "Use a passkey");
    bh_html_close(html, "form");
    bh_html_open(html, "noscript");
    bh_html_element(html, "p", "note", "Passkeys need JavaScript.");
    bh_html_close(html, "noscript");
}

static void
pages_put_account_form(struct bh_html *html, const struct bh_signin_view *view)
{
    bool step_up = view->account[0] != '\0';

    bh_html_element(html, "h2", NULL, "With an account of this site");
    bh_frame_form(html, &view->frame, "/signin");
    pages_put_next(html, view->next);
    bh_frame_input(html, &(struct bh_input){ .id = "account",
                                             .label = "Account",
                                             .name = "account",
                                             .autocomplete = "username",
                                             .value = view->account,
                                             .length_max = ACCOUNT_MAX });
    bh_frame_input(html, &(struct bh_input){ .id = "password",
                                             .label = "Password",
                                             .name = "password",
                                             .type = "password",
                                             .autocomplete = "current-password",
                                             .length_max = PASSWORD_MAX,
                                             .focus = step_up });
    bh_frame_input(html, &(struct bh_input){ .id = "code",
                                             .label = "Code",
                                             .name = "code",
                                             .autocomplete = "one-time-code",
                                             .hint = "code-hint",
                                             .length_max = CODE_MAX,
                                             .optional = true });
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_attr(html, "id", "code-hint");
    bh_html_text(html, "Of your authenticator app, or a recovery code.");
    bh_html_close(html, "p");
    bh_frame_button(html, "plain", "Sign in");
    bh_html_close(html, "form");
}

void
bh_signin_page(struct bh_buf *out, struct bh_signin_view *view)
{
    struct bh_html html;

    view->frame.title = "Sign in";
    view->frame.passkeys = view->passkey;
    html = bh_frame_begin(out, &view->frame);
    if (view->passkey)
        pages_put_passkey_form(&html, &view->frame, "/signin/passkey", view->next);
    for (uint32_t i = 0; i < view->issuer_count; i++)
        pages_put_issuer(&html, &view->issuers[i], view->next, false);
    if (view->local)
        pages_put_account_form(&html, view);
    if (!view->local && view->issuer_count == 0)
        bh_html_element(&html, "p", NULL,
                        "Sign-in is not set up: the site file names no identity provider and no account.");
    bh_html_open(&html, "p");
    bh_html_open(&html, "a");
    bh_html_attr(&html, "href", "/enrol");
    bh_html_text(&html, "First visit, with a one-time code");
    bh_html_close(&html, "a");
    bh_html_close(&html, "p");
    bh_frame_end(&html, &view->frame);
}

static void
pages_put_sign_in_link(struct bh_html *html, const char *text)
{
    bh_html_open(html, "p");
    bh_html_open(html, "a");
    bh_html_attr(html, "href", "/signin");
    bh_html_text(html, text);
    bh_html_close(html, "a");
    bh_html_close(html, "p");
}

void
bh_step_up_page(struct bh_buf *out, struct bh_step_up_view *view)
{
    struct bh_html html;

    view->frame.title = "Confirm your identity";
    view->frame.passkeys = view->passkey;
    html = bh_frame_begin(out, &view->frame);
    bh_html_element(&html, "p", NULL, "This action needs a second factor again.");
    if (view->passkey)
        pages_put_passkey_form(&html, &view->frame, "/again/passkey", view->next);
    if (view->code) {
        bh_frame_form(&html, &view->frame, "/again");
        pages_put_next(&html, view->next);
        bh_frame_input(&html, &(struct bh_input){ .id = "code",
                                                  .label = "Code of your authenticator app, "
                                                           "or a recovery code",
                                                  .name = "code",
                                                  .autocomplete = "one-time-code",
                                                  .length_max = CODE_MAX,
                                                  .focus = !view->passkey });
        bh_frame_button(&html, "plain", "Use the code");
        bh_html_close(&html, "form");
    }
    if (view->issuer[0])
        pages_put_issuer(&html, &(struct bh_signin_issuer){ view->issuer, view->issuer }, view->next, true);
    if (!view->passkey && !view->code && !view->issuer[0])
        pages_put_sign_in_link(&html, "This account has none: sign in again instead");
    bh_frame_end(&html, &view->frame);
}

static void
signin_page_put_answer(struct bh_html *html, const struct bh_command_line_view *view, const char *answer,
                       const char *style, const char *label)
{
    bh_frame_form(html, &view->frame, "/sign-in/command-line");
    bh_frame_hidden(html, "challenge", view->challenge);
    bh_frame_hidden(html, "state", view->state);
    bh_frame_hidden(html, "port", view->port);
    bh_frame_hidden(html, "host", view->host);
    bh_frame_hidden(html, "answer", answer);
    bh_frame_button(html, style, label);
    bh_html_close(html, "form");
}

void
bh_command_line_page(struct bh_buf *out, struct bh_command_line_view *view)
{
    char shown[CODE_SHOWN + 1];
    struct bh_html html;

    snprintf(shown, sizeof shown, "%.*s", (int)CODE_SHOWN, view->challenge);
    view->frame.title = "Sign in a terminal";
    html = bh_frame_begin(out, &view->frame);
    bh_html_open(&html, "p");
    bh_html_element(&html, "code", NULL, "bulkhead login");
    bh_html_text(&html, " on ");
    bh_html_element(&html, "strong", NULL, view->host);
    bh_html_text(&html, " wants to sign in as you. Its terminal must show this code:");
    bh_html_close(&html, "p");
    bh_html_element(&html, "p", "code", shown);
    bh_html_element(&html, "p", NULL,
                    "If you did not start it yourself just now, refuse: it would act in your name.");
    bh_html_open(&html, "div");
    bh_html_attr(&html, "class", "choices");
    signin_page_put_answer(&html, view, "no", NULL, "No, refuse");
    signin_page_put_answer(&html, view, "yes", "plain", "Yes, sign it in");
    bh_html_close(&html, "div");
    bh_frame_end(&html, &view->frame);
}

static void
pages_put_new_password(struct bh_html *html)
{
    bh_frame_input(html, &(struct bh_input){ .id = "password",
                                             .label = "New password",
                                             .name = "password",
                                             .type = "password",
                                             .autocomplete = "new-password",
                                             .hint = "advice",
                                             .length_max = PASSWORD_MAX });
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_attr(html, "id", "advice");
    bh_html_text(html, "At least 12 characters. Several words are fine.");
    bh_html_close(html, "p");
    bh_frame_input(html, &(struct bh_input){ .id = "repeated",
                                             .label = "New password again",
                                             .name = "repeated",
                                             .type = "password",
                                             .autocomplete = "new-password",
                                             .length_max = PASSWORD_MAX });
}

void
bh_enroll_page(struct bh_buf *out, struct bh_enroll_view *view)
{
    struct bh_html html;

    view->frame.title = view->code ? "First visit" : "Set a password";
    html = bh_frame_begin(out, &view->frame);
    bh_frame_form(&html, &view->frame, view->code ? "/enrol" : "/account/password");
    if (view->code) {
        bh_frame_input(&html, &(struct bh_input){ .id = "account",
                                                  .label = "Account",
                                                  .name = "account",
                                                  .autocomplete = "username",
                                                  .value = view->account,
                                                  .length_max = ACCOUNT_MAX });
        bh_frame_input(&html, &(struct bh_input){ .id = "code",
                                                  .label = "One-time code",
                                                  .name = "code",
                                                  .autocomplete = "off",
                                                  .length_max = 128 });
    }
    if (view->old)
        bh_frame_input(&html, &(struct bh_input){ .id = "old",
                                                  .label = "Present password",
                                                  .name = "old",
                                                  .type = "password",
                                                  .autocomplete = "current-password",
                                                  .length_max = PASSWORD_MAX });
    pages_put_new_password(&html);
    bh_frame_button(&html, NULL, view->code ? "Continue" : "Set the password");
    bh_html_close(&html, "form");
    bh_frame_end(&html, &view->frame);
}

static const struct {
    uint32_t status;
    const char *title, *sentence;
} errors[] = {
    { 400, "Request not understood",
      "The browser sent something that this page cannot read. Go back and try again." },
    { 401, "Sign in first", "This page is for signed-in users." },
    { 403, "Not allowed", "You may not do this, or the page was open for too long." },
    { 404, "Not found", "There is no such page." },
    { 405, "Method not allowed", "This page does not support that request." },
    { 409, "Conflict", "This was changed at the same time. Reload and try again." },
    { 429, "Too many attempts", "Wait 15 minutes, or ask an admin." },
    { 503, "Unavailable", "The service cannot answer now. Try again in a moment." },
    { 500, "Internal error", "The server failed. The log of the daemon has the cause." },
};

void
bh_error_page(struct bh_buf *out, struct bh_error_view *view)
{
    struct bh_html html;
    size_t i = 0;

    while (i < BH_COUNT(errors) - 1 && errors[i].status != view->status)
        i++;
    view->frame.title = errors[i].title;
    html = bh_frame_begin(out, &view->frame);
    bh_html_element(&html, "p", NULL, errors[i].sentence);
    bh_html_open(&html, "p");
    bh_html_open(&html, "a");
    bh_html_attr(&html, "href", "/");
    bh_html_text(&html, "Go to the overview");
    bh_html_close(&html, "a");
    bh_html_close(&html, "p");
    bh_frame_end(&html, &view->frame);
}

void
bh_signed_out_page(struct bh_buf *out, struct bh_signed_out_view *view)
{
    struct bh_html html;

    view->frame.title = "Signed out";
    html = bh_frame_begin(out, &view->frame);
    bh_html_element(&html, "p", NULL, "You are signed out of this site.");
    if (view->provider[0]) {
        bh_html_open(&html, "p");
        bh_html_text(&html, "You may still be signed in at your organization. On a shared computer, ");
        bh_html_link_away(&html, view->provider, "sign out there, too");
        bh_html_text(&html, ".");
        bh_html_close(&html, "p");
    }
    bh_html_open(&html, "p");
    bh_html_open(&html, "a");
    bh_html_attr(&html, "href", "/signin");
    bh_html_text(&html, "Sign in again");
    bh_html_close(&html, "a");
    bh_html_close(&html, "p");
    bh_frame_end(&html, &view->frame);
}
