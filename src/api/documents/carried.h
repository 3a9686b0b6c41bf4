#ifndef BH_API_DOCUMENTS_CARRIED_H
#define BH_API_DOCUMENTS_CARRIED_H

#include "api/documents/job_document.h"

/* Numbers that would be too large stay the largest. */
void bh_carried_add(struct bh_msg_carried *to, const struct bh_msg_carried *from);

#endif
