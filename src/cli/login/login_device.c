#include "cli/login/login_device.h"

#include <stdio.h>
#include <string.h>

#include "base/time.h"
#include "base/utf8.h"

enum { INTERVAL_LEAST_S = 1, INTERVAL_MOST_S = 60, INTERVAL_STANDARD_S = 5, PATH_BYTES_MAX = 512 };

/* The server says when it is over; this is for one that never does. */
#define WAIT_NS (3600 * BH_NS_PER_S)

static const char *
login_device_member(bh_json_value object, const char *key)
{
    return bh_json_text(bh_json_get(object, key), "");
}

static bh_rc
none_or_several(uint32_t count, struct bh_err *err)
{
    if (count == 0) {
        bh_err_set(err, BH_UNAVAILABLE, "no issuer of this server supports sign-in by device");
        return bh_err_hint(err, "bulkhead login, or bulkhead login --account NAME");
    }
    bh_err_set(err, BH_INVALID, "several issuers support sign-in by device");
    return bh_err_hint(err, "--issuer NAME; bulkhead login shows them in a browser");
}

/* The issuer to sign in at: `wanted`, or with NULL the only one that offers it. */
static bh_rc
find_issuer(bh_json_value ways, const char *wanted, const char **ret_name, struct bh_err *err)
{
    bh_json_value issuers = bh_json_get(ways, "issuers");
    uint32_t count = 0;

    for (size_t i = 0; i < bh_json_count(issuers); i++) {
        bh_json_value issuer = bh_json_at(issuers, i);
        const char *name = login_device_member(issuer, "name");

        if (!bh_json_truth(bh_json_get(issuer, "device")) || (wanted && strcmp(name, wanted) != 0))
            continue;
        *ret_name = name;
        count++;
    }
    if (count == 1)
        return BH_OK;
    if (wanted)
        return bh_err_set(err, BH_NOT_FOUND, "no issuer %.63s that supports sign-in by device", wanted);
    return none_or_several(count, err);
}

/* ---- asking again and again ---- */

static uint64_t
interval_of(bh_json_value answer, uint64_t before_s)
{
    uint64_t seconds = bh_json_number(bh_json_get(answer, "interval_s"), before_s);

    if (seconds < INTERVAL_LEAST_S)
        return INTERVAL_LEAST_S;
    return seconds > INTERVAL_MOST_S ? INTERVAL_MOST_S : seconds;
}

/* Failures after which the next question may be answered. */
static bool
is_passing(bh_rc rc)
{
    return rc == BH_UNAVAILABLE || rc == BH_UNCERTAIN || rc == BH_TIMEOUT;
}

static bh_rc
poll_until_done(const struct bh_cli *cli, const char *what, uint64_t interval_s, struct bh_json **ret_json,
                struct bh_err *err)
{
    bh_ns until = bh_time_monotonic() + WAIT_NS;

    while (bh_time_monotonic() < until) {
        BH_AUTO(bh_json_free) struct bh_json *json = NULL;
        bh_rc rc;

        bh_time_sleep(interval_s * BH_NS_PER_S);
        rc = bh_session_send(cli, what, NULL, &json, err);
        if (rc != BH_OK && !is_passing(rc))
            return rc;
        if (rc == BH_OK && bh_json_get(bh_json_root(json), "session")) {
            *ret_json = bh_steal(&json);
            return BH_OK;
        }
        if (rc == BH_OK)
            interval_s = interval_of(bh_json_root(json), interval_s);
    }
    return bh_err_set(err, BH_TIMEOUT, "the sign-in was not confirmed in time");
}

/* ---- the device flow ---- */

static void
login_device_invite(bh_json_value begun)
{
    const char *complete = login_device_member(begun, "address_complete");
    char text[2048];

    snprintf(text, sizeof text, "open %s on any machine and enter the code %s",
             login_device_member(begun, "address"), login_device_member(begun, "code"));
    bh_utf8_scrub(text);
    fprintf(stderr, "%s\n", text);
    snprintf(text, sizeof text, "%s", complete);
    bh_utf8_scrub(text);
    if (*complete)
        fprintf(stderr, "or open %s and check that it shows that code\n", text);
}

bh_rc
bh_login_device(const struct bh_cli *cli, bh_json_value ways, struct bh_json **ret_json, struct bh_err *err)
{
    BH_AUTO(bh_json_free) struct bh_json *json = NULL;
    char host[BH_SESSION_HOST_MAX], memory[PATH_BYTES_MAX];
    struct bh_member members[] = { { "host", host }, { "issuer", NULL }, { NULL, NULL } };
    struct bh_buf what;
    bh_rc rc = find_issuer(ways, cli->args->options[BH_OPT_ISSUER].text, &members[1].text, err);

    bh_session_host(host);
    if (rc != BH_OK)
        return rc;
    rc = bh_session_send(cli, "POST /v1/sign-in/device", members, &json, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init_fixed(&what, memory, sizeof memory);
    bh_buf_puts(&what, "POST /v1/sign-in/device/");
    bh_http_put_encoded(&what, login_device_member(bh_json_root(json), "id"));
    if (!bh_buf_text(&what))
        return bh_err_set(err, BH_IO, "the server's answer names no sign-in");
    login_device_invite(bh_json_root(json));
    return poll_until_done(cli, memory, interval_of(bh_json_root(json), INTERVAL_STANDARD_S), ret_json, err);
}
