#include "node/common/registry.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "model/path.h"

enum { HTTPS = 443, LOOPBACK_NET = 127 };

/* "HOST[:PORT]" of so many characters, which bh_image_host_fault has let pass. */
static void
read_host(const char *text, size_t length, struct bh_registry *registry)
{
    const char *colon = memchr(text, ':', length);
    size_t name = colon ? (size_t)(colon - text) : length;

    snprintf(registry->host, sizeof registry->host, "%.*s", (int)name, text);
    registry->port = HTTPS;
    if (!colon)
        return;
    registry->port = 0;
    for (const char *at = colon + 1; at < text + length; at++)
        registry->port = 10 * registry->port + (uint32_t)(*at - '0');
}

/* What skopeo reaches is named in the cell's /etc/hosts: an address has no name there. */
static const char *
address_fault(const struct bh_registry *registry)
{
    uint8_t bytes[4];
    bool address = inet_pton(AF_INET, registry->host, bytes) == 1;

    if (registry->plain && address && bytes[0] == LOOPBACK_NET)
        return NULL;
    if (registry->plain)
        return "is without TLS, which is allowed for loopback addresses only";
    return address ? "is an address: use the registry's name, as in its certificate" : NULL;
}

bh_rc
bh_registry_parse(const char *entry, bool repository, struct bh_registry *ret_registry, struct bh_err *err)
{
    struct bh_registry registry = { .plain = strncmp(entry, "http:", 5) == 0 };
    const char *text = registry.plain ? entry + 5 : entry;
    size_t host = strcspn(text, "/");
    const char *fault = bh_image_host_fault(text, host);

    if (!fault)
        read_host(text, host, &registry);
    registry.repository = text[host] == '/' ? text + host + 1 : "";
    if (!fault && text[host] == '/')
        fault = repository ? bh_image_repository_fault(registry.repository, strlen(registry.repository))
                           : "has a repository, which hosts do not have";
    if (!fault)
        fault = address_fault(&registry);
    if (fault)
        return bh_err_set(err, BH_INVALID, "\"%.100s\" %s", entry, fault);
    *ret_registry = registry;
    return BH_OK;
}

bool
bh_registry_has(const struct bh_registry *registry, const char *path)
{
    size_t host = strcspn(path, "/");
    struct bh_registry wanted;

    if (bh_image_host_fault(path, host) || path[host] != '/')
        return false;
    read_host(path, host, &wanted);
    return strcmp(wanted.host, registry->host) == 0 && wanted.port == registry->port
           && (!*registry->repository || bh_file_path_within(registry->repository, path + host + 1));
}

static bh_rc
check_list(const char *key, const struct bh_param_list *list, bool repository, struct bh_err *err)
{
    struct bh_registry unused;
    bh_rc rc = BH_OK;

    for (uint32_t i = 0; i < list->count && rc == BH_OK; i++)
        rc = bh_registry_parse(list->items[i], repository, &unused, err);
    return rc == BH_OK ? rc : bh_err_wrap(err, "%s", key);
}

bh_rc
bh_registries_check(const struct bh_conf *conf, struct bh_err *err)
{
    bh_rc rc = check_list("registries", &conf->registries, true, err);

    return rc == BH_OK ? check_list("registry_hosts", &conf->registry_hosts, false, err) : rc;
}

bh_rc
bh_registries_find(const struct bh_conf *conf, const char *path, struct bh_registry *ret_registry,
                   struct bh_err *err)
{
    for (uint32_t i = 0; i < conf->registries.count; i++) {
        struct bh_registry registry;

        if (bh_registry_parse(conf->registries.items[i], true, &registry, err) != BH_OK
            || !bh_registry_has(&registry, path))
            continue;
        *ret_registry = registry;
        return BH_OK;
    }
    bh_err_set(err, BH_DENIED, "no registry of this node covers %.100s", path);
    return bh_err_hint(
        err,
        conf->registries.count
            ? "registries in node.conf lists the allowed ones"
            : "registries in node.conf is empty, so images cannot come from registries: the administrator "
              "can list it there");
}
