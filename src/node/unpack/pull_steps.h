#ifndef BH_NODE_UNPACK_PULL_STEPS_H
#define BH_NODE_UNPACK_PULL_STEPS_H

/* Steps of fetching an image, as those of unpack_steps.h. */

#define BH_PULL_AUTH "/etc/auth.json"
#define BH_PULL_CERTIFICATES "/etc/certificates"

/* Become skopeo, which writes to BH_PULL_FOLDER: the manifest of shared->manifest's digest, or
 * of what was asked for, to `manifest`; and the blobs of shared->manifest. */
int bh_pull_step_inspect(void *order);
int bh_pull_step_copy(void *order);

/* After a step failed: explain its last message in Bulkhead's words. */
int bh_pull_step_explain(void *order);

/* Read `manifest` into shared->manifest: digest, size, kind; of one that lists versions for
 * several machines, this machine's; total_bytes. */
int bh_pull_step_read(void *order);

/* Put it among the blobs. */
int bh_pull_step_store(void *order);

#endif
