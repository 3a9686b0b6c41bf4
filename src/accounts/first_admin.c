#include "accounts/first_admin.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "accounts/attempt.h"
#include "accounts/factor.h"
#include "accounts/session.h"
#include "api/documents/revision.h"
#include "api/request/token.h"
#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/num.h"
#include "identity/account.h"
#include "identity/secret.h"

/* The first admin.  While no user can sign in as an admin of the site, a one-time code is in a file of the
 * state folder, which only the daemon's user and root can read.  A user who shows it becomes an admin of the
 * site with an account; then the file is removed.  The code is stored nowhere else; a restart continues with
 * the file's, also where there is no room to write another. */

enum { SITE_TEXT_MAX = 8 << 20, CODE_BYTES = 32 };

static void
first_admin_path_of(const struct bh_accounts *accounts, char ret_path[4096])
{
    snprintf(ret_path, 4096, "%s/first-admin.code", accounts->options.state_dir);
}

static bool
is_admin(const struct bh_dir_binding *binding)
{
    return binding->role == BH_ROLE_ADMIN && binding->tenant.v == 0;
}

/* Whether there may be an admin who can sign in. */
static bool
admin_is_needed(const struct bh_directory *dir)
{
    for (uint32_t i = 0; i < dir->binding_count; i++) {
        const struct bh_dir_principal *who = bh_directory_principal(dir, dir->bindings[i].principal);

        if (is_admin(&dir->bindings[i])
            && (dir->bindings[i].group || (who && !who->gone && (who->account || who->identity))))
            return false;
    }
    return true;
}

/* The code that the file holds; false: it holds none, or one that others could read. */
static bool
admin_read_code(const char *path, char ret_code[CODE_BYTES + 1])
{
    uint8_t bytes[CODE_BYTES / 2];
    char memory[CODE_BYTES + 1];
    struct bh_err unread;
    struct bh_buf text;
    struct stat status;
    bool is_code;

    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || (status.st_mode & 077))
        return false;
    bh_buf_init_fixed(&text, memory, sizeof memory);
    is_code = bh_file_read(path, sizeof memory, &text, &unread) == BH_OK && text.length == sizeof memory
              && memory[CODE_BYTES] == '\n';
    memory[CODE_BYTES] = '\0';
    is_code = is_code && bh_parse_hex(memory, bytes, sizeof bytes);
    if (is_code)
        memcpy(ret_code, memory, sizeof memory);
    bh_secret_wipe(memory, sizeof memory);
    bh_secret_wipe(bytes, sizeof bytes);
    return is_code;
}

static bh_rc
admin_make_code(struct bh_accounts *accounts, const char *path, char ret_code[CODE_BYTES + 2],
                struct bh_err *err)
{
    bh_rc rc = bh_accounts_random_hex(accounts, CODE_BYTES / 2, ret_code, err);

    if (rc != BH_OK)
        return rc;
    ret_code[CODE_BYTES] = '\n';
    return bh_file_replace(path, ret_code, CODE_BYTES + 1, 0600, err);
}

bh_rc
bh_first_admin_offer(struct bh_accounts *accounts, struct bh_err *err)
{
    const struct bh_owner *owner = &accounts->options.owner;
    const struct bh_directory *dir = owner->ops->directory_get(owner->self);
    bool needed = admin_is_needed(dir);
    char path[4096], code[CODE_BYTES + 2];
    bh_rc rc;

    owner->ops->directory_put(owner->self, dir);
    first_admin_path_of(accounts, path);
    if (!needed) {
        (void)unlink(path);
        return BH_OK;
    }
    rc = admin_read_code(path, code) ? BH_OK : admin_make_code(accounts, path, code, err);
    if (rc == BH_OK)
        accounts->options.crypto->sha256(code, CODE_BYTES, "", 0, accounts->first_code);
    accounts->first_offered = rc == BH_OK;
    bh_secret_wipe(code, sizeof code);
    if (rc != BH_OK)
        return rc;
    bh_log(FIRST_ADMIN, BH_STR("path", path));
    return BH_OK;
}

/* ---- the site file with one more admin ---- */

/* The list with one more item behind; false: no room. */
static bool
first_admin_append(struct bh_list *list, const void *item, size_t size, struct bh_arena *arena)
{
    char *items = bh_arena_alloc(arena, (list->count + 1) * size);

    if (!items)
        return false;
    if (list->count)
        memcpy(items, list->items, list->count * size);
    memcpy(items + list->count * size, item, size);
    list->items = items;
    list->count++;
    return true;
}

static bool
admin_has_account(struct bh_site *site, const char *name)
{
    struct bh_site_principal *principals = site->principals.items;

    for (uint32_t i = 0; i < site->principals.count; i++)
        if (strcmp(principals[i].name, name) == 0) {
            principals[i].account = true;
            return true;
        }
    return false;
}

static bh_rc
first_admin_apply(struct bh_accounts *accounts, struct bh_call *call, const char *name, struct bh_err *err)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = SITE_TEXT_MAX };
    const struct bh_owner *owner = &accounts->options.owner;
    struct bh_site_principal principal = { .name = name, .account = true };
    struct bh_site_binding binding = { .role = BH_ROLE_ADMIN, .principal = name, .tenant = "*" };
    struct bh_command command = { .op = BH_OP_SITE_APPLY };
    struct bh_answer answer = { 0 };
    struct bh_site site;
    bh_rc rc = bh_revision_present_site(&accounts->options.store, call->arena, &site, err);

    if (rc != BH_OK)
        return rc;
    if ((!admin_has_account(&site, name)
         && !first_admin_append(&site.principals, &principal, sizeof principal, call->arena))
        || !first_admin_append(&site.bindings, &binding, sizeof binding, call->arena))
        return bh_err_set(err, BH_FULL, "no room for the site file");
    rc = bh_site_check(&site, err);
    if (rc != BH_OK)
        return rc;
    bh_json_encode(&text, &bh_site_fields, &site);
    command.site = &site;
    command.text = bh_buf_text(&text);
    command.text_length = text.length;
    command.caller = call->caller;
    command.caller.via = BH_VIA_SYSTEM;
    command.caller.subject = (struct bh_subject){ .uid = UINT32_MAX, .root = true };
    return command.text ? owner->ops->command(owner->self, &command, call->arena, &answer, err)
                        : bh_err_set(err, BH_FULL, "no room for the site file");
}

/* ---- the operation ---- */

static bool
admin_consume_code(struct bh_accounts *accounts, const char *code)
{
    uint8_t digest[32];
    bool right;

    accounts->options.crypto->sha256(code, strlen(code), "", 0, digest);
    bh_mutex_lock(&accounts->mutex);
    right = accounts->first_offered && bh_token_same(digest, accounts->first_code);
    if (right)
        accounts->first_offered = false;
    bh_mutex_unlock(&accounts->mutex);
    return right;
}

/* It did not come to an admin: the code is good again. */
static void
first_admin_restore_code(struct bh_accounts *accounts)
{
    bh_mutex_lock(&accounts->mutex);
    accounts->first_offered = true;
    bh_mutex_unlock(&accounts->mutex);
}

static bh_rc
make_admin(struct bh_accounts *accounts, struct bh_call *call, struct bh_puts *puts,
           struct bh_account *account, struct bh_err *err)
{
    const char *name = call->caller.name;
    const struct bh_owner *owner = &accounts->options.owner;
    struct bh_session_opening opening = { .puts = puts->items, .person = name, .name = name };
    bh_rc rc = first_admin_apply(accounts, call, name, err);

    if (rc != BH_OK)
        return rc;
    owner->ops->directory_put(owner->self, call->dir);
    call->dir = owner->ops->directory_get(owner->self);
    opening.principal = bh_directory_principal_named(call->dir, name)->id.v;
    account->principal = opening.principal;
    rc = bh_account_put(account, call->arena, &puts->items[puts->count], err);
    puts->items[puts->count++].blind = true;
    opening.put_count = puts->count;
    return rc == BH_OK ? bh_session_open(accounts, call, &opening, err) : rc;
}

bh_rc
bh_serve_first_admin(struct bh_accounts *accounts, struct bh_call *call, struct bh_err *err)
{
    struct bh_sign_in_first_request request = { 0 };
    char name[BH_ACCOUNT_MAX + 1], path[4096];
    struct bh_account account = { .created_ns = bh_accounts_now(accounts) };
    struct bh_puts puts = { .count = 0 };
    struct bh_sign_in_attempt attempt;
    bh_rc rc = bh_call_body(call, &bh_sign_in_first_request_fields, &request, err);

    if (rc != BH_OK)
        return rc;
    if (!bh_account_name(request.account, name) || !bh_name_valid(name))
        return bh_err_set(err, BH_INVALID,
                          "account: must be a name of lower-case letters, digits and dashes");
    attempt = bh_attempt_from_call(accounts, call, "first admin", NULL, 0);
    rc = bh_attempt_begin(accounts, call, &attempt, err);
    if (rc != BH_OK)
        return rc;
    if (!admin_consume_code(accounts, request.code))
        return bh_attempt_failed(accounts, call, &attempt, err);
    call->caller.name = name;
    rc = bh_password_new(accounts, call, request.password, &account, err);
    if (rc == BH_OK)
        rc = bh_attempt_succeeded(accounts, call, &attempt, &puts, err);
    if (rc == BH_OK)
        rc = make_admin(accounts, call, &puts, &account, err);
    if (rc != BH_OK) {
        first_admin_restore_code(accounts);
        return rc;
    }
    first_admin_path_of(accounts, path);
    (void)unlink(path);
    return BH_OK;
}
