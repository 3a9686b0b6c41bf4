/* What src/identity says to tokens: lines of a key set, a tab and a token come in, and for
 * each one line goes out, "ok PAYLOAD" (base64url) or the fault's name. */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "identity/jws.h"

static struct bh_jwks jwks;

static void
judge(const char *keys, const char *token)
{
    struct bh_jws_trust trust = { &jwks, BH_JWS_ALL };
    enum bh_identity_fault fault = bh_jwks_parse(keys, strlen(keys), &jwks);
    struct bh_buf payload, text;
    struct bh_jws jws;

    bh_buf_init(&payload, BH_JWS_BYTES_MAX);
    bh_buf_init(&text, 2 * BH_JWS_BYTES_MAX);
    if (fault == BH_FAULT_NONE)
        fault = bh_jws_read(token, strlen(token), &trust, &jws, &payload);
    bh_base64url_encode(&text, payload.bytes, payload.length);
    if (fault == BH_FAULT_NONE)
        printf("ok %s\n", bh_buf_text(&text));
    else
        printf("%s\n", bh_fault_name(fault));
    bh_buf_fini(&payload);
    bh_buf_fini(&text);
}

int
main(void)
{
    static char line[1 << 20];

    while (fgets(line, sizeof line, stdin)) {
        char *tab = strchr(line, '\t');

        line[strcspn(line, "\n")] = '\0';
        if (!tab)
            return 2;
        *tab = '\0';
        judge(line, tab + 1);
    }
    return 0;
}
