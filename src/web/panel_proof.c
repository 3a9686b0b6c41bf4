/* One record of the audit log as it is hashed, and the check of its proof: in the reader's browser
 * (web/proof.js), and by commands that trust nothing of this server. */
#include <inttypes.h>
#include <stdio.h>

#include "base/attr.h"
#include "web/assets.h"
#include "web/panel.h"
#include "web/show.h"

enum { TEXT_MAX = 256 };

static void
proof_put_leaf(struct bh_html *html, bh_json_value proof)
{
    bh_html_element(
        html, "p", NULL,
        "This is the record as it is hashed and signed. What stands above is how this server reads "
        "it: names are from its tables, reasons and texts are unsealed.");
    bh_html_open(html, "pre");
    bh_html_attr(html, "id", "leaf");
    bh_html_text(html, bh_show_text_of(proof, "leaf"));
    bh_html_close(html, "pre");
}

static void
proof_put_keys_input(struct bh_html *html)
{
    bh_html_open(html, "label");
    bh_html_attr(html, "for", "keys");
    bh_html_text(html, "Verifier key: what audit.vkey says, from a copy that this server did not send");
    bh_html_close(html, "label");
    bh_html_open(html, "textarea");
    bh_html_attr(html, "id", "keys");
    bh_html_attr(html, "rows", "2");
    bh_html_attr(html, "autocomplete", "off");
    bh_html_attr(html, "spellcheck", "false");
    bh_html_attr(html, "aria-describedby", "keys-hint");
    bh_html_close(html, "textarea");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_attr(html, "id", "keys-hint");
    bh_html_text(html, "Without one the key that this server shows is taken. That proves that the server "
                       "agrees with itself, and not that it shows everybody the same log.");
    bh_html_close(html, "p");
}

static void
proof_put_button(struct bh_html *html, const char *mark, const char *class, const char *label)
{
    bh_html_open(html, "button");
    bh_html_attr(html, "type", "button");
    if (class)
        bh_html_attr(html, "class", class);
    bh_html_flag(html, mark);
    bh_html_text(html, label);
    bh_html_close(html, "button");
}

/* proof.js shows it, and fills the list. */
static void
proof_put_check(struct bh_html *html, bh_json_value proof)
{
    char number[24];

    snprintf(number, sizeof number, "%" PRIu64, bh_show_number_of(proof, "index"));
    bh_html_element(html, "h3", NULL, "Check this record in your browser");
    bh_html_open(html, "p");
    bh_html_attr(html, "id", "proof-needs-script");
    bh_html_text(html, "This check needs script. Without it, use the command below.");
    bh_html_close(html, "p");
    bh_html_open(html, "div");
    bh_html_attr(html, "id", "proof-check");
    bh_html_attr(html, "data-record", number);
    bh_html_flag(html, "hidden");
    proof_put_keys_input(html);
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "choices");
    proof_put_button(html, "data-run", NULL, "Check the record");
    proof_put_button(html, "data-forget", "plain", "Forget the checkpoint that this browser saw");
    bh_html_close(html, "p");
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_flag(html, "data-memory");
    bh_html_close(html, "p");
    bh_html_open(html, "p");
    bh_html_attr(html, "role", "status");
    bh_html_flag(html, "data-verdict");
    bh_html_close(html, "p");
    bh_html_open(html, "ol");
    bh_html_attr(html, "class", "steps");
    bh_html_close(html, "ol");
    bh_html_close(html, "div");
}

static void
proof_put_script(struct bh_html *html)
{
    bh_html_open(html, "p");
    bh_html_attr(html, "class", "note");
    bh_html_text(html, "This server also sent the script that checks, ");
    bh_html_open(html, "a");
    bh_html_attr(html, "href", bh_asset_path("proof.js"));
    bh_html_text(html, "proof.js");
    bh_html_close(html, "a");
    bh_html_text(html, ". Its SHA-256 digest is ");
    bh_html_element(html, "code", NULL, bh_asset_digest("proof.js"));
    bh_html_text(html, ", as that of web/proof.js in Bulkhead's sources. A server that lies could send a "
                       "different script: the commands below trust nothing that it sends.");
    bh_html_close(html, "p");
}

static void
proof_put_commands(struct bh_html *html, bh_json_value proof)
{
    uint64_t index = bh_show_number_of(proof, "index");
    char text[TEXT_MAX];

    bh_html_element(html, "h3", NULL, "Check it without trust in this server");
    bh_html_open(html, "p");
    snprintf(text, sizeof text, "/audit/proof?record=%" PRIu64, index);
    bh_html_open(html, "a");
    bh_html_attr(html, "href", text);
    bh_html_flag(html, "download");
    snprintf(text, sizeof text, "Download the proof, %" PRIu64 ".tlog-proof", index);
    bh_html_text(html, text);
    bh_html_close(html, "a");
    bh_html_text(html, ", and take audit.vkey from the daemon's machine or from an auditor. Then, anywhere:");
    bh_html_close(html, "p");
    snprintf(text, sizeof text,
             "bulkhead audit check %" PRIu64 ".tlog-proof --vkey audit.vkey\n"
             "python3 tools/verify_audit.py --proof %" PRIu64 ".tlog-proof --vkey audit.vkey",
             index, index);
    bh_html_open(html, "pre");
    bh_html_text(html, text);
    bh_html_close(html, "pre");
    bh_html_element(html, "p", "note",
                    "The second is a verifier written apart from Bulkhead, in Python without any library.");
}

void
bh_panel_proof(struct bh_html *html, const struct bh_panel_call *call)
{
    proof_put_leaf(html, call->data);
    proof_put_check(html, call->data);
    proof_put_script(html);
    proof_put_commands(html, call->data);
}
