#ifndef BH_AUDIT_ORDERS_H
#define BH_AUDIT_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "audit/record.h"
#include "base/attr.h"
#include "base/err.h"

/* Which orders were given and not answered yet, as the auditor walks: each outcome must
 * answer one that was given, by the right word, and none is answered twice.  An event may
 * name a start that is under way, which it is about (a dataset that the job mounts); it
 * answers nothing.
 *
 * An order's number is the number of the record that gave it, and its place in that
 * record's "orders", below 4096.  Records of version 1 do not say what they ordered: what
 * answers one of them is held against its number only.  So is what answers one of those
 * that were longest open when more than BH_ORDERS_OPEN_MAX were. */

enum { BH_ORDERS_SLOTS = 1 << 15, BH_ORDERS_OPEN_MAX = BH_ORDERS_SLOTS * 3 / 4 };

struct bh_audit_orders {
    struct bh_audit_order {
        uint64_t number; /* 0: no order stands here */
        char letter;     /* from the record's "orders" */
        bool unknown;    /* after a start, its outcome was unknown */
        bool abandoned;  /* nothing waits for its answer */
    } slots[BH_ORDERS_SLOTS];
    uint32_t open;        /* given and neither answered nor abandoned */
    uint32_t unknown;     /* of them */
    uint32_t abandoned;   /* given, abandoned and not answered */
    uint64_t exact_from;  /* answers to orders of earlier records are not looked for */
    uint64_t oldest_open; /* of open; exact after bh_audit_orders_close: a record, or UINT64_MAX */
    bool begun;           /* a record of version 2 was seen */
};

void bh_audit_orders_init(struct bh_audit_orders *orders);

/* Take the next record: what it answers, and what it orders.
 *   BH_CONFLICT  it answers what was not ordered, or was answered before; or is an intent and
 *                answers; or an event about a start that is not under way; or its "orders" are
 *                malformed */
BH_MUST_USE bh_rc bh_audit_orders_read(struct bh_audit_orders *orders, const struct bh_record *record,
                                       struct bh_err *err);

/* The record `seq` was pruned: what it ordered and answered is not known. */
void bh_audit_orders_skip(struct bh_audit_orders *orders, uint64_t seq);

/* The walk is over: find the oldest one that is open. */
void bh_audit_orders_close(struct bh_audit_orders *orders);

#endif
