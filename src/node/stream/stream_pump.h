#ifndef BH_NODE_STREAM_STREAM_PUMP_H
#define BH_NODE_STREAM_STREAM_PUMP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "wire/message.h"
#include "wire/stream.h"

/* Passing bytes between the frames of a client and the descriptors of a job, without rights and in the memory
 * below, however much either side sends.  A job's bytes and descriptors are untrusted: a descriptor that it
 * gives is only used non-blocking and closed. */

struct bh_pump {
    int client;     /* frames, both ways */
    int answers;    /* of bulkhead-init, or of the keeper for attached clients */
    int keeper;     /* it refuses there; -1: it was answered */
    int input;      /* where STDIN goes; -1: nowhere, or closed */
    int sources[2]; /* what becomes STDOUT and STDERR; -1: none, or at its end */
    enum bh_stream_what what;
    bool tty, writer;
    bool attached;             /* output comes as packets on `answers` */
    bool no_more_input;        /* the client said so; `input` closes once it has all */
    bool exited, disconnected; /* broken: the client has disconnected */
    uint8_t status;
    size_t received_length, pending_length, pending_sent, taken_length, owed;
    char received[BH_STREAM_FRAME_MAX + BH_STREAM_CREDIT]; /* frames that are not whole yet */
    char taken[BH_STREAM_CREDIT];                          /* input that the job has not taken yet */
    char pending[2 * BH_STREAM_FRAME_MAX];                 /* frames that the client has not taken yet */
};

/* A pump whose descriptors are all -1 but the client's. */
void bh_pump_init(struct bh_pump *pump, int client);

/* Hear whether what was asked for was begun, and say READY.
 *   BH_CONFLICT     the job has ended, or refuses the connection
 *   BH_QUOTA        the job has too many streams, or too many processes
 *   BH_TIMEOUT      it does not answer within half a minute */
BH_MUST_USE bh_rc bh_pump_begin(struct bh_pump *pump, const struct bh_msg_stream *message,
                                struct bh_err *err);

/* Pass on until the command, the job, the connection or the client ends, and say EXIT.
 *   BH_INVALID      the client sent no frame, or more than it had credit for
 *   BH_CONFLICT     the job ended under the command
 *   BH_TIMEOUT      the reader was too slow for the job's keeper */
BH_MUST_USE bh_rc bh_pump_run(struct bh_pump *pump, struct bh_err *err);

/* Say ERROR, as the last frame. */
void bh_pump_refuse(struct bh_pump *pump, const struct bh_err *err);

#endif
