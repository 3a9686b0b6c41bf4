#ifndef BH_API_CARRIED_H
#define BH_API_CARRIED_H

#include "api/job_document.h"

/* Numbers that would be too large stay the largest. */
void bh_carried_add(struct bh_msg_carried *to, const struct bh_msg_carried *from);

#endif
