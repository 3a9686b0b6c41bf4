#ifndef BH_FETCH_FETCH_H
#define BH_FETCH_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include "base/fields.h"
#include "base/time.h"
#include "ports/https.h"

/* Asking the network from a process of its own (bulkhead-fetch), so that answers of untrusted servers are
 * parsed where there is nothing to steal: this is the daemon's side, and the back end of ports/https.h.
 *
 * One process asks up to BH_FETCH_PENDING_MAX questions at a time.  When it dies, or does not answer
 * BH_FETCH_GRACE past a question's time, it is killed and what was under way has no answer (cause PROCESS);
 * the next question starts another.  One that dies before it answered anything is followed by a pause,
 * BH_FETCH_PAUSE_MIN at first and doubled up to BH_FETCH_PAUSE_MAX, in which questions are answered so at
 * once. */
struct bh_fetch;

enum { BH_FETCH_PENDING_MAX = 32 };

#define BH_FETCH_GRACE (2 * BH_NS_PER_S)
#define BH_FETCH_PAUSE_MIN (100 * BH_NS_PER_MS)
#define BH_FETCH_PAUSE_MAX (30 * BH_NS_PER_S)

/* A client certificate that requests name (struct bh_https_request).  Files in PEM, read
 * when the process starts; none of the three has a ':'. */
struct bh_fetch_certificate {
    const char *name, *certificate, *key;
};

/* All texts are copied; zero is the strictest. */
struct bh_fetch_options {
    const char *program;   /* the bulkhead-fetch program; required */
    const char *ca;        /* PEM file of trusted certificates; NULL: the system's */
    const char *proxy;     /* "http://proxy.example:3128"; NULL: none, whatever the environment
                              says.  With one, addresses are the proxy's to judge */
    struct bh_texts allow; /* blocks of private addresses that may be asked: "10.1.0.0/16";
                              32 at most */
    bool plain_loopback;   /* http to 127.0.0.1, ::1 and localhost: a provider on this machine
                            */
    const struct bh_fetch_certificate *certificates;
    uint32_t certificate_count; /* 8 at most */
    uint32_t timeout_ms;        /* of a question; 0: BH_HTTPS_SECONDS */
};

/* Start the process, and a thread that speaks with it; wait until it can be asked.
 *   BH_INVALID      an option is wrong, or a file is not as it must be
 *   BH_UNAVAILABLE  the program cannot be started, or does not get ready
 * Call it where SIGPIPE is ignored or handled. */
BH_MUST_USE bh_rc bh_fetch_start(const struct bh_fetch_options *options, struct bh_fetch **ret_fetch,
                                 struct bh_err *err);

/* The port; valid until bh_fetch_stop. */
struct bh_https bh_fetch_port(struct bh_fetch *fetch);

/* End the process and free `fetch`.  Questions under way are answered, without an answer;
 * none may come later.  NULL is fine. */
void bh_fetch_stop(struct bh_fetch *fetch);

/* The process, 0 when none runs: for tests, and for operators. */
pid_t bh_fetch_process(struct bh_fetch *fetch);

/* "no answer in time"; never NULL. */
const char *bh_https_cause_text(enum bh_https_cause cause);

#endif
