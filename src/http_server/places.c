#include "http_server/places.h"

#include <stdlib.h>

enum places_scope { PLENTY, ALL, STRANGERS, PEER };

/* Whose places lack. */
static enum places_scope
lacks(const struct bh_places *places, const struct bh_place *joining, bool unlimited)
{
    const struct bh_places_limits *limits = &places->limits;
    size_t anonymous = 0, of_peer = 0;

    for (size_t i = 0; i < places->count; i++) {
        anonymous += !places->taken[i].known;
        of_peer += places->taken[i].peer == joining->peer;
    }
    if (!unlimited && of_peer >= limits->most_each)
        return PEER;
    if (!unlimited && anonymous >= limits->most_anonymous)
        return STRANGERS;
    return places->count >= limits->most ? ALL : PLENTY;
}

static int
places_compare(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* How many of the sorted numbers are less. */
static size_t
less_than(const uint64_t *sorted, size_t count, uint64_t number)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (sorted[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t
held_by(const uint64_t *sorted, size_t count, uint64_t holder)
{
    return (uint32_t)(less_than(sorted, count, holder + 1) - less_than(sorted, count, holder));
}

struct candidate {
    const struct bh_place *place;
    uint32_t held;
    bool stale; /* an unknown client that sends nothing */
};

static bool
may_give(const struct candidate *one, const struct bh_place *joining, uint32_t would_hold, bh_ns now)
{
    const struct bh_place *place = one->place;

    if (place->state == BH_PLACE_CARRIED_OUT)
        return false;
    if (place->state == BH_PLACE_SENDING && (now < place->since || now - place->since < BH_PLACES_SLOW_NS))
        return false;
    if (place->state == BH_PLACE_WAITING)
        return one->stale || place->holder == joining->holder || one->held >= would_hold;
    return place->holder != joining->holder && one->held > would_hold;
}

/* Whether `a` gives way rather than `b`. */
static bool
gives_first(const struct candidate *a, const struct candidate *b)
{
    static const int rank[BH_PLACE_STATES] = { [BH_PLACE_WAITING] = 0,
                                               [BH_PLACE_STREAM] = 1,
                                               [BH_PLACE_RECEIVING] = 2,
                                               [BH_PLACE_INTERACTIVE] = 3,
                                               [BH_PLACE_SENDING] = 4 };
    bool youngest = a->place->state == BH_PLACE_STREAM || a->place->state == BH_PLACE_INTERACTIVE;

    if (!b->place)
        return true;
    if (a->stale != b->stale)
        return a->stale;
    if (!a->stale && a->held != b->held)
        return a->held > b->held;
    if (rank[a->place->state] != rank[b->place->state])
        return rank[a->place->state] < rank[b->place->state];
    return youngest ? a->place->since > b->place->since : a->place->since < b->place->since;
}

struct bh_places_choice
bh_places_choose(const struct bh_places *places, const struct bh_place *joining, bool unlimited)
{
    enum places_scope scope = lacks(places, joining, unlimited);
    uint64_t *sorted = places->scratch;
    size_t count = places->count;
    bh_ns now = places->now;
    struct bh_places_choice choice = { scope != PLENTY, BH_PLACES_NONE, 0 };
    struct candidate first = { 0 };
    uint32_t would_hold;

    if (scope == PLENTY)
        return choice;
    for (size_t i = 0; i < count; i++)
        sorted[i] = places->taken[i].holder;
    qsort(sorted, count, sizeof *sorted, places_compare);
    would_hold = held_by(sorted, count, joining->holder) + 1;
    for (size_t i = 0; i < count; i++) {
        const struct bh_place *at = &places->taken[i];
        struct candidate one = { at, held_by(sorted, count, at->holder),
                                 !at->known && at->state == BH_PLACE_WAITING && now > at->since
                                     && now - at->since > BH_PLACES_STALE_NS };

        if ((scope == STRANGERS && at->known) || (scope == PEER && at->peer != joining->peer))
            continue;
        if (!may_give(&one, joining, would_hold, now) || !gives_first(&one, &first))
            continue;
        first = one;
        choice.giver = (long)i;
        choice.held = one.held;
    }
    return choice;
}
