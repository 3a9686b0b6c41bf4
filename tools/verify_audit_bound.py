"""What records rows.bind carry on of those that were pruned: what these said of rows.

A part of verify_audit.py, which stands beside it; written apart from the C code, like that.
"""
import re

WORD, DIGEST, NUMBER = ".{1,23}", "[0-9a-f]{64}", "[1-9][0-9]{0,19}"
U32, SAFE, U64 = 2**32 - 1, 2**53 - 1, 2**64 - 1
DOCUMENTS = ("receipt", "revision", "image")
AT_ONCE = 64


def word32(value):
    return type(value) is int and 0 < value <= U32


def word64(value):
    """What a double does not hold is a text."""
    return type(value) is int and 0 < value <= SAFE or isinstance(value, str) and re.fullmatch(NUMBER, value) is not None and SAFE < int(value) <= U64


def moment(value):
    return isinstance(value, str) and re.fullmatch(NUMBER, value) is not None and int(value) <= U64


def digest(value):
    return isinstance(value, str) and re.fullmatch(DIGEST, value) is not None and int(value, 16) > 0


def word(value):
    return isinstance(value, str) and 0 < len(value.encode()) < 24 and not re.search("[\0-\x1f\x7f]", value)


def yes(value):
    return value is True


def status(value):
    return type(value) is int and -2**31 <= value < 2**31 and value != 0


def or_zero(check):
    return lambda value: value == 0 and type(value) is int or check(value)


def any_digest(value):
    return isinstance(value, str) and re.fullmatch(DIGEST, value) is not None


# Of each list: the form of each member of an item, and those that none is without.
ITEMS = {
    "documents": ({"at_ns": moment, "digest": any_digest, "kind": lambda value: value in DOCUMENTS, "number": or_zero(word64), "optional": yes, "principal": word32,
                   "record": word64}, {"digest", "kind", "number"}),
    "jobs": ({"cause": word, "checkpoint_signal": word32, "contract": word, "count": word32, "deadline_ns": moment, "ended_ns": moment, "exit_status": status,
              "gang": word32, "job": or_zero(word64), "kind": word, "place": digest, "placed_by": word64, "principal": word32, "priority": word32, "record": word64,
              "sku": word32, "spec": digest, "started_ns": moment, "started_unknown": yes, "state": word, "stated_by": word64, "submitted_ns": moment,
              "tenant": word32, "time_limit_ns": moment}, {"job"}),
    "keys": ({"destroyed": word64, "destroyed_ns": moment, "digest": digest, "id": or_zero(word64), "made": word64, "made_ns": moment, "tenant": word32}, {"id"}),
    "owners": ({"at_ns": moment, "id": or_zero(word32), "record": word64}, {"id"}),
    "texts": ({"at_ns": moment, "digest": any_digest, "elsewhere": yes, "for_ever": yes, "older": yes, "record": word64, "tenant": word32}, {"digest"}),
    "tokens": ({"digest": digest, "expires_ns": moment, "made": word64, "number": or_zero(word64), "owner": word32, "revoked": word64}, {"number"}),
}


def read(event):
    """What the "ev" of such a record says; ValueError when it does not have the form of one."""
    bound = event.get("bound") if isinstance(event, dict) and set(event) == {"bound"} else None
    if not isinstance(bound, dict) or not {"from"} <= set(bound) <= {"from", "older", *ITEMS} or not or_zero(word64)(bound["from"]) \
            or bound.get("older", True) is not True:
        raise ValueError("it binds rows, and does not say which")
    for name, (forms, must) in ITEMS.items():
        items = bound.get(name, [None]) if name in bound else []
        if not isinstance(items, list) or name in bound and not 0 < len(items) <= AT_ONCE:
            raise ValueError(f"its {name} are no list")
        for item in items:
            if not isinstance(item, dict) or not must <= set(item) <= set(forms) or not all(forms[key](value) for key, value in item.items()):
                raise ValueError(f"one of its {name} does not have the form of one")
    return bound


def number(item, key):
    return int(item.get(key, 0))


def take(claims, event, minimum):
    """Into the claims; what is known from records that are left, or later, stays."""
    bound = read(event)
    for name, into in (("documents", take_document), ("jobs", take_job), ("keys", take_key), ("owners", take_owner), ("texts", take_text), ("tokens", take_token)):
        for item in bound.get(name, ()):
            into(claims, item)
    claims.older = claims.older or "older" in bound
    if int(bound["from"]) <= claims.carried_to:
        claims.carried_to = max(claims.carried_to, minimum)


def take_token(claims, item):
    token = claims.tokens.setdefault(number(item, "number"), {})
    if "revoked" in item:
        token.setdefault("revoked", int(item["revoked"]))
    if "made" in item and "made" not in token:
        token.update(made=int(item["made"]), digest=item.get("digest"), owner=item.get("owner", 0), expires=number(item, "expires_ns"))


def take_owner(claims, item):
    record = number(item, "record")
    if record > claims.forgotten.get(item["id"], (0, 0))[0]:
        claims.forgotten[item["id"]] = (record, number(item, "at_ns"))


def take_key(claims, item):
    key = claims.key_of(number(item, "id"), item.get("tenant", 0))
    if "destroyed" in item and "destroyed" not in key:
        key.update(destroyed=int(item["destroyed"]), destroyed_ns=number(item, "destroyed_ns"))
    if "made" in item and "made" not in key:
        key.update(made=int(item["made"]), made_ns=number(item, "made_ns"), tenant=item.get("tenant", 0), digest=item.get("digest"))


def take_document(claims, item):
    which = (item["kind"], int(item["number"]))
    if which in claims.documents:
        return
    claims.documents[which] = (number(item, "record"), item["digest"], number(item, "at_ns") or None, item.get("principal", 0))
    if "optional" in item:
        claims.optional.add(which)


def take_text(claims, item):
    """The first record that names a text says whose it is."""
    if "for_ever" in item:
        claims.for_ever.add(item["digest"])
    known = claims.texts.get(item["digest"])
    if known is None or known["record"] > number(item, "record"):
        claims.texts[item["digest"]] = {"record": number(item, "record"), "at": number(item, "at_ns"), "tenant": item.get("tenant", 0),
                                        "older": "older" in item, "elsewhere": "elsewhere" in item}


def take_job(claims, item):
    job = claims.jobs.setdefault(number(item, "job"), {})
    if "record" in item and "record" not in job:
        job.update(record=int(item["record"]), submitted=number(item, "submitted_ns"), spec=item.get("spec", "0" * 64),
                   **{key: item.get(key, 0) for key in ("tenant", "principal", "sku", "count")})
        if "kind" in item:
            job["columns"] = {**{key: item.get(key, 0) for key in ("gang", "priority", "checkpoint_signal")}, "kind": item["kind"],
                              "contract": item.get("contract", ""), **{key: number(item, key) for key in ("time_limit_ns", "deadline_ns")}}
    if "stated_by" in item:
        take_state(job, item)
    if "placed_by" in item and ("place" not in job or int(item["placed_by"]) > job["placed"]):
        job.update(place=item.get("place", "0" * 64), placed=int(item["placed_by"]))


def take_state(job, item):
    """When it began stays what the last record before its end said."""
    started = None if "started_unknown" in item else number(item, "started_ns")
    if "stated" in job and int(item["stated_by"]) < job["stated"]:
        if job["started"] is None:
            job["started"] = started
        return
    job.update(stated=int(item["stated_by"]), state=item.get("state", ""), started=started, ended=number(item, "ended_ns"), cause=item.get("cause", ""),
               status=item.get("exit_status", 0))
