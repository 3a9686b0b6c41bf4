"""What administrators' deeds leave behind, held against the log: part of the closing audit.

Of each verb that changes something TRACES says where its trace is looked at; a verb of tables/operations.tbl
that stands nowhere here is a finding, so that a new operation says where its trace is."""
import pathlib
import re
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]
BY_VERIFIERS = "rows that both verifiers hold against the records"
BY_EVENT = "the engine's state, which is what the records' events say"
NOTHING = "changes nothing that stays"

# verb: a check below by its name, or what looks at it instead
TRACES = {
    "account.any": "accounts", "account.change": "accounts", "account.own": "accounts", "glass.break": "accounts",
    "session.own": "accounts", "audit.prune": "minimum", "key.rotate": BY_VERIFIERS, "key.shred": "requests",
    "site.apply": "events", "gpu.cordon": "events", "layout.apply": "events", "job.move": "events",
    "token.create": "tokens", "token.revoke": "tokens", "job.submit": BY_VERIFIERS, "job.cancel": BY_EVENT,
    "job.exec": NOTHING, "isolation.verify": NOTHING,
}

# event of the engine: the verbs that may bring it
EVENTS = {
    "cordon": {"gpu.cordon"}, "move": {"job.move"}, "standing": {"layout.apply"},
    **{event: {"site.change", "site.apply"} for event in ("settings", "sku", "sku_remove", "tenant", "tenant_remove")},
}


def operations():
    """(verb, kind) of each operation of the API."""
    text = (ROOT / "tables/operations.tbl").read_text()
    return re.findall(r'^BH_OPERATION\(\w+, *\w+, *"[^"]*", *"([^"]*)", *\w+, *(\w+),', text, re.M)


def untraced(verbs=None):
    """Verbs that change something and stand in no row of TRACES; what anybody may ask is signing in."""
    changing = {verb for verb, kind in operations() if kind == "MUTATE" and verb}
    return [f"deeds: nothing looks at what {verb} leaves behind" for verb in sorted((verbs or changing) - TRACES.keys())]


def document_kind(name):
    kinds = re.findall(r"^    BH_DOCUMENT_(\w+)", (ROOT / "src/ports/store.h").read_text(), re.M)
    return kinds.index(name)


def done(records, *verbs):
    """Records of what was carried out."""
    return [record for record in records if record["verb"] in verbs and record["res"] == "ok" and record.get("dec", {}).get("allow")]


def events(_, records):
    """Each privileged event of the engine is in a record of the verb that may bring it."""
    return [f"deeds: record {record['seq']} is {record['verb']}, and brings the event {event}"
            for record in records for event in record.get("ev", {})
            if event in EVENTS and not (record["verb"] in EVENTS[event] and record.get("dec", {}).get("allow"))]


def tokens(database, records):
    """Each token was made, each that is revoked was revoked; a record names one by 53 bits of its secret's digest."""
    made, revoked = ({record["obj"]["id"] for record in done(records, verb)} for verb in ("token.create", "token.revoke"))
    wrong = []
    for name, secret, is_revoked in database.execute("SELECT id, secret, revoked FROM tokens"):
        number = struct.unpack("<Q", secret[:8])[0] >> 11
        if number not in made:
            wrong.append(f"deeds: no record makes the token {name}")
        if is_revoked and number not in revoked:
            wrong.append(f"deeds: no record revokes the token {name}")
    return wrong


def accounts(database, records):
    """For each user with an account, passkey or session records say so; and for no more than there are."""
    verbs = {"PASSKEY": ("account.passkey",), "SESSION": ("session.open",),
             "ACCOUNT": tuple({r["verb"] for r in records if r["verb"].startswith(("account.", "sign_in.", "session."))})}
    wrong = []
    for kind, of in verbs.items():
        rows = database.execute("SELECT principal_id, count(*) FROM documents WHERE kind = ? GROUP BY principal_id", (document_kind(kind),))
        for person, count in rows:
            told = [r for r in done(records, *of) if person in (r.get("actor", {}).get("id"), r.get("obj", {}).get("id"))]
            if count > len(told):
                wrong.append(f"deeds: principal {person} has {count} of {kind.lower()}, and {len(told)} records tell of it")
    return wrong


def minimum(database, records):
    """How far the log is pruned, a record says."""
    row = database.execute("SELECT value FROM meta WHERE key = 'minimum'").fetchone()
    told = {record["obj"].get("id", 0) for record in done(records, "audit.prune")} | {0}
    return [] if not row or int(row[0]) in told else [f"deeds: the log begins with record {row[0]}, and no record prunes it"]


def requests(database, records):
    """Who asked for keys to be destroyed is in a record of it."""
    askers = {record["actor"]["id"] for record in done(records, "key.shred.ask", "name.erase.ask") if "actor" in record}
    rows = database.execute("SELECT key, value FROM meta WHERE key LIKE 'shred%' AND value != ''")
    return [f"deeds: principal {value.split()[0]} asks to destroy keys ({key}), and no record says so"
            for key, value in rows if int(value.split()[0]) not in askers]


def find(database, records, is_pruned):
    """What the store has that no deed in the records explains; pruned records are unknown."""
    checks = (events, minimum) if is_pruned else (events, minimum, tokens, accounts, requests)
    return untraced() + [text for check in checks for text in check(database, records)]
