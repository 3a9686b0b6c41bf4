#include "cli/options/man.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "model/role.h"
#include "model/site.h"
#include "model/spec.h"

enum { FIELD_DEPTH_MAX = 4, ROLE_VERBS_BYTES = 4096 };

/* A parameter of either configuration file, as text. */
struct man_parameter {
    const char *name, *standard, *doc, *unit;
};

#define QUOTED(...) #__VA_ARGS__
static const struct man_parameter daemon_parameters[] = {
#define BH_PARAM(name, kind, low, high, value, sentence) { #name, value, sentence, "" },
#include "tables/daemon_params.tbl"
#undef BH_PARAM
};
static const struct man_parameter node_parameters[] = {
#define BH_NODE_PARAM(name, type, unit, min, max, value, sentence) { #name, QUOTED(value), sentence, unit },
#include "tables/node_params.tbl"
#undef BH_NODE_PARAM
};

/* ---- troff ---- */

/* Text that troff shall not interpret. */
static void
man_put(struct bh_buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '\\' || *text == '-')
            bh_buf_putc(out, '\\');
        bh_buf_puts(out, *text == '\\' ? "e" : (const char[]){ *text, '\0' });
    }
}

/* A line of text; a dot at its beginning would be a macro. */
static void
man_put_line(struct bh_buf *out, const char *text)
{
    if (*text == '.' || *text == '\'')
        bh_buf_puts(out, "\\&");
    man_put(out, text);
    bh_buf_putc(out, '\n');
}

static void
man_put_title(struct bh_buf *out, const char *name, const char *section, const char *summary)
{
    bh_buf_puts(out, ".\\\" made from tables/, not by hand\n.TH ");
    for (const char *c = name; *c; c++)
        bh_buf_putc(out, (char)toupper((unsigned char)*c));
    bh_buf_printf(out, " %s \"\" \"Bulkhead\" \"Bulkhead\"\n.SH NAME\n", section);
    man_put(out, name);
    bh_buf_puts(out, " \\- ");
    man_put_line(out, summary);
}

static void
man_put_section(struct bh_buf *out, const char *title)
{
    bh_buf_printf(out, ".SH %s\n", title);
}

static void
man_put_paragraph(struct bh_buf *out, const char *text)
{
    bh_buf_puts(out, ".PP\n");
    man_put_line(out, text);
}

/* A term and what it means. */
static void
man_put_term(struct bh_buf *out, const char *term, const char *value, const char *doc)
{
    bh_buf_puts(out, ".TP\n\\fB");
    man_put(out, term);
    bh_buf_puts(out, "\\fR");
    if (*value) {
        bh_buf_puts(out, " \\fI");
        man_put(out, value);
        bh_buf_puts(out, "\\fR");
    }
    bh_buf_putc(out, '\n');
    man_put_line(out, doc);
}

static void
man_put_see_also(struct bh_buf *out, const char *pages)
{
    man_put_section(out, "SEE ALSO");
    man_put_line(out, pages);
}

/* ---- bulkhead(1) ---- */

static void
man_put_option(struct bh_buf *out, const struct bh_option *option)
{
    bh_buf_puts(out, ".TP\n");
    if (option->letter)
        bh_buf_printf(out, "\\fB\\-%c\\fR, ", option->letter);
    bh_buf_puts(out, "\\fB\\-\\-");
    man_put(out, option->name);
    bh_buf_puts(out, "\\fR");
    if (*option->value) {
        bh_buf_puts(out, " \\fI");
        man_put(out, option->value);
        bh_buf_puts(out, "\\fR");
    }
    bh_buf_putc(out, '\n');
    man_put_line(out, option->doc);
}

static void
man_put_options(struct bh_buf *out, const char *list)
{
    for (uint32_t i = 0; i < BH_OPTIONS; i++) {
        const char *name = bh_cli_options[i].name;

        if (bh_words_have(list, ' ', name, strlen(name)))
            man_put_option(out, &bh_cli_options[i]);
    }
}

static void
man_put_command(struct bh_buf *out, const struct bh_cli_command *command)
{
    bh_buf_puts(out, ".SS \"bulkhead ");
    man_put(out, command->name);
    bh_buf_printf(out, "%s%s", *command->options ? " [OPTION...]" : "", *command->arguments ? " " : "");
    man_put(out, command->arguments);
    bh_buf_puts(out, "\"\n");
    bh_buf_putc(out, (char)toupper((unsigned char)command->summary[0]));
    man_put(out, command->summary + 1);
    bh_buf_puts(out, ".\n");
    if (*command->details)
        man_put_line(out, command->details);
    man_put_options(out, command->options);
}

static void
man_put_statuses(struct bh_buf *out)
{
    static const struct {
        int status;
        const char *doc;
        /* clang-format off */
    } statuses[] = {
        { 0, "done" },
        { 1, "audit verify found a fault; a check of doctor failed" },
        { 2, "no such command or option, too few or too many arguments, or a value that an option does not "
             "take" },
        { 3, "the request is invalid: an argument is not a job id or not a valid file, or the object's "
             "state does not allow it" },
        { 4, "denied, or not signed in" },
        { 5, "no such object" },
        { 6, "a quota would never allow it" },
        { 7, "still pending when the time of --wait passed" },
        { 8, "the service is not available" },
        { 9, "the job failed without a status of its own" },
    };
    /* clang-format on */
    char number[8];

    man_put_section(out, "EXIT STATUS");
    man_put_line(
        out,
        "bulkhead run exits with the job's own status, or 128 plus the number of the signal that ended the "
        "job. Everything else:");
    for (size_t i = 0; i < BH_COUNT(statuses); i++) {
        snprintf(number, sizeof number, "%d", statuses[i].status);
        man_put_term(out, number, "", statuses[i].doc);
    }
}

void
bh_man_bulkhead(struct bh_buf *out)
{
    man_put_title(out, "bulkhead", "1", "share GPUs between tenants who do not trust each other");
    man_put_section(out, "SYNOPSIS");
    man_put_line(out, "bulkhead [OPTION...] COMMAND [ARGUMENT...]");
    man_put_section(out, "DESCRIPTION");
    man_put_line(
        out,
        "bulkhead connects to bulkheadd(8) over its unix socket, where the caller's Unix identity counts, "
        "or over HTTPS with an API token.");
    man_put_section(out, "COMMANDS");
    for (uint32_t i = 0; i < BH_COMMANDS; i++)
        man_put_command(out, &bh_cli_commands[i]);
    man_put_section(out, "OPTIONS OF EVERY COMMAND");
    man_put_options(out, bh_cli_global_options);
    man_put_section(out, "ENVIRONMENT");
    man_put_term(out, "BULKHEAD_SOCKET", "", "as --socket");
    man_put_term(out, "BULKHEAD_SERVER", "", "as --server");
    man_put_term(out, "BULKHEAD_TENANT", "", "the tenant of jobs that name none");
    man_put_term(out, "BULKHEAD_TOKEN", "", "the API token for HTTPS; overrides a stored session");
    man_put_term(out, "BULKHEAD_CA_FILE", "", "as --ca-file");
    man_put_term(out, "BULKHEAD_FINGERPRINT", "", "as --fingerprint");
    man_put_term(out, "BULKHEAD_CLIENT_CERT", "", "as --client-cert");
    man_put_term(out, "BULKHEAD_CLIENT_KEY", "", "as --client-key");
    man_put_section(out, "FILES");
    man_put_term(
        out, "$XDG_STATE_HOME/bulkhead/sessions, ~/.local/state/bulkhead/sessions", "",
        "the sessions that login stores, one entry for each server; not used when others can read it");
    man_put_statuses(out);
    man_put_see_also(out, "bulkheadd(8), bulkhead-node(8), bulkhead-site(5), bulkhead-job(5)");
}

/* ---- the daemons ---- */

void
bh_man_bulkheadd(struct bh_buf *out)
{
    man_put_title(out, "bulkheadd", "8", "the Bulkhead control daemon");
    man_put_section(out, "SYNOPSIS");
    man_put_line(out, "bulkheadd [--config FILE] [--set KEY=VALUE]... [--rotate-root FILE] [--allow-root]");
    man_put_section(out, "DESCRIPTION");
    man_put_line(
        out,
        "Serves the API on a unix socket and on HTTPS, decides which job gets which partition of which GPU "
        "and when, and journals every decision. Runs in the foreground "
        "as a user of its own, never as root.");
    man_put_section(out, "OPTIONS");
    man_put_term(out, "--config", "FILE", "configuration, default /etc/bulkhead/bulkheadd.conf");
    man_put_term(
        out, "--rotate-root", "FILE",
        "wrap the key tree with the root key in FILE, 32 bytes, and exit; the daemon must not run.  For "
        "sites whose root key is a systemd credential, which FILE must then replace");
    man_put_term(out, "--set", "KEY=VALUE", "set one parameter, overriding the file");
    man_put_term(out, "--allow-root", "", "run as root anyway");
    man_put_term(out, "--help-config", "", "explain every parameter and exit");
    man_put_section(out, "SIGNALS");
    man_put_term(out, "SIGTERM, SIGINT", "", "end in order; jobs keep running");
    man_put_see_also(out, "bulkheadd.conf(5), bulkhead(1), bulkhead-node(8)");
}

void
bh_man_node(struct bh_buf *out)
{
    man_put_title(out, "bulkhead-node", "8", "carve GPUs and run jobs for bulkheadd");
    man_put_section(out, "SYNOPSIS");
    man_put_line(out, "bulkhead-node --config FILE [--log-json]");
    man_put_section(out, "DESCRIPTION");
    man_put_line(
        out,
        "Runs as root without a network listener and carries out the orders of bulkheadd(8), within what "
        "node.conf(5) allows: it creates and destroys GPU instances and runs jobs in sandboxes, each under "
        "a keeper that outlives it.");
    man_put_section(out, "OPTIONS");
    man_put_term(out, "--config", "FILE", "node.conf; only root may be able to write it");
    man_put_term(out, "--log-json", "", "log lines as JSON");
    man_put_term(out, "--help-config", "", "the parameters of node.conf");
    man_put_section(out, "SIGNALS");
    man_put_term(out, "SIGTERM, SIGINT", "", "end; jobs keep running and the next start finds them");
    man_put_see_also(out, "node.conf(5), bulkhead(1), bulkheadd(8)");
}

/* ---- configuration files ---- */

static void
man_put_parameters(struct bh_buf *out, const struct man_parameter *rows, size_t count)
{
    man_put_section(out, "PARAMETERS");
    for (size_t i = 0; i < count; i++) {
        man_put_term(out, rows[i].name, rows[i].unit, rows[i].doc);
        bh_buf_puts(out, ".br\nDefault: ");
        man_put_line(out, strcmp(rows[i].standard, "\"\"") == 0 ? "none" : rows[i].standard);
    }
}

static const char conf_form[] =
    "Lines of the form key = value; # begins a comment. Unknown keys, repeated keys and values "
    "outside their range are errors that name the line.";

void
bh_man_bulkheadd_conf(struct bh_buf *out)
{
    man_put_title(out, "bulkheadd.conf", "5", "configuration of bulkheadd");
    man_put_section(out, "DESCRIPTION");
    man_put_line(out, conf_form);
    man_put_parameters(out, daemon_parameters, BH_COUNT(daemon_parameters));
    man_put_see_also(out, "bulkheadd(8)");
}

void
bh_man_node_conf(struct bh_buf *out)
{
    man_put_title(out, "node.conf", "5", "what Bulkhead may do on this machine");
    man_put_section(out, "DESCRIPTION");
    man_put_line(out, conf_form);
    man_put_paragraph(
        out, "The file belongs to root and only root may be able to write it: every order of bulkheadd is "
             "checked against it.");
    man_put_parameters(out, node_parameters, BH_COUNT(node_parameters));
    man_put_see_also(out, "bulkhead-node(8)");
}

/* What an installed system sets: the node's socket and sandboxes lie in a folder that
 * only root may change, and jobs beside the units, not within one. */
static const struct {
    const char *file, *name, *value;
} installed[] = {
    { "bulkheadd.conf", "node_socket", "/run/bulkhead/node/node.sock" },
    { "node.conf", "run_dir", "/run/bulkhead/node" },
    { "node.conf", "socket", "/run/bulkhead/node/node.sock" },
    { "node.conf", "daemon_user", "bulkhead" },
    { "node.conf", "cgroup_parent", "/bulkhead.slice/bulkhead-jobs.service/jobs" },
};

static const char *
man_installed_value(const char *file, const char *name)
{
    for (size_t i = 0; i < BH_COUNT(installed); i++)
        if (strcmp(installed[i].file, file) == 0 && strcmp(installed[i].name, name) == 0)
            return installed[i].value;
    return NULL;
}

static void
man_put_example(struct bh_buf *out, const char *file, const struct man_parameter *rows, size_t count)
{
    bh_buf_printf(out, "# %s: every parameter with its default; %s(5) says the same.\n", file, file);
    for (size_t i = 0; i < count; i++) {
        const char *value = rows[i].standard, *other = man_installed_value(file, rows[i].name);
        size_t length = strlen(value);
        bool quoted = length >= 2 && *value == '"';

        bh_buf_printf(out, "\n# %s%s%s%s\n#%s = ", rows[i].doc, *rows[i].unit ? " (" : "", rows[i].unit,
                      *rows[i].unit ? ")" : "", rows[i].name);
        bh_buf_put(out, value + quoted, length - 2 * (size_t)quoted);
        bh_buf_putc(out, '\n');
        if (other)
            bh_buf_printf(out, "%s = %s\n", rows[i].name, other);
    }
}

void
bh_man_example_bulkheadd(struct bh_buf *out)
{
    man_put_example(out, "bulkheadd.conf", daemon_parameters, BH_COUNT(daemon_parameters));
}

void
bh_man_example_node(struct bh_buf *out)
{
    man_put_example(out, "node.conf", node_parameters, BH_COUNT(node_parameters));
}

/* ---- the site file and the job file ---- */

static void
man_put_names(struct bh_buf *out, const struct bh_field *field)
{
    bh_buf_puts(out, " One of");
    for (uint32_t i = 0; i < field->name_count; i++)
        if (field->names[i]) {
            bh_buf_putc(out, ' ');
            man_put(out, field->names[i]);
        }
    bh_buf_putc(out, '.');
}

static void
man_put_field(struct bh_buf *out, const struct bh_field *field)
{
    static const char *const kinds[] = {
        [BH_FIELD_BOOL] = "true|false",   [BH_FIELD_U32] = "number",     [BH_FIELD_I32] = "number",
        [BH_FIELD_U64] = "number",        [BH_FIELD_NS] = "ns",          [BH_FIELD_ENUM] = "name",
        [BH_FIELD_STR] = "text",          [BH_FIELD_TEXT] = "text",      [BH_FIELD_TEXTS] = "[text...]",
        [BH_FIELD_HEX] = "hex",           [BH_FIELD_STRUCT] = "mapping", [BH_FIELD_ARRAY] = "[mapping...]",
        [BH_FIELD_LIST] = "[mapping...]",
    };

    bh_buf_printf(out, ".TP\n\\fB%s\\fR \\fI%s\\fR\n\\&", field->name, kinds[field->kind]);
    man_put(out, field->doc ? field->doc : "");
    bh_buf_putc(out, '.');
    if (field->flags & BH_FIELD_REQUIRED)
        bh_buf_puts(out, " Required.");
    if (field->names)
        man_put_names(out, field);
    bh_buf_putc(out, '\n');
}

/* A mapping's keys, then those of the mappings within. */
static void
man_put_fields(struct bh_buf *out, const struct bh_fields *fields, const char *title, uint32_t depth)
{
    bh_buf_puts(out, ".SS \"");
    man_put(out, title);
    bh_buf_puts(out, "\"\n");
    for (uint32_t i = 0; i < fields->count; i++)
        if (!(fields->fields[i].flags & BH_FIELD_DEPRECATED))
            man_put_field(out, &fields->fields[i]);
    for (uint32_t i = 0; i < fields->count && depth < FIELD_DEPTH_MAX; i++)
        if (fields->fields[i].of && !(fields->fields[i].flags & BH_FIELD_DEPRECATED))
            man_put_fields(out, fields->fields[i].of, fields->fields[i].name, depth + 1);
}

/* Each role with the verbs that it allows, from the table that decides. */
static void
man_put_roles(struct bh_buf *out)
{
    static const struct {
        enum bh_role role;
        const char *verb;
    } grants[] = {
#define BH_GRANT(rule, role, verb) { BH_ROLE_##role, verb },
#include "tables/roles.tbl"
#undef BH_GRANT
    };

    man_put_section(out, "ROLES");
    man_put_line(out, "What a binding allows, in its tenant and all below it. A principal with several "
                      "bindings may do what any of them allows.");
    for (uint32_t role = BH_ROLE_NONE + 1; role < BH_ROLES; role++) {
        char memory[ROLE_VERBS_BYTES];
        struct bh_buf verbs;

        bh_buf_init_fixed(&verbs, memory, sizeof memory);
        for (size_t i = 0; i < BH_COUNT(grants); i++)
            if (grants[i].role == role)
                bh_buf_printf(&verbs, "%s%s", verbs.length ? ", " : "", grants[i].verb);
        man_put_term(out, bh_role_names[role], "", bh_buf_text(&verbs));
    }
}

void
bh_man_site(struct bh_buf *out)
{
    man_put_title(out, "bulkhead-site", "5", "the site file: tenants, sizes, users, GPUs");
    man_put_section(out, "DESCRIPTION");
    man_put_line(out,
                 "YAML or JSON, put in force by bulkhead apply -f FILE and printed by bulkhead get site. It "
                 "replaces the file in force: what it does not list is removed. "
                 "Unknown keys, YAML aliases and tags are refused.");
    man_put_section(out, "KEYS");
    man_put_fields(out, &bh_site_fields, "at the top", 0);
    man_put_roles(out);
    man_put_see_also(out, "bulkhead(1), bulkhead-job(5)");
}

void
bh_man_job(struct bh_buf *out)
{
    man_put_title(out, "bulkhead-job", "5", "a job, as bulkhead submit FILE takes it");
    man_put_section(out, "DESCRIPTION");
    man_put_line(out, "YAML or JSON; the options of bulkhead submit override it.");
    man_put_section(out, "KEYS");
    man_put_fields(out, &bh_job_spec_fields, "at the top", 0);
    man_put_see_also(out, "bulkhead(1), bulkhead-site(5)");
}
