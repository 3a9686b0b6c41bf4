#ifndef BH_WEB_FORM_H
#define BH_WEB_FORM_H

#include "identity/form.h"
#include "identity/secret.h"
#include "ports/http.h"

/* Forms that browsers post, and whether they come from our pages.
 *
 * Two locks, either of which would do: a token that only a page of the session could hold,
 * and the browser's own word for which site the request comes from. */

/* The token for the forms of the holder of this secret: a session's id, or the cookie of a
 * browser that has none yet.  Does not give the secret away. */
void bh_csrf_token(const char *secret, char ret_token[BH_SECRET_TEXT]);

/* Read the form that was posted; values may be of several lines.
 *   ELSEWHERE       it comes from another site, or its field "csrf" is not `token`
 *   FORM            no form, or malformed
 *   FORM_DUPLICATE  a field comes twice */
BH_MUST_USE enum bh_identity_fault bh_form_receive(const struct bh_request *request, const char *origin,
                                                   const char *token, struct bh_form *ret_form);

/* The cookie of that name among those that the request carries, in `ret_value` (at most
 * `size` - 1 bytes).  False when there is none, it is longer, or the name comes twice: then
 * another site set one beside Bulkhead's. */
bool bh_cookie_find(const struct bh_request *request, const char *name, char *ret_value, size_t size);

/* A path to continue at after signing in: `text` when it is a path of this site without
 * surprises ("/confirm?code=AB"), else `fallback`. */
const char *bh_next_path(const char *text, const char *fallback);

#endif
