#include "audit/record.h"

#include <string.h>

#include "audit/binding.h"
#include "audit/canonical.h"
#include "audit/job_status.h"
#include "audit/sealed.h"
#include "base/json.h"
#include "base/num.h"
#include "base/slice.h"

static const char *const phase_names[BH_PHASES] = {
    [BH_PHASE_INTENT] = "intent",
    [BH_PHASE_OUTCOME] = "outcome",
    [BH_PHASE_EVENT] = "event",
};

const char *const bh_via_names[BH_VIAS] = {
    [BH_VIA_SYSTEM] = "system",
    [BH_VIA_PEER] = "peer",
    [BH_VIA_TOKEN] = "token",
    [BH_VIA_SESSION] = "session",
    [BH_VIA_CERTIFICATE] = "certificate",
};

/* ---- writing: one function per member, in byte order of the keys ---- */

/* Begin a member: `opening` holds everything up to its value. */
static void
record_put_key(struct bh_buf *out, const char *key)
{
    bh_buf_puts(out, out->length > 0 && out->bytes[out->length - 1] == '{' ? "\"" : ",\"");
    bh_buf_puts(out, key);
    bh_buf_put(out, "\":", 2);
}

static bool
record_is_set(const void *bytes, size_t length)
{
    const uint8_t *byte = bytes;

    for (size_t i = 0; i < length; i++)
        if (byte[i])
            return true;
    return false;
}

static void
record_put_number(struct bh_buf *out, const char *key, uint64_t value)
{
    if (value == 0)
        return;
    record_put_key(out, key);
    bh_json_put_u64(out, value);
}

static void
record_put_text(struct bh_buf *out, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    record_put_key(out, key);
    bh_json_put_str(out, text);
}

static void
record_put_hex(struct bh_buf *out, const char *key, const uint8_t *bytes, size_t length)
{
    if (!record_is_set(bytes, length))
        return;
    record_put_key(out, key);
    bh_buf_putc(out, '"');
    bh_buf_put_hex(out, bytes, length);
    bh_buf_putc(out, '"');
}

static void
record_put_json(struct bh_buf *out, const char *key, const char *json)
{
    if (!json)
        return;
    record_put_key(out, key);
    bh_buf_puts(out, json);
}

static void
record_put_actor(struct bh_buf *out, const struct bh_record_actor *actor)
{
    if (!actor->id && !actor->via && !actor->uid && !actor->token[0])
        return;
    record_put_key(out, "actor");
    bh_buf_putc(out, '{');
    record_put_number(out, "id", actor->id);
    record_put_text(out, "token", actor->token);
    record_put_number(out, "uid", actor->uid);
    record_put_text(out, "via", bh_via_names[actor->via]);
    bh_buf_putc(out, '}');
}

static void
record_put_decision(struct bh_buf *out, const struct bh_record_decision *dec)
{
    if (!dec->allow && !dec->rule)
        return;
    record_put_key(out, "dec");
    bh_buf_puts(out, dec->allow ? "{\"allow\":true" : "{\"allow\":false");
    record_put_number(out, "rule", dec->rule);
    bh_buf_putc(out, '}');
}

static void
record_put_object(struct bh_buf *out, const struct bh_record_object *obj)
{
    if (!obj->id && !obj->type[0])
        return;
    record_put_key(out, "obj");
    bh_buf_putc(out, '{');
    record_put_number(out, "id", obj->id);
    record_put_text(out, "type", obj->type);
    bh_buf_putc(out, '}');
}

static void
record_put_seq(struct bh_buf *out, uint64_t seq)
{
    record_put_key(out, "seq");
    bh_json_put_u64(out, seq);
}

static void
record_put_time(struct bh_buf *out, uint64_t ts_ns, uint32_t version)
{
    bh_buf_puts(out, ",\"ts\":\"");
    bh_buf_put_u64(out, ts_ns);
    bh_buf_puts(out, "\",\"v\":");
    bh_buf_put_u64(out, version ? version : BH_RECORD_VERSION);
}

void
bh_record_encode(struct bh_buf *out, const struct bh_record *record)
{
    bh_buf_putc(out, '{');
    record_put_actor(out, &record->actor);
    record_put_number(out, "boot", record->boot);
    record_put_number(out, "count", record->count);
    record_put_decision(out, &record->dec);
    record_put_json(out, "do", record->do_json);
    record_put_json(out, "ev", record->ev_json);
    record_put_json(out, "jobs", record->jobs_json);
    record_put_json(out, "names", record->names_json);
    record_put_object(out, &record->obj);
    record_put_number(out, "order", record->order);
    record_put_text(out, "orders", record->orders);
    record_put_text(out, "phase", phase_names[record->phase]);
    record_put_hex(out, "req", record->req, sizeof record->req);
    record_put_text(out, "res", record->res);
    record_put_hex(out, "salt", record->salt, sizeof record->salt);
    record_put_json(out, "sealed", record->sealed_json);
    record_put_seq(out, record->seq);
    record_put_number(out, "tenant", record->tenant);
    record_put_hex(out, "text", record->text, sizeof record->text);
    record_put_time(out, record->ts_ns, record->version);
    record_put_text(out, "verb", record->verb);
    bh_buf_putc(out, '}');
}

/* ---- reading: a table with one row per key, in the same order ---- */

struct record_reader {
    struct bh_record record;
    char *scratch; /* next free byte */
};

static bool
record_read_u64(struct bh_slice value, uint64_t *ret)
{
    return bh_slice_u64(value, ret);
}

static bool
record_read_u32(struct bh_slice value, uint32_t *ret)
{
    uint64_t wide;

    if (!bh_slice_u64(value, &wide) || wide > UINT32_MAX)
        return false;
    *ret = (uint32_t)wide;
    return true;
}

static bool
record_read_hex(struct bh_slice value, uint8_t *ret, size_t bytes)
{
    char digits[2 * 32 + 1];

    return bytes <= 32 && bh_slice_str(value, digits, sizeof digits) && bh_parse_hex(digits, ret, bytes);
}

/* A string, unescaped into the scratch. */
static bool
record_read_text(struct record_reader *r, struct bh_slice value, const char **ret)
{
    if (!bh_slice_str(value, r->scratch, value.length))
        return false;
    *ret = r->scratch;
    r->scratch += strlen(r->scratch) + 1;
    return true;
}

static bool
record_read_json(struct record_reader *r, struct bh_slice value, const char **ret)
{
    memcpy(r->scratch, value.text, value.length);
    r->scratch[value.length] = '\0';
    *ret = r->scratch;
    r->scratch += value.length + 1;
    return true;
}

static bool
record_read_name(struct bh_slice value, const char *const *names, unsigned count, unsigned *ret)
{
    char name[24];

    if (!bh_slice_str(value, name, sizeof name))
        return false;
    for (unsigned i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

static bool
record_decode_actor(struct record_reader *r, struct bh_slice value)
{
    struct bh_record_actor *actor = &r->record.actor;
    struct bh_slice part;
    unsigned via = 0;

    if (bh_slice_get(value, "id", &part) && !record_read_u32(part, &actor->id))
        return false;
    if (bh_slice_get(value, "token", &part) && !bh_slice_str(part, actor->token, sizeof actor->token))
        return false;
    if (bh_slice_get(value, "uid", &part) && !record_read_u32(part, &actor->uid))
        return false;
    if (bh_slice_get(value, "via", &part) && !record_read_name(part, bh_via_names, BH_VIAS, &via))
        return false;
    actor->via = (enum bh_via)via;
    return true;
}

static bool
record_decode_boot(struct record_reader *r, struct bh_slice value)
{
    return record_read_u32(value, &r->record.boot);
}

static bool
record_decode_count(struct record_reader *r, struct bh_slice value)
{
    return record_read_u64(value, &r->record.count) && r->record.count >= 2;
}

static bool
record_decode_decision(struct record_reader *r, struct bh_slice value)
{
    struct bh_slice part;

    if (bh_slice_get(value, "rule", &part) && !record_read_u32(part, &r->record.dec.rule))
        return false;
    r->record.dec.allow =
        bh_slice_get(value, "allow", &part) && part.length == 4 && memcmp(part.text, "true", 4) == 0;
    return true;
}

static bool
record_decode_do(struct record_reader *r, struct bh_slice value)
{
    return record_read_json(r, value, &r->record.do_json);
}

static bool
record_decode_event(struct record_reader *r, struct bh_slice value)
{
    return record_read_json(r, value, &r->record.ev_json);
}

static bool
record_decode_jobs(struct record_reader *r, struct bh_slice value)
{
    return bh_job_status_is_list(value) && record_read_json(r, value, &r->record.jobs_json);
}

static bool
record_decode_names(struct record_reader *r, struct bh_slice value)
{
    return bh_binding_is_list(value) && record_read_json(r, value, &r->record.names_json);
}

static bool
record_decode_object(struct record_reader *r, struct bh_slice value)
{
    struct bh_record_object *obj = &r->record.obj;
    struct bh_slice part;

    if (bh_slice_get(value, "id", &part) && !record_read_u64(part, &obj->id))
        return false;
    return !bh_slice_get(value, "type", &part) || bh_slice_str(part, obj->type, sizeof obj->type);
}

static bool
record_decode_order(struct record_reader *r, struct bh_slice value)
{
    return record_read_u64(value, &r->record.order);
}

static bool
record_decode_orders(struct record_reader *r, struct bh_slice value)
{
    return record_read_text(r, value, &r->record.orders);
}

static bool
record_decode_phase(struct record_reader *r, struct bh_slice value)
{
    unsigned phase;

    if (!record_read_name(value, phase_names, BH_PHASES, &phase))
        return false;
    r->record.phase = (enum bh_phase)phase;
    return true;
}

static bool
record_decode_request(struct record_reader *r, struct bh_slice value)
{
    return record_read_hex(value, r->record.req, sizeof r->record.req);
}

static bool
record_decode_result(struct record_reader *r, struct bh_slice value)
{
    return record_read_text(r, value, &r->record.res);
}

static bool
record_take_salt(struct record_reader *r, struct bh_slice value)
{
    return record_read_hex(value, r->record.salt, sizeof r->record.salt);
}

static bool
record_decode_sealed(struct record_reader *r, struct bh_slice value)
{
    return bh_sealed_is_list(value) && record_read_json(r, value, &r->record.sealed_json);
}

static bool
record_decode_seq(struct record_reader *r, struct bh_slice value)
{
    return record_read_u64(value, &r->record.seq);
}

static bool
record_decode_tenant(struct record_reader *r, struct bh_slice value)
{
    return record_read_u32(value, &r->record.tenant);
}

static bool
record_decode_digest(struct record_reader *r, struct bh_slice value)
{
    return record_read_hex(value, r->record.text, sizeof r->record.text);
}

static bool
record_decode_time(struct record_reader *r, struct bh_slice value)
{
    return record_read_u64(value, &r->record.ts_ns);
}

static bool
record_decode_version(struct record_reader *r, struct bh_slice value)
{
    const struct bh_record *record = &r->record;
    uint32_t *version = &r->record.version;

    if (!record_read_u32(value, version))
        return false;
    if (*version < 4 && record_is_set(record->salt, sizeof record->salt))
        return false;
    if (*version < 4 && record->jobs_json
        && bh_job_status_has_row((struct bh_slice){ record->jobs_json, strlen(record->jobs_json) }))
        return false;
    return *version >= 1 && *version <= BH_RECORD_VERSION && (*version > 1 || !record->orders)
           && (*version > 2 || (!record->jobs_json && !record->names_json && !record->count));
}

static bool
record_decode_verb(struct record_reader *r, struct bh_slice value)
{
    return record_read_text(r, value, &r->record.verb);
}

static const struct member {
    const char *key;
    bool (*decode)(struct record_reader *r, struct bh_slice value);
    /* clang-format off */
} members[] = {
    { "actor", record_decode_actor }, { "boot", record_decode_boot },   { "count", record_decode_count },
    { "dec", record_decode_decision }, { "do", record_decode_do },      { "ev", record_decode_event },
    { "jobs", record_decode_jobs },   { "names", record_decode_names }, { "obj", record_decode_object },
    { "order", record_decode_order }, { "orders", record_decode_orders }, { "phase", record_decode_phase },
    { "req", record_decode_request }, { "res", record_decode_result },  { "salt", record_take_salt },
    { "sealed", record_decode_sealed }, { "seq", record_decode_seq },   { "tenant", record_decode_tenant },
    { "text", record_decode_digest }, { "ts", record_decode_time },     { "v", record_decode_version },
    { "verb", record_decode_verb },
};
/* clang-format on */

/* Whether `"key":` stands at `at`; steps over it. */
static bool
record_step_key(const char **at, const char *end, const char *key)
{
    size_t length = strlen(key);

    if ((size_t)(end - *at) < length + 3 || (*at)[0] != '"' || memcmp(*at + 1, key, length) != 0
        || memcmp(*at + 1 + length, "\":", 2) != 0)
        return false;
    *at += length + 3;
    return true;
}

static bh_rc
record_read_members(struct record_reader *r, struct bh_slice leaf, struct bh_err *err)
{
    const char *at = leaf.text + 1, *end = leaf.text + leaf.length;

    for (size_t i = 0; i < BH_COUNT(members); i++) {
        struct bh_slice value;

        if (!record_step_key(&at, end, members[i].key))
            continue;
        value = (struct bh_slice){ at, bh_canonical_step(at, (size_t)(end - at)) };
        if (value.length == 0 || !members[i].decode(r, value))
            return bh_err_set(err, BH_INVALID, "record is malformed: bad value of \"%s\"", members[i].key);
        at += value.length;
        if (at < end && *at == ',')
            at++;
    }
    if (end - at != 1 || *at != '}')
        return bh_err_set(err, BH_INVALID, "record is malformed: unknown key or wrong order at byte %zu",
                          (size_t)(at - leaf.text));
    return BH_OK;
}

/* What the reader skipped, such as members that should have been left out, shows as a
 * difference between the leaf and what we would have written. */
static bh_rc
record_check_canonical(const struct bh_record *record, struct bh_slice leaf, struct bh_err *err)
{
    char again[BH_RECORD_BYTES_MAX];
    struct bh_buf out;
    size_t same = 0;

    bh_buf_init_fixed(&out, again, sizeof again);
    bh_record_encode(&out, record);
    if (!out.overflow && out.length == leaf.length && memcmp(again, leaf.text, leaf.length) == 0)
        return BH_OK;
    while (same < leaf.length && same < out.length && again[same] == leaf.text[same])
        same++;
    return bh_err_set(err, BH_INVALID, "record is not canonical at byte %zu", same);
}

bh_rc
bh_record_decode(const char *leaf, size_t length, char *scratch, struct bh_record *ret_record,
                 struct bh_err *err)
{
    struct record_reader r = { .scratch = scratch };
    struct bh_slice text = { leaf, length };
    bh_rc rc;

    if (length > BH_RECORD_BYTES_MAX)
        return bh_err_set(err, BH_INVALID, "record is longer than %d bytes", BH_RECORD_BYTES_MAX);
    if (length < 2 || leaf[0] != '{')
        return bh_err_set(err, BH_INVALID, "record is malformed: not an object");
    rc = record_read_members(&r, text, err);
    if (rc != BH_OK)
        return rc;
    rc = record_check_canonical(&r.record, text, err);
    if (rc != BH_OK)
        return rc;
    *ret_record = r.record;
    return BH_OK;
}
