/* Who gives a place back: a table. */
#include "http_server/places.h"

#include <ctype.h>
#include <string.h>

#include "base/test.h"

#define NOW (1000 * BH_NS_PER_S)

enum { MOST = 6, STRANGERS = 4, EACH = 5, ROOM = 16 };

/* A connection is written as its holder, a capital where it is known; what it does: `w`aits,
 * `r`eceives, is `c`arried out, `a`nswers, `s`tream, `i`nteractive; for how many seconds; and, where
 * it is not the holder, the peer. */
static struct bh_place
read_place(const char *text)
{
    static const char states[BH_PLACE_STATES] = "wrcasi";
    struct bh_place place = { .holder = (uint64_t)tolower(text[0]), .known = isupper(text[0]) };
    char *rest;

    place.peer = place.holder;
    if (text[1] == '\0')
        return place;
    place.state = (enum bh_place_state)((const char *)memchr(states, text[1], sizeof states) - states);
    place.since = NOW - strtoul(text + 2, &rest, 10) * BH_NS_PER_S;
    if (*rest == '/')
        place.peer = (uint64_t)rest[1];
    return place;
}

static const struct {
    const char *name, *joining;
    const char *places[ROOM];
    long giver;
    bool unlimited, plenty;
} cases[] = {
    { "there is room", "x", { "As1", "As2", "As3", "As4", "As5" }, -1, .plenty = true },
    { "the youngest stream of who holds most", "x", { "Bs1", "As9", "As2", "As5", "Bs1", "As7" }, 2 },
    { "an idle connection first, the longest", "x", { "Bw90", "As1", "Aw3", "Aw8", "As2", "Bs1" }, 3 },
    { "a stream before a request on its way", "x", { "Ar1", "As9", "Bs1", "Ar9", "Bs1", "Cc1" }, 1 },
    { "a request on its way before an interactive stream",
      "x",
      { "Ai1", "Ar2", "Bs1", "Ar9", "Bs1", "Ai9" },
      3 },
    { "the youngest interactive stream", "x", { "Ai7", "Ai3", "Bs1", "Ai9", "Bs1", "Ac9" }, 1 },
    { "an answer that nobody takes", "x", { "Aa4", "Aa9", "Aa7", "Ac9", "Bs1", "Bs1" }, 1 },
    { "what is carried out stays: the next one's", "x", { "Ac9", "Ac9", "Ac9", "Aa4", "Bs3", "Bs2" }, 5 },
    { "all is carried out", "x", { "Ac9", "Ac9", "Bc9", "Bc9", "Cc9", "Cc9" }, -1 },
    { "of who holds as many no stream", "x", { "As1", "Bs1", "Cs1", "Ds1", "Es1", "Fs1" }, -1 },
    { "but one that waits", "x", { "As1", "Bw1", "Cs1", "Dw2", "Es1", "Fs1" }, 3 },
    { "who holds most gets none of others'", "a", { "As1", "As1", "As1", "Bs1", "Bs1", "Bw9" }, -1 },
    { "he gives his own that waits", "a", { "As1", "Aw2", "As1", "Aw1", "Bs1", "Bw9" }, 1 },
    { "who holds fewer gets one", "b", { "As1", "As3", "As2", "As4", "Bs1", "Bs1" }, 0 },
    { "who would hold as many gets none", "b", { "As1", "As3", "As2", "Bs1", "Bs1", "Cs1" }, -1 },
    { "a stranger that says nothing before all", "b", { "As1", "As1", "As1", "cw3", "dw9", "As1" }, 4 },
    { "not one that has just come", "b", { "As1", "As2", "As3", "cw1", "dw1", "As4" }, 0 },
    { "too many strangers: one of them", "x", { "Aw9", "Aw9", "cw1", "cw1", "dw1", "er9" }, 2 },
    { "too many strangers: none waits or has two", "x", { "As9", "As9", "cr1", "er1", "dc1", "fa9" }, -1 },
    { "root is no stranger",
      "r",
      { "As9", "cr1", "er1", "dr1", "fr1" },
      -1,
      .unlimited = true,
      .plenty = true },
    { "root gets one from who holds more",
      "r",
      { "As9", "As8", "Bs1", "Bs1", "Bs1", "Cs1" },
      2,
      .unlimited = true },
    { "half of the places are one block's: it gives",
      "1",
      { "As9/1", "As8/1", "As7/1", "As6/1", "1w1/1" },
      3 },
    { "other blocks do not", "1", { "As9/1", "Ac8/1", "Ac7/1", "Bs6/2", "Ac1/1", "Ac1/1" }, 0 },
    { "of two principals of one block who holds more",
      "1",
      { "As9/1", "Bs8/1", "Bs7/1", "Bs6/1", "As5/1" },
      3 },
    { "one principal in three blocks", "4", { "As9/1", "As8/2", "As7/3", "As6/1", "Bs5/2", "Bs5/3" }, 3 },
};

static void
who_gives_way(void **state)
{
    static const struct bh_places_limits limits = { MOST, STRANGERS, EACH };

    for (size_t i = 0; i < BH_COUNT(cases); i++) {
        struct bh_place places[ROOM], joining = read_place(cases[i].joining);
        struct bh_places_choice choice;
        uint64_t scratch[ROOM];
        size_t count = 0;

        for (; count < ROOM && cases[i].places[count]; count++)
            places[count] = read_place(cases[i].places[count]);
        choice = bh_places_choose(&(struct bh_places){ places, count, scratch, limits, NOW }, &joining,
                                  cases[i].unlimited);
        BH_CHECK_EQ(cases[i].name, choice.lacking, !cases[i].plenty);
        BH_CHECK_EQ(cases[i].name, choice.giver, cases[i].giver);
    }
    BH_CHECK_DONE();
}

/* Two who take places from each other come to rest. */
static void
no_client_loses_for_ever(void **state)
{
    static const struct bh_places_limits limits = { MOST, MOST, MOST };
    struct bh_place places[MOST], a = read_place("As1"), b = read_place("Bs1");
    uint64_t scratch[MOST];
    uint32_t taken = 0, of_b = 0;

    for (size_t i = 0; i < MOST; i++)
        places[i] = a;
    for (int turn = 0; turn < 100; turn++) {
        const struct bh_place *joining = turn % 2 ? &a : &b;
        struct bh_places_choice choice =
            bh_places_choose(&(struct bh_places){ places, MOST, scratch, limits, NOW }, joining, false);

        if (choice.giver == BH_PLACES_NONE)
            continue;
        places[choice.giver] = *joining;
        taken++;
    }
    for (size_t i = 0; i < MOST; i++)
        of_b += places[i].holder == b.holder;
    BH_CHECK_EQ("each half", of_b, MOST / 2);
    BH_CHECK_EQ("and then none more", taken, MOST / 2);
    BH_CHECK_DONE();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(who_gives_way),
    cmocka_unit_test(no_client_loses_for_ever),
};
BH_TEST_MAIN(tests)
