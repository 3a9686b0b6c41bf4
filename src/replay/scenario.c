#include "replay/scenario.h"

#include <string.h>

#include "base/fd.h"
#include "replay/scenario_run.h"

enum { FILE_BYTES_MAX = 1 << 20, FIELD_NAME_MAX = 200, PATH_MAX_BYTES = 4096 };

static const struct bh_statement *const themes[] = {
    bh_site_statements,   bh_settings_statements, bh_tenant_statements, bh_job_statements,
    bh_time_statements,   bh_expect_statements,   bh_whatif_statements, bh_defrag_statements,
    bh_layout_statements, bh_share_statements,    bh_health_statements, bh_frame_statements,
};

/* A file being played. */
struct player {
    struct bh_tap *tap;
    const char *file;
    uint32_t line;     /* from 1 */
    bool open, failed; /* in a scenario; nothing more of it is played */
    bool uses;         /* a site that the scenario uses, not the file itself */
    char name[FIELD_NAME_MAX];
    struct bh_scenario_run run;
};

static const struct bh_statement *
scenario_find_statement(const char *word)
{
    for (size_t theme = 0; theme < BH_COUNT(themes); theme++)
        for (const struct bh_statement *at = themes[theme]; at->word; at++)
            if (strcmp(at->word, word) == 0)
                return at;
    return NULL;
}

void
bh_scenario_print_statements(FILE *out)
{
    fprintf(out, "  scenario \"NAME\"\n");
    fprintf(out, "  use SITE\n");
    for (size_t theme = 0; theme < BH_COUNT(themes); theme++)
        for (const struct bh_statement *at = themes[theme]; at->word; at++)
            fprintf(out, "  %s %s\n", at->word, at->usage);
}

/* ---- TAP ---- */

static void
scenario_report_failure(struct player *player, const struct bh_err *err)
{
    struct bh_tap *tap = player->tap;

    player->failed = true;
    tap->count++;
    tap->failed++;
    tap->broken = tap->broken || err->rc == BH_BUG;
    if (!tap->out)
        return;
    fprintf(tap->out, "not ok %u - %s\n", tap->count, player->open ? player->name : player->file);
    fprintf(tap->out, "# %s:%u: %s\n", player->file, player->line, err->msg);
    if (err->hint[0])
        fprintf(tap->out, "# %s\n", err->hint);
}

static void
scenario_report_success(struct player *player)
{
    player->tap->count++;
    if (player->tap->out)
        fprintf(player->tap->out, "ok %u - %s\n", player->tap->count, player->name);
}

/* ---- one scenario ---- */

/* The scenario ends here: what must hold in the end. */
static void
finish_scenario(struct player *player)
{
    struct bh_err err = { 0 };
    bh_rc rc = BH_OK;

    if (!player->open)
        return;
    if (!player->failed && player->run.expected_refusal[0])
        rc = bh_err_set(&err, BH_INVALID, "nothing follows expect-refused");
    if (!player->failed && rc == BH_OK)
        rc = bh_world_check_replay(player->run.world, &err);
    if (rc != BH_OK)
        scenario_report_failure(player, &err);
    if (!player->failed)
        scenario_report_success(player);
    bh_scenario_run_fini(&player->run);
    player->open = player->failed = false;
}

static bh_rc
begin_scenario(struct player *player, const struct bh_words *words, struct bh_err *err)
{
    finish_scenario(player);
    player->failed = false;
    if (words->count != 2)
        return bh_err_set(err, BH_INVALID, "expected: scenario \"NAME\"");
    snprintf(player->name, sizeof player->name, "%.*s", FIELD_NAME_MAX - 1, words->at[1]);
    bh_scenario_run_init(&player->run);
    player->open = true;
    return BH_OK;
}

/* What a statement's outcome means when a refusal was expected of it. */
static bh_rc
scenario_judge_refusal(struct bh_scenario_run *run, const char *expected, bh_rc rc, struct bh_err *err)
{
    if (rc == BH_OK)
        return bh_err_set(err, BH_CONFLICT, "accepted, expected to be refused: %s", expected);
    if (!run->refused)
        return rc;
    if (strcmp(bh_reason_names[run->refusal], expected) != 0)
        return bh_err_set(err, BH_CONFLICT, "refused: %s, expected %s", bh_reason_names[run->refusal],
                          expected);
    return BH_OK;
}

/* The statement behind the first word, and its words; NULL: none. */
static const struct bh_statement *
scenario_behind(const struct bh_words *words, struct bh_words *ret_rest)
{
    const struct bh_statement *statement;

    *ret_rest = (struct bh_words){ .count = words->count - 1 };
    memcpy(ret_rest->at, words->at + 1, ret_rest->count * sizeof ret_rest->at[0]);
    statement = scenario_find_statement(ret_rest->at[0]);
    if (!statement || ret_rest->count - 1 < statement->least || ret_rest->count - 1 > statement->most)
        return NULL;
    return statement;
}

/* try STATEMENT: whether it can be done or not, but nothing breaks. */
static bh_rc
scenario_play_try(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_words rest;
    const struct bh_statement *statement = scenario_behind(words, &rest);
    bh_rc rc;

    if (!statement)
        return bh_err_set(err, BH_INVALID, "cannot try %.60s", words->at[1]);
    rc = statement->play(run, &rest, err);
    return rc == BH_BUG ? rc : BH_OK;
}

/* Statements that are one event; others would move the world itself. */
static bool
scenario_can_be_supposed(const struct bh_statement *statement)
{
    static const char *const words[] = { "submit", "cancel", "release", "gpu", "change" };

    for (size_t i = 0; i < BH_COUNT(words); i++)
        if (strcmp(statement->word, words[i]) == 0)
            return true;
    return false;
}

/* whatif STATEMENT: it happens on a copy that is played to its end. */
static bh_rc
scenario_play_whatif(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    struct bh_words rest;
    const struct bh_statement *statement = scenario_behind(words, &rest);
    bh_rc rc;

    if (!statement || !scenario_can_be_supposed(statement))
        return bh_err_set(err, BH_INVALID, "cannot suppose %.60s", words->at[1]);
    bh_supposed_begin(run);
    rc = statement->play(run, &rest, err);
    bh_supposed_play(run);
    return rc;
}

const struct bh_statement bh_frame_statements[] = {
    { "try", 1, BH_WORDS_MAX, "STATEMENT... (that may be refused)", scenario_play_try },
    { "whatif", 2, BH_WORDS_MAX, "submit|cancel|release|gpu|change ... (on a copy)", scenario_play_whatif },
    { NULL, 0, 0, NULL, NULL },
};

static bh_rc
scenario_play_statement(struct bh_scenario_run *run, const struct bh_words *words, struct bh_err *err)
{
    const struct bh_statement *statement = scenario_find_statement(words->at[0]);
    char expected[sizeof run->expected_refusal];
    bh_rc rc;

    if (!statement)
        return bh_err_set(err, BH_INVALID, "unknown statement %.60s", words->at[0]);
    if (words->count - 1 < statement->least || words->count - 1 > statement->most)
        return bh_err_set(err, BH_INVALID, "usage: %s %s", statement->word, statement->usage);
    memcpy(expected, run->expected_refusal, sizeof expected);
    run->expected_refusal[0] = '\0';
    run->refused = false;
    rc = statement->play(run, words, err);
    if (expected[0])
        rc = scenario_judge_refusal(run, expected, rc, err);
    return rc == BH_OK ? bh_world_advance(run->world, 0, err) : rc;
}

static void scenario_player_play_lines(struct player *player, const char *text, size_t length);

/* sites/SITE.bh beside the file that uses it; a name has no path in it. */
static bh_rc
scenario_player_find_site(const struct player *player, const char *site, char path[PATH_MAX_BYTES],
                          struct bh_err *err)
{
    const char *slash = strrchr(player->file, '/');
    int folder = slash ? (int)(slash - player->file) + 1 : 0;
    int length = snprintf(path, PATH_MAX_BYTES, "%.*ssites/%s.bh", folder, player->file, site);

    if (strchr(site, '/') || length >= PATH_MAX_BYTES)
        return bh_err_set(err, BH_INVALID, "%.60s is no name of a site", site);
    return BH_OK;
}

/* use SITE: the statements of a site that several files share. */
static bh_rc
scenario_player_use(struct player *player, const struct bh_words *words, struct bh_err *err)
{
    const char *file = player->file;
    uint32_t line = player->line;
    char path[PATH_MAX_BYTES];
    struct bh_buf text;
    bh_rc rc;

    if (words->count != 2 || !player->open || player->uses)
        return bh_err_set(err, BH_INVALID, "expected in a scenario: use SITE");
    rc = scenario_player_find_site(player, words->at[1], path, err);
    if (rc != BH_OK)
        return rc;
    bh_buf_init(&text, FILE_BYTES_MAX);
    rc = bh_file_read(path, FILE_BYTES_MAX, &text, err);
    if (rc == BH_OK) {
        player->file = path;
        player->line = 0;
        player->uses = true;
        scenario_player_play_lines(player, text.bytes, text.length);
        player->file = file;
        player->line = line;
        player->uses = false;
    }
    bh_buf_fini(&text);
    return rc;
}

static void
scenario_play_line(struct player *player, const char *line, size_t length)
{
    struct bh_err err = { 0 };
    struct bh_words words;
    bh_rc rc = bh_words_split(line, length, &words, &err);
    const char *first = rc == BH_OK && words.count > 0 ? words.at[0] : "";

    if (strcmp(first, "scenario") == 0 && !player->uses)
        rc = begin_scenario(player, &words, &err);
    else if (player->failed || (rc == BH_OK && words.count == 0))
        return;
    else if (strcmp(first, "use") == 0)
        rc = scenario_player_use(player, &words, &err);
    else if (rc == BH_OK && !player->open)
        rc = bh_err_set(&err, BH_INVALID, "a file begins with: scenario \"NAME\"");
    else if (rc == BH_OK)
        rc = scenario_play_statement(&player->run, &words, &err);
    if (rc != BH_OK)
        scenario_report_failure(player, &err);
}

static void
scenario_player_play_lines(struct player *player, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        const char *end = memchr(text + at, '\n', length - at);
        size_t line = end ? (size_t)(end - text) - at : length - at;

        player->line++;
        scenario_play_line(player, text + at, line);
        at += line + 1;
    }
}

void
bh_scenario_play_text(struct bh_tap *tap, const char *file, const char *text, size_t length)
{
    struct player player = { .tap = tap, .file = file };
    uint32_t count = tap->count;
    struct bh_err err = { 0 };

    scenario_player_play_lines(&player, text, length);
    finish_scenario(&player);
    if (tap->count == count) {
        bh_err_set(&err, BH_INVALID, "there is no scenario in it");
        scenario_report_failure(&player, &err);
    }
}

void
bh_scenario_play_file(struct bh_tap *tap, const char *path)
{
    struct player player = { .tap = tap, .file = path };
    struct bh_err err = { 0 };
    struct bh_buf text;
    bh_rc rc;

    bh_buf_init(&text, FILE_BYTES_MAX);
    rc = bh_file_read_given(path, FILE_BYTES_MAX, &text, &err);
    if (rc == BH_OK)
        bh_scenario_play_text(tap, path, text.bytes, text.length);
    else
        scenario_report_failure(&player, &err);
    bh_buf_fini(&text);
}
