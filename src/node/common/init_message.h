#ifndef BH_NODE_COMMON_INIT_MESSAGE_H
#define BH_NODE_COMMON_INIT_MESSAGE_H

#include <stdint.h>

/* What is said between bulkhead-stream, bulkhead-keeper and bulkhead-init: datagrams of these
 * structs on SOCK_SEQPACKET sockets, on one machine and between programs of one version.
 *
 * bulkhead-stream connects to `control` in the job's folder, which the keeper listens at, and
 * says one request.  The keeper answers ATTACH itself; all others go as they are, with their
 * descriptors, to bulkhead-init, which is process 1 of the job: so a command that is added to a
 * job is the child of a process inside it, and nothing with rights ever enters the job.  The
 * first descriptor of a request is where the answers go; when it is closed, what was begun
 * there ends, and when the job ends, it closes.
 *
 * bulkhead-init's words are those of a job: its readers trust neither them nor the
 * descriptors that come with them. */

enum {
    BH_INIT_FD = 3, /* of bulkhead-init: its end of the socket to the keeper */
    BH_INIT_REQUEST_MAX = 60 << 10,
    BH_INIT_FDS_MAX = 4,
    BH_INIT_SESSIONS_MAX = 256
};

enum bh_init_request_kind {
    BH_INIT_EXEC = 1,    /* run a command; fds: answers, then without a terminal
                            standard input, output and error */
    BH_INIT_CONNECT = 2, /* connect to a port of the job's loopback; fds: answers */
    BH_INIT_WATCH = 3,   /* report only the end of the job; fds: answers */
    BH_INIT_ATTACH = 4,  /* keeper: the job's own input and output; fds: none */
};

/* Followed by `count` texts, each ended by NUL. */
struct bh_init_request {
    uint8_t ask, tty, input, unused; /* input: ATTACH wants to write */
    uint16_t rows, columns, port, count;
};

enum bh_init_reply_kind {
    BH_INIT_TERMINAL = 1, /* init to keeper: the job's terminal comes with it */
    BH_INIT_STARTED,      /* the command runs; its terminal comes with it, if any */
    BH_INIT_FAILED,       /* it could not be begun; value: errno */
    BH_INIT_EXITED,       /* value: exit status as a shell has it */
    BH_INIT_CONNECTED,    /* the connection comes with it */
    BH_INIT_ATTACHED,     /* value: BH_INIT_IS_*; the input comes with it, if it is
                             this one's to write */
    BH_INIT_WAITS,        /* init to keeper: at the start barrier (node/verify/start_barrier.h) */
};

enum { BH_INIT_IS_TTY = 1, BH_INIT_IS_WRITER = 2 };

struct bh_init_reply {
    uint32_t reply_kind;
    int32_t value;
};

/* From bulkhead-stream: to bulkhead-init a signal for the command's process group; to the keeper 0, no more
 * input. */
struct bh_init_signal {
    uint32_t signal;
};

/* The keeper's output for attached clients: this byte, then bytes. */
enum bh_attach_packet { BH_ATTACH_OUTPUT = 0, BH_ATTACH_ENDED = 1 };

#endif
