/* How a process of a job gets its share, and what it reports afterwards: messages between
 * libbulkhead-cuda and bulkhead-share on a SOCK_SEQPACKET socket.
 *
 * The socket is bound into the job's sandbox at BH_SHARE_SOCKET.  bulkhead-share knows a
 * process by the socket's peer credentials, never by what it sends: its pidfd and the connection
 * show when it ends.  Each copy of the library in a process has a connection and a
 * slot of its own (dlmopen makes several); a fork's child makes its own. */
#ifndef BULKHEAD_SHARE_SOCKET_H
#define BULKHEAD_SHARE_SOCKET_H

#include <stdint.h>

/* In the sandbox.  The driver's own libraries are bound beside it, for the libraries that
 * stand in for them. */
#define BH_SHARE_SOCKET "/run/bulkhead/share.sock"
#define BH_SHARE_DRIVER_DIR "/run/bulkhead/driver"

/* The slot of a process that only reads the pages: no process joins, and the one that it may have
 * joined as stays. */
#define BH_SHARE_OBSERVE (-2)

/* The slot of a static program, which cannot join: it is refused, and the job's notice
 * states why. */
#define BH_SHARE_STATIC (-3)

/* First message of a process. */
struct bh_share_hello {
    uint32_t magic, version; /* BH_SHARE_MAGIC, BH_SHARE_VERSION */
    int32_t slot;            /* -1; or the one it has, when bulkhead-share was started anew;
                                or BH_SHARE_OBSERVE, or BH_SHARE_STATIC */
    uint32_t reserved;
};

enum bh_share_answer {
    BH_SHARE_WELCOME,
    BH_SHARE_BAD_VERSION, /* of the hello, or of a process that joined earlier and still counts */
    BH_SHARE_FULL,        /* BH_SHARE_SLOTS_MAX processes have joined */
    BH_SHARE_STRANGER,    /* not a process of this lease, or not its slot */
    BH_SHARE_ANSWERS
};

/* The answer.  With WELCOME come two descriptors: the limits, which can be mapped for reading
 * alone, and the usage. */
struct bh_share_welcome {
    uint32_t magic, version;
    uint32_t answer; /* enum bh_share_answer */
    int32_t slot;    /* -1 for a process that only reads */
};

enum bh_share_client_kind {
    BH_SHARE_WANT = 1, /* is about to submit: before the first submission of its life, open or
                          not, and whenever it finds its time slice SHUT */
    BH_SHARE_DRAINED,  /* of that SHUT time slice: nothing of this process is left on the devices;
                          every process that ever sent WANT sends it for every such time slice.  Of
                          a CONTENDED one: likewise, and nothing more comes in it */
    BH_SHARE_IDLE,     /* of that CONTENDED time slice: nothing is left, nothing came for a while */
    BH_SHARE_CLIENT_KINDS
};

/* Sent by the process at any time after.  `time slice` is the device's time slice that it is about; one
 * that is over is ignored.  The devices of a lease have their time slices together, and their words
 * are equal: `device` names the one it is about most, for people. */
struct bh_share_client_message {
    uint32_t word, device, slice, reserved;
};

#endif
