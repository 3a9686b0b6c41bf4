#ifndef BH_DAEMON_NAMES_DIRECTORY_H
#define BH_DAEMON_NAMES_DIRECTORY_H

#include "daemon/names/catalog.h"

/* Make a picture of the catalog's present names and site and have workers read that one. */
void bh_directory_publish(struct bh_catalog *catalog);

#endif
