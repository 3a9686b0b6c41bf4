/* Plays a random history and prints the engine's digest, for determinism.py to compare.
 *
 *   digest_run STEPS SEED [plain]
 *
 * Every 1,000 steps: the step, the digest, a hash of all answers so far.  At random steps the engine is
 * loaded from its own bytes, or grown into a block of other capacities, and the digest must not change;
 * `plain` leaves that out, and prints how much memory it took.  It exits with 1 where something is wrong, and
 * with 2 where the history was too short to show every kind of event and decision. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/evidence/play.h"

struct run {
    struct bh_engine *engine;
    uint64_t random; /* its own: moving the engine must not change the history */
    uint64_t copies, growths;
};

static uint32_t
draw(struct run *run, uint32_t below)
{
    run->random = run->random * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((run->random >> 33) % below);
}

/* Continue in another block, and make sure that no code reads the old one. */
static bool
move(struct run *run)
{
    struct bh_engine_caps caps = bh_play_caps(), had = bh_engine_caps(run->engine);
    bool grow = draw(run, 2);
    uint64_t before = bh_play_digest(run->engine);
    struct bh_engine *next;

    caps.tenants += draw(run, 9);
    caps.jobs += draw(run, 300);
    caps.leases += draw(run, 300);
    caps.partitions += draw(run, 300);
    caps.classes += draw(run, 300);
    next = bh_play_copy(run->engine, grow ? &caps : NULL);
    memset(run->engine, 0xa5, bh_engine_size(&had));
    free(run->engine);
    run->engine = next;
    run->growths += grow;
    run->copies += !grow;
    if (next && bh_play_digest(next) == before)
        return true;
    printf("the digest changed when the engine was %s\n", grow ? "grown" : "copied");
    return false;
}

static bool
play_one(struct run *run, struct bh_play *play)
{
    static struct bh_step step;
    struct bh_event event;
    bh_rc rc;

    bh_play_next(play, run->engine, &event);
    rc = bh_engine_step(run->engine, &event, &step);
    bh_play_took(play, &event, rc, &step);
    if (rc == BH_FULL)
        printf("step %llu: a table is full\n", (unsigned long long)play->seq);
    return rc != BH_FULL;
}

static void
tell(const struct run *run, const struct bh_play *play)
{
    char broken[200];

    printf("%llu %016llx %016llx\n", (unsigned long long)play->seq,
           (unsigned long long)bh_play_digest(run->engine), (unsigned long long)play->trail);
    if (!bh_engine_check(run->engine, broken, sizeof(broken)))
        printf("broken: %s\n", broken);
}

static void
tell_counts(const struct run *run, const struct bh_play *play)
{
    struct bh_engine_caps caps = bh_engine_caps(run->engine);

    printf("accepted %llu refused %llu copies %llu growths %llu bytes %llu\nevents",
           (unsigned long long)play->accepted, (unsigned long long)play->refused,
           (unsigned long long)run->copies, (unsigned long long)run->growths,
           (unsigned long long)bh_engine_size(&caps));
    for (uint32_t i = 0; i < BH_EVENT_KINDS; i++)
        printf(" %s %llu", bh_event_names[i], (unsigned long long)play->events[i]);
    printf("\ndecisions");
    for (uint32_t i = 0; i < BH_DECISION_KINDS; i++)
        printf(" %s %llu", bh_decision_names[i], (unsigned long long)play->decisions[i]);
    printf("\n");
}

/* The most memory that this program has had, in KiB; 0 where the system does not say. wait4 counts the
 * parent's, too. */
static unsigned long
peak_kib(void)
{
    char line[128];
    unsigned long peak = 0;
    FILE *status = fopen("/proc/self/status", "r");

    if (!status)
        return 0;
    while (fgets(line, sizeof(line), status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            peak = strtoul(line + 6, NULL, 10);
    fclose(status);
    return peak;
}

static bool
play_all(struct run *run, struct bh_play *play, uint64_t steps, bool plain)
{
    while (play->seq < steps) {
        if (!play_one(run, play))
            return false;
        if (!plain && draw(run, 200) == 0 && !move(run))
            return false;
        if (play->seq % 1000 == 0)
            tell(run, play);
    }
    tell(run, play);
    tell_counts(run, play);
    if (plain)
        printf("peak %lu KiB\n", peak_kib());
    return true;
}

int
main(int argc, char **argv)
{
    static struct bh_play play;
    struct bh_engine_caps caps = bh_play_caps();
    struct run run = { .random = 7 };
    uint64_t steps, seed;
    bool good;

    if (argc < 3 || argc > 4)
        return 1;
    steps = strtoull(argv[1], NULL, 10);
    seed = strtoull(argv[2], NULL, 10);
    bh_play_begin(&play, seed);
    run.engine = bh_play_engine(&caps);
    good = play_all(&run, &play, steps, argc == 4 && strcmp(argv[3], "plain") == 0);
    free(run.engine);
    if (good && bh_play_missing(&play)) {
        printf("never seen: %s\n", bh_play_missing(&play));
        return 2;
    }
    return good ? 0 : 1;
}
