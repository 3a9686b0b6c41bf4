#!/usr/bin/env python3
"""Verify an exported audit log of Bulkhead, a copy of its store, or a proof, with nothing of Bulkhead.

usage: verify_audit.py DIR [--vkey FILE] [--kept FILE]... [--witness FILE [--quorum N]]
       verify_audit.py --store FILE --vkey FILE [--kept FILE]... [--witness FILE [--quorum N]]
       verify_audit.py --proof FILE [--record FILE] --vkey FILE

DIR is what `bulkhead audit export` wrote: a log in C2SP's tlog-tiles layout.  Every record
is hashed again, every tile compared, the root compared with the signed checkpoint; records
must be numbered without gaps, their times must not go back, and an outcome must answer an
order that an earlier record gave and none answered before.  --kept names checkpoints of the same log that were kept
elsewhere: only they show that a log was cut and signed again; with --witness, a file of
witnesses' keys, N of those (or all) must have cosigned each, or else DIR's.  Without --vkey the key in
DIR is taken, which proves only that DIR agrees with itself.

The files names, jobs and texts in DIR, and those tables of a store, say what ids and digests
stand for.  They are not signed, but bound by the records: each row is held against them.

Status: 0 good, 1 bad, 2 usage, 3 what is given as a key or as a proof is none, 5 something is missing.  Needs Python 3.9 and nothing
else; the module `cryptography`, where it is installed, is used for signatures.
Written apart from the C code, from C2SP's and the IETF's texts, so that it can disagree.
"""
import base64
import binascii
import contextlib
import functools
import hashlib
import json
import pathlib
import re
import sqlite3
import sys

from verify_audit_rows import ERASED, LATE_NS, SAFE, U32, Claims, check_jobs, check_names, compare_store, fits, in_range, is_moment, is_number, parse, read_row

TILE = 256
ANSWERS = {"c": "node.carved", "d": "node.destroyed", "s": "node.started", "p": "node.suspended", "r": "node.resumed",
           "z": "node.reset", "q": "node.tested"}
LEVELS_MAX, RECORD_BYTES_MAX = 32, 65535
SEALED_BYTES_MAX, SEALED_FRAME = 8192, len('{"c":"","h":"","k":"","n":""}')
ORDER_BITS = 12  # an order is the number of the record that gave it, and a place below 4096


UNREAD = (5, 6, 14, 10, 3, 7, 13, 8, 23, 9, 15)  # SQLite's: busy, locked, cannot open, I/O error, ...


class Bad(Exception):
    """The log is not what was signed."""


class Malformed(Bad):
    """What should be a key, a note or a proof is none."""


class Missing(Exception):
    """A file is not there."""


def sha256(data):
    return hashlib.sha256(data).digest()


def unbase64(text, length=None):
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as wrong:
        raise Malformed(f"no base 64: {text[:60]!r}") from wrong
    # Python overlooks stray bits at the end.
    if base64.b64encode(data).decode() != text or (length is not None and len(data) != length):
        raise Malformed(f"no base 64 of {length} bytes: {text[:60]!r}")
    return data


# ---- Ed25519 (RFC 8032, 5.1.7 and 5.1.3) ----

P = 2**255 - 19
Q = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def x_of(y, sign):
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    return P - x if x & 1 != sign else x


def point(data):
    number = int.from_bytes(data, "little")
    y, sign = number & (1 << 255) - 1, number >> 255
    x = x_of(y, sign)
    return None if x is None else (x, y, 1, x * y % P)


def add(a, b):
    e, f = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    g, h = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    i, j, k, m = f - e, h - g, h + g, f + e
    return i * j % P, k * m % P, j * k % P, i * m % P


def times(scalar, a):
    total = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            total = add(total, a)
        a, scalar = add(a, a), scalar >> 1
    return total


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE = (x_of(BASE_Y, 0), BASE_Y, 1, x_of(BASE_Y, 0) * BASE_Y % P)


def own_verify(key, message, signature):
    a, r = point(key), point(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if a is None or r is None or s >= Q:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + key + message).digest(), "little") % Q
    left, right = times(s, BASE), add(r, times(h, a))
    return (left[0] * right[2] - right[0] * left[2]) % P == 0 and (left[1] * right[2] - right[1] * left[2]) % P == 0


@functools.lru_cache(maxsize=64)
def verify_signature(key, message, signature):
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        return own_verify(key, message, signature)
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        return True
    except (InvalidSignature, ValueError):
        return False


# ---- signed notes and checkpoints (C2SP) ----

def parse_vkey(text, kind=1):
    """(name, public key, key id); of kind 4 are witnesses."""
    try:
        name, number, key = text.strip().split("+", 2)
    except ValueError as wrong:
        raise Malformed("the public key is not name+id+key") from wrong
    data = unbase64(key, 33)
    if data[0] != kind or sha256(name.encode() + b"\n" + data)[:4].hex() != number:
        raise Malformed("the public key is not Ed25519, or does not have its id")
    return name, data[1:], bytes.fromhex(number)


def cosigned(data, witness):
    """Whether the witness cosigned the checkpoint (C2SP tlog-cosignature); Bad when badly."""
    name, key, number = witness
    body, _, lines = data.decode().rpartition("\n\n")
    for line in lines.split("\n"):
        match = re.fullmatch("\u2014 ([^ ]+) (.+)", line)
        signature = unbase64(match[2]) if match and match[1] == name else b""
        if signature[:4] != number or len(signature) != 76:
            continue
        message = f"cosignature/v1\ntime {int.from_bytes(signature[4:12], 'big')}\n{body}\n".encode()
        if not verify_signature(key, message, signature[12:]):
            raise Bad(f"checkpoint: bad cosignature of {name}")
        return True
    return False


def check_quorum(data, witnesses, quorum):
    found = sum(cosigned(data, witness) for witness in witnesses)
    if found < quorum:
        raise Bad(f"checkpoint: cosigned by {found} of {quorum} witnesses that it needs")


def parse_vkeys(text):
    """(name, keys by their ids): keys of one name that followed each other, one a line."""
    keys = [parse_vkey(line) for line in text.split("\n") if line]
    if not keys or len({name for name, _, _ in keys}) != 1:
        raise Malformed("no public key, or keys of several names")
    return keys[0][0], {number: key for _, key, number in keys}


def open_checkpoint(data, vkeys):
    """(size, root) of a checkpoint that one of `vkeys` signed, and none of them badly."""
    name, keys = vkeys
    try:
        text = data.decode()
    except UnicodeDecodeError as wrong:
        raise Malformed("checkpoint: not UTF-8") from wrong
    body, blank, lines = text.rpartition("\n\n")
    if not blank or not lines.endswith("\n") or any(ord(c) < 32 and c != "\n" for c in text):
        raise Malformed("checkpoint: no signed note")
    body += "\n"
    signed = False
    for line in lines[:-1].split("\n"):
        match = re.fullmatch("\u2014 ([^ ]+) (.+)", line)
        if not match:
            raise Malformed("checkpoint: malformed signature line")
        if match[1] != name:
            continue
        signature = unbase64(match[2])
        if signature[:4] not in keys:
            continue
        if len(signature) != 68 or not verify_signature(keys[signature[:4]], body.encode(), signature[4:]):
            raise Bad("checkpoint: bad signature")
        signed = True
    if not signed:
        raise Bad(f"checkpoint: not signed by {name}")
    parts = body.split("\n")
    if len(parts) != 4 or not re.fullmatch("0|[1-9][0-9]*", parts[1]):
        raise Malformed("checkpoint: not three lines of origin, size and root")
    if parts[0] != name:
        raise Bad(f"checkpoint: it is of the log {parts[0]}, not of {name}")
    return int(parts[1]), unbase64(parts[2], 32)


# ---- the tree (RFC 6962) and its tiles (C2SP tlog-tiles) ----

def leaf_hash(record):
    return sha256(b"\0" + record)


def node(left, right):
    return sha256(b"\1" + left + right)


def root_of(hashes):
    """By pairs: a last one without a partner goes up as it is."""
    if not hashes:
        return sha256(b"")
    while len(hashes) > 1:
        above = [node(hashes[i], hashes[i + 1]) for i in range(0, len(hashes) - 1, 2)]
        hashes = above + hashes[len(above) * 2:]
    return hashes[0]


def roots_at(sizes, hashes):
    """The roots at many sizes, in one walk: subtrees are joined as soon as two are as large."""
    whole, roots = [], {}
    for count, leaf in enumerate(hashes, 1):
        whole.append((1, leaf))
        while len(whole) > 1 and whole[-1][0] == whole[-2][0]:
            right, left = whole.pop(), whole.pop()
            whole.append((2 * left[0], node(left[1], right[1])))
        if count in sizes:
            roots[count] = functools.reduce(lambda right, left: node(left[1], right), reversed(whole[:-1]), whole[-1][1])
    return roots


def tile_path(level, number, width):
    groups = [f"{number % 1000:03}"]
    while number >= 1000:
        number //= 1000
        groups.insert(0, f"x{number % 1000:03}")
    return f"tile/{level}/{'/'.join(groups)}" + (f".p/{width}" if width < TILE else "")


def tiles_of(count):
    """(number, width) of the tiles that `count` hashes fill."""
    return [(n, min(TILE, count - n * TILE)) for n in range((count + TILE - 1) // TILE)]


def split_bundle(path, data, width):
    records, at = [], 0
    for _ in range(width):
        length = int.from_bytes(data[at:at + 2], "big")
        if at + 2 + length > len(data):
            raise Bad(f"{path}: it ends within a record")
        records.append(data[at + 2:at + 2 + length])
        at += 2 + length
    if at != len(data):
        raise Bad(f"{path}: more stands behind its records")
    return records


def read_records(read, size):
    """All records and their hashes, each bundle compared with its tile at once.

    Records of a bundle that is missing are None: it may have been pruned."""
    records, hashes = [], []
    for number, width in tiles_of(size):
        path, beside = tile_path("entries", number, width), tile_path(0, number, width)
        try:
            data = read(path)
        except Missing:
            if width < TILE:
                raise
            tile = read(beside)
            if len(tile) != 32 * TILE:
                raise Bad(f"{beside}: it has {len(tile)} bytes")
            records += [None] * TILE
            hashes += [tile[i:i + 32] for i in range(0, len(tile), 32)]
            continue
        records += split_bundle(path, data, width)
        fresh = [leaf_hash(record) for record in records[number * TILE:]]
        if b"".join(fresh) != read(beside):
            raise Bad(f"{beside}: its hashes are not those of the records in {path}")
        hashes += fresh
    return records, hashes


def check_upper_tiles(read, hashes):
    level = 0
    while len(hashes) >= TILE:
        hashes = [root_of(hashes[i:i + TILE]) for i in range(0, len(hashes) - TILE + 1, TILE)]
        level += 1
        for number, width in tiles_of(len(hashes)):
            path = tile_path(level, number, width)
            if read(path) != b"".join(hashes[number * TILE:number * TILE + width]):
                raise Bad(f"{path}: its hashes are not those of the records")


# ---- records ----

def is_plain(value, levels=LEVELS_MAX):
    """Integers that a double holds, texts without NUL, and not nested deeper than so many levels."""
    if isinstance(value, (dict, list)):
        return levels > 0 and all(is_plain(item, levels - 1) for item in (value.values() if isinstance(value, dict) else value))
    return levels > 0 and (value is None or abs(value) <= SAFE if not isinstance(value, str) else "\0" not in value)


def parse_record(data):
    """A record, written the one way (RFC 8785, integers only)."""
    text = data.decode()
    value = parse(text)
    if len(data) > RECORD_BYTES_MAX or not isinstance(value, dict) or not all(map(is_plain, value.values())):
        raise ValueError("not an object of texts and integers, or too large")
    if json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")) != text:
        raise ValueError("not canonical")
    return value


# What a record's members are, and those of its objects, where they stand; what would be zero or empty does not.
ID = functools.partial(in_range, least=1, most=U32)
VIAS = ("system", "peer", "token", "session", "certificate")
ACTOR = {"id": ID, "token": lambda value: is_short(value), "uid": ID, "via": lambda value: value in VIAS}
DECISION = {"allow": lambda value: isinstance(value, bool), "rule": ID}
OBJECT = {"id": lambda value: is_number(value, 1), "type": lambda value: is_short(value)}
FORMS = {
    "actor": lambda value: has_form(value, ACTOR, {"via"}) and value != {"via": "system"}, "boot": ID, "count": lambda value: is_number(value, 2),
    "dec": lambda value: has_form(value, DECISION, {"allow"}) and value != {"allow": False}, "do": lambda value: True, "ev": lambda value: True,
    "jobs": lambda value: True, "names": lambda value: True, "obj": lambda value: has_form(value, OBJECT, set()) and value != {},
    "order": lambda value: is_number(value, 1), "orders": lambda value: is_short(value, RECORD_BYTES_MAX), "phase": lambda value: value in ("intent", "outcome", "event"),
    "req": lambda value: fits(value, "[0-9a-f]{32}") and int(value, 16) > 0, "res": lambda value: is_short(value, RECORD_BYTES_MAX),
    "salt": lambda value: fits(value, "[0-9a-f]{32}") and int(value, 16) > 0, "sealed": lambda value: True, "seq": is_number, "tenant": ID,
    "text": lambda value: fits(value, "[0-9a-f]{64}") and int(value, 16) > 0, "ts": lambda value: value == "0" or is_moment(value), "v": lambda value: in_range(value, 1, 4), "verb": lambda value: is_short(value, RECORD_BYTES_MAX),
}


def is_short(value, most=15):
    return isinstance(value, str) and 1 <= len(value.encode()) <= most


def has_form(value, forms, must):
    return isinstance(value, dict) and must <= set(value) <= set(forms) and all(forms[key](value[key]) for key in value)


def check_sealed(items):
    """The form of sealed texts; what is in them is for who has the keys."""
    form = {"c": "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})",
            "h": "[A-Za-z0-9+/]{43}=", "k": "0|[1-9][0-9]{0,15}", "n": "[A-Za-z0-9+/]{32}"}
    if not isinstance(items, list) or not 1 <= len(items) <= 8:
        raise ValueError("its sealed texts are no list of 1 to 8")
    for item in items:
        if not isinstance(item, dict) or set(item) != set(form) or not all(fits(item[key], form[key]) for key in form) \
                or sum(map(len, item.values())) + SEALED_FRAME > SEALED_BYTES_MAX:
            raise ValueError("a sealed text does not have the form of one")


def check_record(number, record, before):
    """Its place among the others; `before` is the record before it, or None."""
    if not has_form(record, FORMS, {"phase", "seq", "ts", "v"}):
        raise ValueError("it does not have the form of a record")
    if int(record["seq"]) != number:
        raise ValueError(f"it says it is record {record['seq']}")
    if before and record["v"] < before["v"] or record["v"] == 1 and "orders" in record \
            or record["v"] < 3 and any(key in record for key in ("count", "jobs", "names")) or record["v"] < 4 and "salt" in record:
        raise ValueError("it is not of the version of its time")
    if before and int(record["ts"]) < int(before["ts"]):
        raise ValueError("its time is before that of the record before it")
    if before and record.get("boot", 0) < before.get("boot", 0):
        raise ValueError("its boot is before that of the record before it")
    for key, check in (("sealed", check_sealed), ("names", check_names), ("jobs", lambda items: check_jobs(items, record["v"]))):
        if key in record:
            check(record[key])
    order = int(record.get("order", 0))
    if record["phase"] == "intent" and order:
        raise ValueError("it answers an order but is an intent")
    if (record["phase"] == "outcome" or order) and order >> ORDER_BITS >= number:
        raise ValueError(f"it names an order of the later record {order >> ORDER_BITS}")


class Orders:
    """What was ordered and is not answered; records of version 1 do not say what they order."""

    def __init__(self):
        self.open, self.unknown, self.abandoned, self.exact_from = {}, set(), {}, None

    def skip(self, number):
        """Record `number` was pruned: orders up to there are not looked at."""
        if self.exact_from is not None:
            self.exact_from = number + 1
            self.open = {order: letter for order, letter in self.open.items() if order >> ORDER_BITS > number}
            self.unknown &= set(self.open)
            self.abandoned = {order: letter for order, letter in self.abandoned.items() if order >> ORDER_BITS > number}

    def take(self, number, record):
        if self.exact_from is None and record["v"] > 1:
            self.exact_from = number
        order = int(record.get("order", 0))
        if self.exact_from is not None and order >> ORDER_BITS >= self.exact_from:
            if record["phase"] == "outcome":
                self.answer(order, record.get("verb"))
            elif order and self.open.get(order) != "s":  # an event about a start, a dataset that is mounted
                raise ValueError(f"it goes with order {order % (1 << ORDER_BITS)} of record {order >> ORDER_BITS}, "
                                 "which is no start that is under way")
        letters = record.get("orders", "")
        if len(letters) > 1 << ORDER_BITS or set(letters) - set("t-") - set(ANSWERS):
            raise ValueError("its orders are malformed")
        if number == 0 and letters[:1] in ANSWERS:
            raise ValueError("the first record gives an order")  # it would have the number of none
        self.open.update({number << ORDER_BITS | place: letter for place, letter in enumerate(letters) if letter in ANSWERS})

    def answer(self, order, verb):
        if order and order in self.abandoned and verb == ANSWERS[self.abandoned[order]]:
            del self.abandoned[order]
            return
        if not order or order not in self.open:
            raise ValueError(f"it answers order {order % (1 << ORDER_BITS)} of record {order >> ORDER_BITS}, "
                             "which was not given or was answered before")
        if verb == "order.unknown":
            self.unknown.add(order)
        elif verb == "order.abandoned":
            self.abandoned[order] = self.open.pop(order)
            self.unknown.discard(order)
        elif verb != ANSWERS[self.open[order]]:
            raise ValueError(f"{verb!r} does not answer what record {order >> ORDER_BITS} ordered")
        else:
            del self.open[order]
            self.unknown.discard(order)


def minimum_of(number, record):
    """Below which records were pruned, as this one says."""
    about = record.get("obj", {})
    if record.get("verb") != "audit.prune" or not record.get("dec", {}).get("allow") or about.get("type") != "log":
        return 0
    minimum = int(about.get("id", 0))
    if minimum > number:
        raise ValueError(f"it prunes record {minimum - 1}, which came later")
    return minimum


def lines_of(read, name):
    """The rows of a file of the export; None: there is no such file."""
    try:
        data = read(name)
    except Missing:
        return None
    try:
        lines = data.decode().split("\n")
        return [read_row(name, line) for line in (lines[:-1] if not lines[-1] else lines)]
    except (ValueError, RecursionError) as wrong:
        raise Bad(f"{name}: a row is malformed: {wrong}") from wrong


def take_job(claims, row):
    blank = dict.fromkeys(("tenant", "principal", "sku", "state", "reason", "kind", "contract"), "")
    zero = dict.fromkeys(("tenant_id", "principal_id", "count", "submitted_ns", "started_ns", "ended_ns", "exit_status", "priority",
                          "gang", "checkpoint_signal", "time_limit_ns", "deadline_ns"), 0)
    claims.job_row({**blank, **zero, "spec": "0" * 64, **row, "exported": True})


def take_key(claims, row):
    """A key of after the export's last record is not checked yet: its time decides that only where no
    record names it.  A row of before has a time a little after that of the record that destroyed the key, which may be the last."""
    number = int(row["id"])
    facts = {key: int(row.get(key, 0)) for key in ("kind", "tenant_id", "month", "created_ns")}
    destroyed = int(row.get("destroyed_ns", 0))
    since = claims.is_later(number, destroyed)
    if since:
        destroyed = 0
    if number in claims.keys or not 0 <= facts["created_ns"] - claims.last_ns < LATE_NS:
        claims.key_row(number, facts, destroyed, destroyed > 0)
    claims.date_key(number, facts, since)


def take_name(claims, row):
    key = bytes.fromhex(row.get("key", ""))
    claims.name_row(row["kind"], row["id"], row.get("name", ERASED), key if key.strip(b"\0") else b"", row.get("erased_by", 0))


# Files of an export: what takes a row, and whether the records need the file.
TABLES = {
    "names": (take_name, lambda claims: claims.names),
    "jobs": (take_job, lambda claims: claims.names),
    "texts": (lambda claims, row: claims.text_row(row["digest"], row.get("text", "").encode(), int(row["number"]), True), lambda claims: claims.names),
    "documents": (lambda claims, row: claims.document_row(row["kind"], row["key"], row["value"]), lambda claims: claims.newer and claims.documents),
    "keys": (take_key, lambda claims: claims.newer and claims.keys),
}


def compare_export(read, claims):
    tables = {name: lines_of(read, name) for name in TABLES}
    for name, rows in tables.items():
        if rows is None and TABLES[name][1](claims):
            raise Missing(f"{name}, without which the records' ids and digests have no names and texts")
    if tables["names"] is None:
        return
    try:
        for name, rows in tables.items():
            for row in rows or ():
                TABLES[name][0](claims, row)
    except (KeyError, TypeError, ValueError) as wrong:
        raise Bad(f"a row is malformed: {wrong}") from wrong
    claims.end(True)
    if tables["documents"] is not None:
        claims.end_documents(True)


def check_records(records, claims):
    """The orders that stay open."""
    before, orders, lacking, minimum = None, Orders(), 0, 0
    for number, data in enumerate(records):
        if data is None:
            lacking = number + 1
            orders.skip(number)
            claims.skip(number)
            continue
        try:
            record = parse_record(data)
            check_record(number, record, before)
            orders.take(number, record)
            minimum = max(minimum, minimum_of(number, record))
            claims.take(number, record)
        except (ValueError, KeyError, TypeError, RecursionError) as wrong:
            raise Bad(f"record {number}: {wrong}") from wrong
        before = record
    if lacking > minimum:
        raise Missing(f"{tile_path('entries', (lacking - 1) // TILE, TILE)}, and the log does not say that it was pruned")
    return orders


# ---- the two things to verify ----

def check_reach(heads, size):
    """After the heads within the log: where those do not fit, others stand in the records' place, and none are missing."""
    for kept_size, _ in heads:
        if kept_size > size:
            raise Bad(f"records {size} to {kept_size - 1} are missing: a kept checkpoint was signed over them")


def verify_log(read, vkey, kept=()):
    """How many records the log has, the orders that are open in it and its Claims; Bad or Missing when it is not whole.

    `read` gives a file's bytes by its path; `kept` are checkpoints, as bytes."""
    size, root = open_checkpoint(read("checkpoint"), vkey)
    heads = [open_checkpoint(data, vkey) for data in kept]
    records, hashes = read_records(read, size)
    check_upper_tiles(read, hashes)
    for head_size, head_root in [(size, root)] + sorted(heads):
        if head_size <= size and root_of(hashes[:head_size]) != head_root:
            raise Bad(f"the first {head_size} records are not those that a checkpoint was signed over")
    check_reach(heads, size)
    claims = Claims()
    orders = check_records(records, claims)
    compare_export(read, claims)
    return size, orders, claims


def verify_store(path, vkey, kept=()):
    """The same of a copy of the store: every checkpoint in it must hold."""
    if not pathlib.Path(path).exists():
        raise Missing(f"{path}: No such file or directory")
    read = [""]  # the last statement
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        database.set_trace_callback(lambda statement: read.__setitem__(0, statement))
        try:
            database.execute("BEGIN")
            done = verify_rows(database, vkey, kept)
            [state] = database.execute("PRAGMA quick_check(1)").fetchone()
        except (sqlite3.DatabaseError, TypeError, ValueError, AttributeError, LookupError, OverflowError) as wrong:
            raise damage(path, read[0], wrong) from wrong
    if state != "ok":
        raise Bad(f"{path}: the file is damaged: {state.splitlines()[-1]}")
    return done


def damage(path, statement, wrong):
    """A store that cannot be read for now is not damaged."""
    if getattr(wrong, "sqlite_errorcode", 11) & 255 in UNREAD:
        return wrong
    table = re.search(r"(?i)\bFROM (\w+)", statement)
    return Bad(f"{path}: store{f', table {table[1]}' if table else ''}: {wrong}")


def verify_rows(database, vkey, kept):
    rows = database.execute("SELECT seq, leaf, hash FROM records WHERE seq >= 0 ORDER BY seq").fetchall()
    for number, (seq, leaf, stored) in enumerate(rows):
        if seq != number or leaf and leaf_hash(leaf) != stored:
            raise Bad(f"record {number}: it is missing, or its bytes do not have the hash stored beside it")
    heads = {size: open_checkpoint(note.encode(), vkey) for size, note in database.execute("SELECT size, note FROM checkpoints WHERE size >= 0")}
    if rows and not heads:
        raise Bad("no checkpoint: none of its records is signed")
    kept_heads = [open_checkpoint(data, vkey) for data in kept]
    roots = roots_at(set(heads) | {size for size, _ in kept_heads}, [stored for _, _, stored in rows])
    for size, head in sorted(heads.items()) + [(head[0], head) for head in kept_heads if 0 < head[0] <= len(rows)]:
        if head != (size, roots.get(size)):
            raise Bad(f"the first {size} records are not those that a checkpoint was signed over")
    check_reach(kept_heads, len(rows))
    claims = Claims()
    try:
        orders = check_records([leaf or None for _, leaf, _ in rows], claims)
    except Missing as wrong:  # of a store it is no file that is missing
        raise Bad(f"the bytes of records are gone, and the log does not say that they were pruned: {wrong}") from wrong
    try:
        compare_store(database, claims)
    except ValueError as wrong:
        raise Bad(str(wrong)) from wrong
    return len(rows), orders, claims


def verify_proof(data, record, vkey):
    """(index, size, record) that a C2SP tlog-proof proves; `record` None: the one in it."""
    lines = [*data.split(b"\n"), b""]
    if lines[0] != b"c2sp.org/tlog-proof@v1":
        raise Malformed("no tlog-proof")
    if lines[1].startswith(b"extra "):
        extra = unbase64(lines.pop(1)[6:].decode(errors="replace"))
        record = extra if record is None else record
    match = re.fullmatch(rb"index (0|[1-9][0-9]*)", lines[1])
    if not match or b"" not in lines or record is None:
        raise Malformed("no index, no checkpoint or no record in the proof")
    end = lines.index(b"")
    path = [unbase64(line.decode(errors="replace"), 32) for line in lines[2:end]]
    index = int(match[1])
    size, root = open_checkpoint(b"\n".join(lines[end + 1:-1]), vkey)
    if index >= size or climb(index, size, leaf_hash(record), path) != root:
        raise Bad(f"this is not record {index} of the log of {size}")
    return index, size, record


def climb(index, size, leaf, path):
    """The root that the path leads to (RFC 9162, 2.1.3.2), or None."""
    last = size - 1
    for beside in path:
        if last == 0:
            return None
        if index & 1 or index == last:
            leaf = node(beside, leaf)
            while not index & 1 and index:
                index, last = index >> 1, last >> 1
        else:
            leaf = node(leaf, beside)
        index, last = index >> 1, last >> 1
    return leaf if last == 0 else None


def file_of(path):
    try:
        return pathlib.Path(path).read_bytes()
    except OSError as wrong:
        raise Missing(f"{path}: {wrong.strerror}") from wrong


def parse_arguments(words):
    options = {"--vkey": None, "--proof": None, "--store": None, "--record": None, "--witness": None, "--quorum": None, "--kept": []}
    folders = []
    while words:
        word = words.pop(0)
        if word not in options:
            folders.append(word)
        elif not words:
            sys.exit(2)
        elif word == "--kept":
            options[word].append(words.pop(0))
        else:
            options[word] = words.pop(0)
    whats = bool(folders) + bool(options["--proof"]) + bool(options["--store"])
    if whats != 1 or len(folders) > 1 or options["--store"] and not options["--vkey"] or any(f.startswith("-") for f in folders):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    return options, folders[0] if folders else None


def check_witnesses(options, folder):
    if not options["--witness"]:
        return
    lines = file_of(options["--witness"]).decode(errors="replace").split("\n")
    witnesses = [parse_vkey(line, 4) for line in lines if line]
    quorum = int(options["--quorum"] or len(witnesses))
    if not 1 <= quorum <= len({key for _, key, _ in witnesses}):
        raise Bad("the witnesses and the quorum do not fit")
    if not folder and not options["--kept"]:
        raise Bad("a store keeps no cosignatures: --witness goes with --kept or an export")
    for path in options["--kept"] or [f"{folder}/checkpoint"]:
        check_quorum(file_of(path), witnesses, quorum)


def tell(size, orders, claims, signed_by):
    """The status: 1 when rows are not what the log says."""
    print(f"whole: {size} records, signed by {signed_by}")
    if orders.open:
        print(f"orders without an outcome: {len(orders.open)}, the oldest in record {min(orders.open) >> ORDER_BITS}; "
              f"unknown after a start: {len(orders.unknown)}")
    for table, counts in claims.counts.items():
        print(f"{table}: " + ", ".join(f"{number} {what}" for what, number in counts.items() if number))
    for (kind, number), record in sorted(claims.erased.items()):
        print(f"  {kind} {number}: erased by record {record}")
    if claims.upgrade is not None:
        print(f"names of before record {claims.upgrade} are bound only from there")
    if claims.rows_from is not None:
        print(f"columns of jobs that ended before record {claims.rows_from} are not all bound")
    for text in claims.differing[:20]:
        print(f"NOT what the log says: {text}")
    return 1 if claims.differing else 0


def main():
    options, folder = parse_arguments(sys.argv[1:])
    vkey = None
    try:
        vkey = parse_vkeys(file_of(options["--vkey"] or f"{folder}/vkey").decode(errors="replace"))
        if folder:
            check_witnesses(options, folder)
            done = verify_log(lambda path: file_of(f"{folder}/{path}"), vkey, [file_of(path) for path in options["--kept"]])
            return tell(*done, vkey[0] + ("" if options["--vkey"] else ", by the key in the folder"))
        if options["--store"]:
            check_witnesses(options, None)
            kept = [file_of(path) for path in options["--kept"]]
            return tell(*verify_store(options["--store"], vkey, kept), vkey[0])
        record = file_of(options["--record"]).rstrip(b"\n") if options["--record"] else None
        index, size, record = verify_proof(file_of(options["--proof"]), record, vkey)
        print(f"record {index} is in the log of {size} records that {vkey[0]} signed:\n{record.decode()}")
    except Bad as wrong:
        print(f"BAD: {wrong}")
        return 3 if isinstance(wrong, Malformed) and (options["--proof"] or not vkey) else 1
    except Missing as wrong:
        print(f"MISSING: {wrong}")
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
