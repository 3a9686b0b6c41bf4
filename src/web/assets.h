#ifndef BH_WEB_ASSETS_H
#define BH_WEB_ASSETS_H

#include <stddef.h>

/* The files of web/ that pages refer to, compiled in by tools/embed.  Their address holds
 * the digest of what they are, so browsers may keep them for ever. */
struct bh_asset {
    const char *name;   /* "style.css" */
    const char *path;   /* "/assets/style.0123456789ab.css" */
    const char *digest; /* SHA-256 of its bytes, in hex */
    const char *type;   /* "text/css; charset=utf-8" */
    const char *bytes;
    size_t length;
};

extern const struct bh_asset bh_assets[]; /* ends with a NULL name */

/* The asset served at that path, or NULL. */
const struct bh_asset *bh_asset_find(const char *path);

/* Where the asset of that name is served; a name that is none of web/ is our bug. */
const char *bh_asset_path(const char *name);

/* The digest of the asset of that name. */
const char *bh_asset_digest(const char *name);

#endif
