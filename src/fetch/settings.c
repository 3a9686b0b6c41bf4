#include "fetch/settings.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/num.h"

static bh_rc
read_pem(const char *path, struct bh_buf *text, struct bh_err *err)
{
    bh_rc rc;

    bh_buf_init(text, BH_FETCH_FILE_MAX);
    rc = bh_file_read(path, BH_FETCH_FILE_MAX - 1, text, err);
    if (rc != BH_OK)
        return rc;
    if (text->length == 0)
        return bh_err_set(err, BH_INVALID, "%s is empty", path);
    return BH_OK;
}

static bh_rc
add_block(struct bh_fetch_settings *settings, const char *text, struct bh_err *err)
{
    if (settings->block_count == BH_FETCH_BLOCKS_MAX)
        return bh_err_set(err, BH_INVALID, "more than %d blocks of addresses", BH_FETCH_BLOCKS_MAX);
    return bh_block_parse(text, &settings->blocks[settings->block_count++], err);
}

/* "name:certificate:key"; the argument is taken apart in place. */
static bh_rc
add_identity(struct bh_fetch_settings *settings, char *text, struct bh_err *err)
{
    struct bh_fetch_identity *identity = &settings->identities[settings->identity_count];
    char *certificate = strchr(text, ':');
    char *key = certificate ? strchr(certificate + 1, ':') : NULL;
    bh_rc rc;

    if (settings->identity_count == BH_FETCH_CERTIFICATES_MAX)
        return bh_err_set(err, BH_INVALID, "more than %d client certificates", BH_FETCH_CERTIFICATES_MAX);
    if (!key || strchr(key + 1, ':') || certificate == text || certificate - text > BH_HTTPS_NAME_MAX)
        return bh_err_set(err, BH_INVALID, "\"%.100s\" is not NAME:CERTIFICATE:KEY", text);
    *certificate++ = *key++ = '\0';
    if (bh_fetch_settings_find(settings, text))
        return bh_err_set(err, BH_INVALID, "two client certificates of the name %s", text);
    memcpy(identity->name, text, strlen(text) + 1);
    settings->identity_count++;
    rc = read_pem(certificate, &identity->certificate, err);
    return rc == BH_OK ? read_pem(key, &identity->key, err) : rc;
}

static bh_rc
settings_set(struct bh_fetch_settings *settings, int option, char *value, struct bh_err *err)
{
    switch (option) {
    case 'a':
        return add_block(settings, value, err);
    case 'c':
        return read_pem(value, &settings->ca, err);
    case 'i':
        return add_identity(settings, value, err);
    case 'l':
        settings->plain_loopback = true;
        return BH_OK;
    case 'p':
        settings->proxy = value;
        return BH_OK;
    case 't':
        return bh_parse_u32(value, 1, BH_FETCH_TIMEOUT_MS_MAX, &settings->timeout_ms, err);
    default:
        return bh_err_set(err, BH_INVALID, "an argument that is not an option, or lacks its value");
    }
}

bh_rc
bh_fetch_settings_parse(int argc, char **argv, struct bh_fetch_settings *ret_settings, struct bh_err *err)
{
    static const struct option names[] = {
        { "allow", required_argument, NULL, 'a' },
        { "ca", required_argument, NULL, 'c' },
        { "certificate", required_argument, NULL, 'i' },
        { "plain-loopback", no_argument, NULL, 'l' },
        { "proxy", required_argument, NULL, 'p' },
        { "timeout-ms", required_argument, NULL, 't' },
        { NULL, 0, NULL, 0 },
    };
    bh_rc rc = BH_OK;
    int option;

    *ret_settings = (struct bh_fetch_settings){ .timeout_ms = BH_HTTPS_SECONDS * 1000 };
    opterr = 0;
    optind = 0; /* glibc: begin anew */
    while (rc == BH_OK && (option = getopt_long(argc, argv, "", names, NULL)) != -1)
        rc = settings_set(ret_settings, option, optarg, err);
    if (rc != BH_OK)
        return rc;
    if (optind != argc)
        return bh_err_set(err, BH_INVALID, "\"%.60s\" is not an option", argv[optind]);
    return BH_OK;
}

void
bh_fetch_settings_fini(struct bh_fetch_settings *settings)
{
    bh_buf_fini(&settings->ca);
    for (uint32_t i = 0; i < settings->identity_count; i++) {
        bh_buf_fini(&settings->identities[i].certificate);
        bh_buf_fini(&settings->identities[i].key);
    }
}

const struct bh_fetch_identity *
bh_fetch_settings_find(const struct bh_fetch_settings *settings, const char *name)
{
    for (uint32_t i = 0; i < settings->identity_count; i++)
        if (strcmp(settings->identities[i].name, name) == 0)
            return &settings->identities[i];
    return NULL;
}

bool
bh_fetch_settings_allow(const struct bh_fetch_settings *settings, const struct sockaddr *address, bool plain)
{
    if (plain)
        return settings->plain_loopback && bh_address_loopback(address);
    if (settings->proxy || bh_address_public(address))
        return true;
    for (uint32_t i = 0; i < settings->block_count; i++)
        if (bh_block_has(&settings->blocks[i], address))
            return true;
    return false;
}
