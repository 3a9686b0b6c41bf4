#ifndef BH_CLI_LOGIN_SESSION_H
#define BH_CLI_LOGIN_SESSION_H

#include "cli/command/cli.h"
#include "cli/command/prompt.h"
#include "cli/login/stored_session.h"

/* The kept session (cli/kept.h) at work: it is the bearer of every command at its server,
 * where no token was given; a code is asked for where the server wants to see one again;
 * what has ended is forgotten. */

/* How the kept sessions call the server that the commands talk to: its URL without a slash
 * at its end, or "unix:" and the socket's path.  In the arena. */
const char *bh_session_address(const struct bh_cli *cli);

/* Use the session kept for the server, if there is one and no token was given.
 *   BH_DENIED, BH_INVALID  the file is not to be trusted, or damaged (bh_stored_session_find)
 *   BH_UNAUTHENTICATED     the session is over; it was forgotten */
BH_MUST_USE bh_rc bh_session_use(struct bh_cli *cli, struct bh_err *err);

/* The text that shows the server that the account signed in from this machine before; NULL: none. */
const char *bh_session_device(const struct bh_cli *cli, const char *name);

/* Forget the session in use if the server ended it by what was just done, and say so. */
void bh_session_recheck(struct bh_cli *cli);

/* Show a second factor again for the session in use.  BH_UNAUTHENTICATED: a wrong code. */
BH_MUST_USE bh_rc bh_session_prove(const struct bh_cli *cli, const char *code, struct bh_err *err);

/* A member of a request; NULL text: left out.  A list ends with a NULL key. */
struct bh_member {
    const char *key, *text;
};

/* Send "POST /v1/..." with an object of these members, once and without an idempotency key:
 * what is said here may be a secret, and its copies are wiped.  Free ret_json. */
BH_MUST_USE bh_rc bh_session_send(const struct bh_cli *cli, const char *what, const struct bh_member *members,
                                  struct bh_json **ret_json, struct bh_err *err);

/* Ask for a secret: on the terminal, or with --password-stdin the next line of standard
 * input. */
BH_MUST_USE bh_rc bh_session_ask(const struct bh_cli *cli, const char *question, char ret_text[BH_PROMPT_MAX],
                                 struct bh_err *err);

/* Ask for a new password, on the terminal twice.  BH_INVALID: the two differ. */
BH_MUST_USE bh_rc bh_session_ask_new(const struct bh_cli *cli, char ret_text[BH_PROMPT_MAX],
                                     struct bh_err *err);

/* What this machine calls itself, for the list of sessions; never empty. */
enum { BH_SESSION_HOST_MAX = 121 };
void bh_session_host(char ret_host[BH_SESSION_HOST_MAX]);

/* A line on standard error, unless --quiet; what the server said is scrubbed. */
void bh_session_print(const struct bh_cli *cli, const char *format, ...) BH_PRINTF(2, 3);

/* "2026-11-20T09:27:00Z" of a member in nanoseconds, in the arena. */
const char *bh_session_time(const struct bh_cli *cli, bh_json_value object, const char *key);

#endif
