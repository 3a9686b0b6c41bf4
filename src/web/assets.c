#include "web/assets.h"

#include <string.h>

#include "base/assert.h"

const struct bh_asset *
bh_asset_find(const char *path)
{
    for (const struct bh_asset *asset = bh_assets; asset->name; asset++)
        if (strcmp(asset->path, path) == 0)
            return asset;
    return NULL;
}

static const struct bh_asset *
asset_named(const char *name)
{
    const struct bh_asset *asset = bh_assets;

    while (asset->name && strcmp(asset->name, name) != 0)
        asset++;
    BH_ASSERT(asset->name);
    return asset;
}

const char *
bh_asset_path(const char *name)
{
    return asset_named(name)->path;
}

const char *
bh_asset_digest(const char *name)
{
    return asset_named(name)->digest;
}
