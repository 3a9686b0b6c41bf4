#include "web/live.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/lock.h"
#include "base/num.h"
#include "web/headers.h"
#include "web/live_text.h"
#include "web/question.h"
#include "web/view.h"

enum {
    PANELS_MAX = 16, /* of a page */
    CHANGES_MAX = 64,
    READERS_MAX = 4000,
    READERS_EACH_MAX = 1200,
    PAGES_EACH_MAX = 100,
    PERSON_MAX = BH_WHO_TEXT,
    PAGE_BYTES_MAX = 4 << 20,
    ARENA_BYTES_MAX = 16 << 20,
    REST = 4, /* times as long as rendering took */
};

#define SENSORS_NS (5 * BH_NS_PER_S)
#define SILENCE_NS (15 * BH_NS_PER_S)
#define TURN_NS                                                                                              \
    (20 * BH_NS_PER_MS)              /* of one person in a round: those with many pages wait for themselves  \
                                      */
#define WAIT_NS (100 * BH_NS_PER_MS) /* between looks at whether to stop */

struct live_panel {
    const struct bh_panel_row *row;
    uint64_t version; /* 0: not rendered yet */
    struct bh_live_text *text;
};

/* What readers of one page and session look at. */
struct live_group {
    char session[BH_SESSION_TEXT_MAX];
    char person[PERSON_MAX]; /* whose session it is: bounds are by person */
    enum bh_site_view view;
    char *address, *id;
    struct bh_form parameters;
    struct bh_transport transport;
    struct live_panel panels[PANELS_MAX];
    uint32_t panel_count;
    struct live_reader *readers; /* under the lock */
    uint32_t reader_count;       /* likewise */
    uint64_t rights;             /* of the session when it was last asked for */
    uint32_t due;                /* topics that wait for its person's turn */
    bh_ns due_ns;                /* since when */
    bool over;                   /* it has ended */
    struct live_group *next;
};

struct bh_live {
    const struct bh_web *web;
    struct bh_owner owner;
    struct bh_live_limits limits;
    struct bh_mutex mutex;
    struct bh_condition stopped;
    struct live_group *groups; /* under the lock */
    uint32_t readers;          /* likewise */
    bool stopping;
    bool fresh; /* a group has never been rendered */
    pthread_t thread;
};

struct live_reader {
    struct bh_live *live;
    struct live_group *group;
    uint64_t seen[PANELS_MAX];
    struct bh_live_text *text; /* being sent */
    size_t sent;
    bool begun, over;
    bh_ns silent; /* until when it may be sent nothing */
    struct bh_waker waker;
    struct live_reader *next, **link;
};

/* ---- rendering ---- */

/* The stream loop has them read soon; so this takes a moment, however many they are. */
static void
live_wake_readers(const struct live_group *group)
{
    for (const struct live_reader *reader = group->readers; reader; reader = reader->next)
        if (reader->waker.wake)
            reader->waker.wake(reader->waker.self);
}

static const char *
live_parameter(const struct bh_request *request, const char *name)
{
    const struct live_group *group = request->server;

    return bh_form_get(&group->parameters, name);
}

static void
live_each_parameter(const struct bh_request *request,
                    void (*sink)(void *self, const char *name, const char *value), void *self)
{
    const struct live_group *group = request->server;

    for (uint32_t i = 0; i < group->parameters.count; i++)
        sink(self, group->parameters.pairs[i].name, group->parameters.pairs[i].value);
}

/* A visit to the group's page, as its person. */
struct live_visit {
    struct bh_request request;
    struct bh_reply reply;
    struct bh_page page;
};

static void
live_visit_begin(struct live_visit *visit, const struct bh_live *live, struct live_group *group)
{
    *visit = (struct live_visit){ .request = { .method = BH_GET,
                                               .path = group->address,
                                               .body = "",
                                               .transport = &group->transport,
                                               .arena = bh_arena_new(ARENA_BYTES_MAX),
                                               .query = live_parameter,
                                               .each_query = live_each_parameter,
                                               .server = group } };
    visit->page = (struct bh_page){
        .web = live->web, .request = &visit->request, .reply = &visit->reply, .id = group->id
    };
    memcpy(visit->page.session, group->session, sizeof visit->page.session);
    bh_csrf_token(visit->page.session, visit->page.csrf);
}

static void
live_visit_end(struct live_visit *visit)
{
    bh_page_fini(&visit->page);
    bh_arena_free(visit->request.arena);
}

/* A page of one object is not there where its first panel is not seen. */
static bool
live_is_there(const struct live_group *group)
{
    return !group->id[0] || group->panels[0].version != BH_PANEL_ABSENT;
}

/* Ask for one panel as the group's person; what is now in it, and its version.  The API's status. */
static uint32_t
live_render_panel(const struct bh_live *live, struct live_group *group, const struct bh_panel_row *row,
                  uint64_t *ret_version, struct bh_live_text **ret_text)
{
    BH_AUTO(bh_buf_fini) struct bh_buf out = { .max = PAGE_BYTES_MAX };
    struct live_visit visit;
    uint32_t status;

    live_visit_begin(&visit, live, group);
    status = bh_panel_render(&visit.page, row, &out, ret_version);
    live_visit_end(&visit);
    if (status != 401 && bh_buf_text(&out))
        *ret_text = bh_live_text_of_panel(row->id, bh_buf_text(&out));
    return status;
}

/* Which roles those are, as a number; 0: none is signed in. */
static uint64_t
live_rights_of(const struct bh_api_response *who)
{
    BH_AUTO(bh_buf_fini) struct bh_buf text = { .max = PAGE_BYTES_MAX };
    bh_json_value roles = who->json ? bh_json_get(bh_json_root(who->json), "roles") : NULL;

    if (who->status == 401)
        return 0;
    for (size_t i = 0; i < bh_json_count(roles); i++) {
        bh_json_value role = bh_json_at(roles, i);

        bh_buf_printf(&text, "%s %s\n", bh_json_text(bh_json_get(role, "role"), ""),
                      bh_json_text(bh_json_get(role, "tenant"), ""));
    }
    return bh_panel_version(text.bytes, text.length);
}

/* False: the session has ended.  Other roles than before have all of the page asked for, as no change of a
 * job says so. */
static bool
live_check_rights(const struct bh_live *live, struct live_group *group, uint32_t *topics)
{
    struct live_visit visit;
    const struct bh_api_response *who;
    uint64_t rights;

    live_visit_begin(&visit, live, group);
    who = bh_page_whoami(&visit.page);
    rights = bh_api_response_is_ok(who) || who->status == 401 ? live_rights_of(who) : group->rights;
    live_visit_end(&visit);
    if (rights != group->rights)
        *topics = BH_LIVE_JOBS_SENSORS;
    group->rights = rights;
    return rights != 0;
}

static void
live_put_text(struct bh_live *live, struct live_group *group, struct live_panel *panel, uint64_t version,
              struct bh_live_text *text)
{
    bh_mutex_lock(&live->mutex);
    if (text && version != panel->version) {
        bh_live_text_put_back(panel->text);
        panel->text = text;
        panel->version = version;
        live_wake_readers(group);
    } else {
        bh_live_text_put_back(text);
    }
    bh_mutex_unlock(&live->mutex);
}

static void
live_end_group(struct bh_live *live, struct live_group *group)
{
    bh_mutex_lock(&live->mutex);
    group->over = true;
    live_wake_readers(group);
    bh_mutex_unlock(&live->mutex);
}

static void
live_render_if_due(struct bh_live *live, struct live_group *group, struct live_panel *panel, uint32_t topics)
{
    struct bh_live_text *text = NULL;
    uint64_t version = BH_PANEL_ABSENT;

    if (panel->version != 0 && !(panel->row->live & topics))
        return;
    if (panel != group->panels && !live_is_there(group))
        text = bh_live_text_of_panel(panel->row->id, "");
    else if (live_render_panel(live, group, panel->row, &version, &text) == 401)
        live_end_group(live, group);
    live_put_text(live, group, panel, version, text);
}

/* Only the rendering thread frees groups, so it may hold one without the lock. */
static void
live_render_group(struct bh_live *live, struct live_group *group, uint32_t topics)
{
    if (!group->over && (topics & BH_LIVE_SENSORS) && !live_check_rights(live, group, &topics))
        live_end_group(live, group);
    for (uint32_t i = 0; i < group->panel_count && !group->over; i++)
        live_render_if_due(live, group, &group->panels[i], topics);
}

static void
live_group_free(struct live_group *group)
{
    for (uint32_t i = 0; i < group->panel_count; i++)
        bh_live_text_put_back(group->panels[i].text);
    bh_secret_wipe(group->session, sizeof group->session);
    free(group->address);
    free(group->id);
    free(group);
}

/* By person, and of each the page first that waits longest. */
static int
live_compare_groups(const void *a, const void *b)
{
    const struct live_group *const *left = a, *const *right = b;
    int persons = strcmp((*left)->person, (*right)->person);

    return persons ? persons : ((*left)->due_ns > (*right)->due_ns) - ((*left)->due_ns < (*right)->due_ns);
}

/* Those without readers go. */
static uint32_t
live_count_groups(struct bh_live *live)
{
    uint32_t count = 0;

    BH_ASSERT(bh_mutex_is_held(&live->mutex));
    for (struct live_group **at = &live->groups; *at;) {
        struct live_group *group = *at;

        if (group->readers) {
            count++;
            at = &group->next;
        } else {
            *at = group->next;
            live_group_free(group);
        }
    }
    return count;
}

/* The groups that have something to render, in the order of their turns. */
static struct live_group **
live_collect_due(struct bh_live *live, uint32_t topics, uint32_t *ret_count)
{
    bh_ns now = bh_time_monotonic();
    struct live_group **due;
    uint32_t count = 0;

    bh_mutex_lock(&live->mutex);
    due = calloc((size_t)live_count_groups(live) + 1, sizeof(void *));
    BH_ASSERT(due);
    for (struct live_group *group = live->groups; group; group = group->next) {
        if (!group->due)
            group->due_ns = now;
        group->due |= topics;
        if (group->due)
            due[count++] = group;
    }
    bh_mutex_unlock(&live->mutex);
    qsort(due, count, sizeof(void *), live_compare_groups);
    *ret_count = count;
    return due;
}

/* A round.  Whether something was left for the next, as its person has had a turn. */
static bool
live_render_round(struct bh_live *live, uint32_t topics)
{
    uint32_t count;
    struct live_group **due = live_collect_due(live, topics, &count);
    const char *person = "";
    bh_ns begun = 0;
    bool left = false;

    for (uint32_t i = 0; i < count; i++) {
        bh_ns now = bh_time_monotonic();

        if (i == 0 || strcmp(due[i]->person, person) != 0) {
            person = due[i]->person;
            begun = now;
        }
        if (now - begun >= TURN_NS) {
            left = true;
            continue;
        }
        topics = due[i]->due;
        due[i]->due = BH_LIVE_NEVER;
        live_render_group(live, due[i], topics);
    }
    free(due);
    return left;
}

/* Whether something may have changed since the change of that number; waits a moment for it. */
static bool
live_await_change(struct bh_live *live, uint64_t *number)
{
    struct bh_change changes[CHANGES_MAX];
    uint32_t count = live->owner.ops->changes(live->owner.self, *number, WAIT_NS, changes, CHANGES_MAX);

    if (count > 0)
        *number = live->owner.ops->change_number(live->owner.self);
    return count > 0;
}

/* Whether a group is new, or the thread is to end; and how long it may rest. */
static bool
live_take_fresh(struct bh_live *live)
{
    bool fresh;

    bh_mutex_lock(&live->mutex);
    fresh = live->fresh;
    live->fresh = false;
    bh_mutex_unlock(&live->mutex);
    return fresh;
}

static bool
live_rest(struct bh_live *live, bh_ns until)
{
    bool stopping;

    bh_mutex_lock(&live->mutex);
    while (!live->stopping && bh_condition_wait_until(&live->stopped, &live->mutex, until))
        ;
    stopping = live->stopping;
    bh_mutex_unlock(&live->mutex);
    return !stopping;
}

static void *
live_run(void *self)
{
    struct bh_live *live = self;
    uint64_t number = live->owner.ops->change_number(live->owner.self);
    bh_ns sensed = 0, begun = bh_time_monotonic(), done = begun;
    bool left = false;

    while (live_rest(live, done + (done - begun) * REST)) {
        bool changed = live_await_change(live, &number), fresh = live_take_fresh(live);
        uint32_t topics = changed ? BH_LIVE_JOBS : BH_LIVE_NEVER;

        begun = bh_time_monotonic();
        if (begun - sensed >= live->limits.sensors) {
            topics |= BH_LIVE_SENSORS;
            sensed = begun;
        }
        if (topics || fresh || left)
            left = live_render_round(live, topics);
        done = bh_time_monotonic();
    }
    return NULL;
}

struct bh_live *
bh_live_new(const struct bh_web *web, const struct bh_owner *owner, const struct bh_live_limits *limits)
{
    struct bh_live *live = calloc(1, sizeof *live);

    BH_ASSERT(live);
    live->web = web;
    live->owner = *owner;
    live->limits = *limits;
    live->limits.readers = limits->readers ? limits->readers : READERS_MAX;
    live->limits.readers_each = limits->readers_each ? limits->readers_each : READERS_EACH_MAX;
    live->limits.pages_each = limits->pages_each ? limits->pages_each : PAGES_EACH_MAX;
    live->limits.sensors = limits->sensors ? limits->sensors : SENSORS_NS;
    live->limits.silence = limits->silence ? limits->silence : SILENCE_NS;
    bh_mutex_init(&live->mutex, BH_LOCK_LIVE);
    bh_condition_init(&live->stopped);
    BH_ASSERT(pthread_create(&live->thread, NULL, live_run, live) == 0);
    return live;
}

void
bh_live_stop(struct bh_live *live)
{
    if (!live)
        return;
    bh_mutex_lock(&live->mutex);
    live->stopping = true;
    bh_condition_broadcast(&live->stopped);
    for (const struct live_group *group = live->groups; group; group = group->next)
        live_wake_readers(group);
    bh_mutex_unlock(&live->mutex);
}

void
bh_live_free(struct bh_live *live)
{
    if (!live)
        return;
    bh_live_stop(live);
    pthread_join(live->thread, NULL);
    BH_ASSERT(live->readers == 0);
    bh_mutex_lock(&live->mutex);
    (void)live_count_groups(live); /* frees all: none has readers */
    bh_mutex_unlock(&live->mutex);
    bh_condition_fini(&live->stopped);
    bh_mutex_fini(&live->mutex);
    free(live);
}

/* ---- readers ---- */

/* The next panel that this reader was not sent as it is now. */
static bool
live_take_text(struct live_reader *reader)
{
    struct live_group *group = reader->group;

    for (uint32_t i = 0; i < group->panel_count; i++) {
        struct live_panel *panel = &group->panels[i];

        if (panel->version == reader->seen[i] || !panel->text)
            continue;
        reader->seen[i] = panel->version;
        reader->text = panel->text;
        reader->text->uses++;
        reader->sent = 0;
        return true;
    }
    return false;
}

static long
live_copy(char *memory, size_t size, const char *bytes, size_t length)
{
    size_t count = length < size ? length : size;

    memcpy(memory, bytes, count);
    return (long)count;
}

static long
live_copy_text(struct live_reader *reader, char *memory, size_t size)
{
    struct bh_live_text *text = reader->text;
    long count = live_copy(memory, size, text->bytes + reader->sent, text->length - reader->sent);

    reader->sent += (size_t)count;
    if (reader->sent == text->length) {
        bh_live_text_put_back(text);
        reader->text = NULL;
    }
    return count;
}

static const char live_over[] = "event: over\ndata: {}\n\n";

/* Under the lock.  What began to be sent is sent whole; where the session has ended nothing follows it. */
static long
live_read_locked(struct live_reader *reader, char *memory, size_t size, bh_ns *ret_again)
{
    static const char live[] = "event: live\ndata: {}\n\n";
    bool ends = reader->group->over || reader->live->stopping;
    bh_ns now = bh_time_monotonic();

    if (reader->over)
        return BH_STREAM_OVER;
    if (reader->text || (reader->begun && !ends && live_take_text(reader))) {
        reader->silent = now + reader->live->limits.silence;
        return live_copy_text(reader, memory, size);
    }
    if (reader->begun && ends) {
        reader->over = true;
        return reader->group->over ? live_copy(memory, size, live_over, sizeof live_over - 1)
                                   : BH_STREAM_OVER;
    }
    if (reader->begun && now < reader->silent) {
        *ret_again = reader->silent;
        return 0;
    }
    reader->silent = now + reader->live->limits.silence;
    reader->begun = true;
    return live_copy(memory, size, live, sizeof live - 1);
}

static long
live_read(void *self, char *memory, size_t size, bh_ns *ret_again)
{
    struct live_reader *reader = self;
    long count;

    bh_mutex_lock(&reader->live->mutex);
    count = live_read_locked(reader, memory, size, ret_again);
    bh_mutex_unlock(&reader->live->mutex);
    return count;
}

static void
live_begin(void *self, const struct bh_waker *waker)
{
    struct live_reader *reader = self;

    bh_mutex_lock(&reader->live->mutex);
    reader->waker = *waker;
    bh_mutex_unlock(&reader->live->mutex);
}

static void
live_close(void *self)
{
    struct live_reader *reader = self;

    bh_mutex_lock(&reader->live->mutex);
    bh_live_text_put_back(reader->text);
    *reader->link = reader->next;
    if (reader->next)
        reader->next->link = reader->link;
    reader->group->reader_count--;
    reader->live->readers--;
    bh_mutex_unlock(&reader->live->mutex);
    free(reader);
}

/* ---- joining ---- */

/* The page's address taken apart; false: no such page. */
static bool
live_read_address(struct live_group *group, const char *address, struct bh_arena *arena)
{
    size_t length = strcspn(address, "?");
    const char *query = address[length] ? address + length + 1 : "", *id;
    const char *path = bh_arena_strndup(arena, address, length);

    if (!path || (query[0] && bh_form_parse(query, strlen(query), &group->parameters) != BH_FAULT_NONE))
        return false;
    group->view = bh_site_view_find(path, arena, &id);
    if (group->view == BH_SITE_VIEWS)
        return false;
    group->address = strdup(path);
    group->id = strdup(id);
    BH_ASSERT(group->address && group->id);
    return true;
}

static struct live_group *
live_group_new(struct bh_page *page, const char *address)
{
    struct live_group *group = calloc(1, sizeof *group);

    BH_ASSERT(group);
    if (!live_read_address(group, address, page->request->arena)) {
        free(group);
        return NULL;
    }
    memcpy(group->session, page->session, sizeof group->session);
    group->rights = live_rights_of(bh_page_whoami(page));
    group->due = BH_LIVE_JOBS; /* what has no version yet is rendered whatever is due */
    snprintf(group->person, sizeof group->person, "%s", page->reply->who);
    group->transport = *page->request->transport;
    for (const struct bh_panel_row *row = bh_panel_rows(); row->id; row++) {
        if (row->view != group->view || !row->live)
            continue;
        BH_ASSERT(group->panel_count < PANELS_MAX);
        group->panels[group->panel_count++].row = row;
    }
    return group;
}

static bool
live_is_same(const struct live_group *a, const struct live_group *b)
{
    if (a->over || strcmp(a->session, b->session) != 0 || strcmp(a->address, b->address) != 0
        || a->parameters.count != b->parameters.count)
        return false;
    for (uint32_t i = 0; i < a->parameters.count; i++)
        if (strcmp(a->parameters.pairs[i].name, b->parameters.pairs[i].name) != 0
            || strcmp(a->parameters.pairs[i].value, b->parameters.pairs[i].value) != 0)
            return false;
    return true;
}

/* What stands against one more reader of `mine`, whose group is there already or NULL; NULL: nothing. */
static const char *
live_find_bound(const struct bh_live *live, const struct live_group *mine, const struct live_group *there)
{
    uint32_t readers = 0, pages = 0;

    for (const struct live_group *group = live->groups; group; group = group->next)
        if (strcmp(group->person, mine->person) == 0) {
            readers += group->reader_count;
            pages += group->readers && !group->over;
        }
    if (readers >= live->limits.readers_each || (!there && pages >= live->limits.pages_each))
        return "You have too many pages open: close some.";
    return live->readers >= live->limits.readers ? "Too many pages of this site are open." : NULL;
}

/* The group that is there already, or this one; NULL: there are too many, as *ret_crowded says. */
static struct live_group *
live_join(struct bh_live *live, struct live_group *mine, struct live_reader *reader, const char **ret_crowded)
{
    struct live_group *group = live->groups;

    while (group && !live_is_same(group, mine))
        group = group->next;
    *ret_crowded = live_find_bound(live, mine, group);
    if (*ret_crowded)
        return NULL;
    if (!group) {
        mine->next = live->groups;
        live->groups = group = mine;
        live->fresh = true;
    }
    reader->group = group;
    reader->next = group->readers;
    reader->link = &group->readers;
    if (group->readers)
        group->readers->link = &reader->next;
    group->readers = reader;
    group->reader_count++;
    live->readers++;
    return group;
}

/* "ID:VERSION,...": the version of that section which the page has. */
static uint64_t
live_find_version(const char *have, const char *id)
{
    size_t length = strlen(id);

    for (; *have; have += strcspn(have, ","), have += *have == ',')
        if (strncmp(have, id, length) == 0 && have[length] == ':')
            return strtoull(have + length + 1, NULL, 16);
    return BH_PANEL_ABSENT;
}

static struct live_reader *
live_reader_new(struct bh_live *live, const struct live_group *group, const char *have)
{
    struct live_reader *reader = calloc(1, sizeof *reader);

    BH_ASSERT(reader);
    reader->live = live;
    for (uint32_t i = 0; i < group->panel_count; i++)
        reader->seen[i] = live_find_version(have, group->panels[i].row->id);
    return reader;
}

static void
live_answer_with_events(struct bh_page *page)
{
    page->reply->status = 200;
    page->reply->content_type = "text/event-stream";
}

void
bh_live_refuse_over(struct bh_page *page)
{
    live_answer_with_events(page);
    bh_buf_puts(&page->reply->body, live_over);
}

void
bh_live_refuse_crowded(struct bh_page *page, const char *text)
{
    struct bh_buf *out = &page->reply->body;
    struct bh_json_writer w;

    live_answer_with_events(page);
    bh_buf_puts(out, "event: crowded\ndata: ");
    w = bh_json_begin(out);
    bh_json_open(&w, NULL, '{');
    bh_json_str(&w, "text", text);
    bh_json_close(&w, '}');
    bh_buf_puts(out, "\n\n");
}

/* A stream for the page; else what stands against it, as an event. */
static void
live_follow(struct bh_page *page, struct live_group *mine)
{
    struct bh_live *live = page->web->live;
    struct live_reader *reader = live_reader_new(live, mine, bh_page_field(page, "have"));
    const char *crowded;
    struct live_group *group;

    bh_mutex_lock(&live->mutex);
    group = live_join(live, mine, reader, &crowded);
    bh_mutex_unlock(&live->mutex);
    if (group != mine)
        live_group_free(mine);
    if (group) {
        live_answer_with_events(page);
        page->reply->stream = (struct bh_stream){ live_begin, live_read, live_close, reader };
        return;
    }
    free(reader);
    bh_live_refuse_crowded(page, crowded);
}

/* Also who is not signed in is answered with an event, as the script follows no redirect. */
void
bh_show_live(struct bh_page *page)
{
    uint32_t status = page->session[0] ? bh_page_whoami(page)->status : 401;
    struct live_group *mine;

    if (status == 401) {
        bh_live_refuse_over(page);
        return;
    }
    if (status == 429 || status >= 500) {
        bh_page_error(page, status);
        return;
    }
    mine = page->web->live ? live_group_new(page, bh_page_field(page, "page")) : NULL;
    if (mine)
        live_follow(page, mine);
    else
        bh_page_error(page, 404);
}
