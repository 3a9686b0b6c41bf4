#!/usr/bin/env python3
"""The second verifier against the first one's log of 300 records: it accepts the log and
its proofs, and finds every change to it.  TAP on standard output.

usage: verify_audit_test.py FOLDER_TEST [all]
       verify_audit_test.py words

FOLDER_TEST is the C test that prints the log.  Every 97th bit of the files is flipped, and
of the checkpoint every 3rd; with `all` (make soak) every bit of every file.  `words` prints the
lists of docs/audit-format.md, made from tables/.
"""
import base64
import pathlib
import re
import subprocess
import sys
import textwrap

import verify_audit as v
from verify_audit_bound import ITEMS
from verify_audit_rows import KINDS, key_digest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/lib"))
from report import Report

report = Report()


def check(what, good, why=""):
    report.line(good, what, why)


def verdict(files, vkey, kept=()):
    """'good', 'bad' or 'missing'."""
    def read(path):
        if path not in files:
            raise v.Missing(path)
        return files[path]
    try:
        v.verify_log(read, vkey, kept)
        return "good"
    except v.Bad:
        return "bad"
    except v.Missing:
        return "missing"


def flipped(data, bit):
    return data[:bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1:]


def unfound(files, vkey, path, step):
    """Bits of the file that can be flipped unnoticed."""
    whole, found = files[path], []
    for bit in range(0, 8 * len(whole), step):
        if verdict(dict(files, **{path: flipped(whole, bit)}), vkey) != "bad":
            found.append(bit)
    return found


def sign(name, secret, size, root):
    """A checkpoint, by RFC 8032; slow, with a key of the test's own."""
    body = f"{name}\n{size}\n{base64.b64encode(root).decode()}\n".encode()
    digest = v.hashlib.sha512(secret).digest()
    scalar = (int.from_bytes(digest[:32], "little") & (1 << 254) - 8) | 1 << 254
    key = pack(v.times(scalar, v.BASE))
    number = int.from_bytes(v.hashlib.sha512(digest[32:] + body).digest(), "little") % v.Q
    first = pack(v.times(number, v.BASE))
    h = int.from_bytes(v.hashlib.sha512(first + key + body).digest(), "little")
    signature = first + ((number + h * scalar) % v.Q).to_bytes(32, "little")
    key_id = v.sha256(name.encode() + b"\n\1" + key)[:4]
    line = f"\n\u2014 {name} {base64.b64encode(key_id + signature).decode()}\n"
    return body + line.encode(), (name, {key_id: key})


def pack(p):
    inverse = pow(p[2], v.P - 2, v.P)
    x, y = p[0] * inverse % v.P, p[1] * inverse % v.P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def bad_witness(note, witness):
    try:
        v.cosigned(note.encode(), witness)
        return False
    except v.Bad:
        return True


def test_signatures():
    """RFC 8032, 7.1: tests 1 to 3."""
    rows = [("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
             "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"),
            ("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
             "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"),
            ("fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
             "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a")]
    good = all(v.own_verify(*map(bytes.fromhex, row)) for row in rows)
    bad = any(v.own_verify(bytes.fromhex(k), bytes.fromhex(m) + b"x", bytes.fromhex(s)) for k, m, s in rows)
    check("Ed25519 as RFC 8032 has it", good and not bad)
    note = ("bulkhead.example/audit/site-a\n700\njqh3X003bnRTTFxbz0d18+9X44I5tZxIawN8b61/FQQ=\n\n"
            "\u2014 bulkhead.example/audit/site-a AuGlXkS9Tm80d3/9aNg1hgbM5l5zbFP0VhjHxOjcLArGIqdrPHgKNLd4c9T2C+wtietU54NkZoRomZIUKvwF2CUqYA0=\n"
            "\u2014 witness.example/w1 lB4D5QAAAABqsT484r93eIaAgX9WvGGZ1niUwSMLgap3qDLB4+23KOO/FW+vlOBBL0Q1hcsDxMRFQQceFJrfU3AkGeW5RXvE1nMjDg==\n")
    key = v.parse_vkeys("bulkhead.example/audit/site-a+02e1a55e+AVIz9TUv/m0mO3ff/vBSuQ0D4SN/NVG8/OYHWMYxHe3+")
    check("a checkpoint with a witness that is not known", v.open_checkpoint(note.encode(), key)[0] == 700)
    witness = v.parse_vkey("witness.example/w1+941e03e5+BAuxA1jIvE6LukWP6Vs0LSyxETVVqqjXQKIyzfqHFjQ+", 4)
    check("a witness", v.cosigned(note.encode(), witness) and not v.cosigned(note.rpartition("\u2014")[0].encode(), witness))
    rows = [note.replace("700", "701"), note.replace("AAABqs", "AABBqs")]
    check("another size, another time: not what the witness cosigned", all(bad_witness(row, witness) for row in rows))


def test_tail_cuts(files):
    """A log that was cut and signed again is whole, but for the checkpoint that was kept."""
    name, secret = "log.example", bytes(32)
    records = [r for n, w in v.tiles_of(300) for r in v.split_bundle("", files[v.tile_path("entries", n, w)], w)]
    hashes = [v.leaf_hash(r) for r in records]
    kept, key = sign(name, secret, 300, v.root_of(hashes))
    unfound = []
    for size in range(0, 300, 1 if "all" in sys.argv else 23):
        cut = {"checkpoint": sign(name, secret, size, v.root_of(hashes[:size]))[0]}
        for n, w in v.tiles_of(size):
            part = slice(n * v.TILE, n * v.TILE + w)
            cut[v.tile_path("entries", n, w)] = b"".join(len(r).to_bytes(2, "big") + r for r in records[part])
            cut[v.tile_path(0, n, w)] = b"".join(hashes[part])
        if size >= v.TILE:
            cut[v.tile_path(1, 0, 1)] = v.root_of(hashes[:v.TILE])
        if verdict(cut, key) != "good" or verdict(cut, key, [kept]) != "bad":
            unfound.append(size)
    forked = records[:48] + [b"{}"] * 52
    tiles = {v.tile_path("entries", 0, 100): b"".join(len(r).to_bytes(2, "big") + r for r in forked), v.tile_path(0, 0, 100): b"".join(map(v.leaf_hash, forked)),
             "checkpoint": sign(name, secret, 100, v.root_of(list(map(v.leaf_hash, forked))))[0]}
    early = sign(name, secret, 52, v.root_of(hashes[:52]))[0]
    for what, keeps, said in (("one of both", [kept, early], "the first 52 records are not those"), ("the longer", [kept], "records 100 to 299 are missing")):
        try:
            v.verify_log(lambda path: tiles[path], key, keeps)
            check(f"a log that was cut and goes on otherwise, {what}", False)
        except v.Bad as wrong:
            check(f"a log that was cut and goes on otherwise, {what}", said in str(wrong), wrong)
    check("every tail cut shows against a kept checkpoint, and only there", not unfound, unfound)


def words_section():
    """The verbs and types that records may have, by the tables that searches go by, as docs/audit-format.md has them."""
    tables = {name: (ROOT / "tables" / f"{name}.tbl").read_text(encoding="utf-8")
              for name in ("operations", "recorded_verbs", "roles", "record_words")}
    verbs = {*re.findall('^BH_OPERATION\\(\\w+, +\\w+, +"[^"]*", +"([^"]+)"', tables["operations"], re.M),
             *re.findall('^BH_RECORDED_VERB\\(.*"(.+)"\\)$', tables["recorded_verbs"], re.M),
             *re.findall('^BH_GRANT\\(.*"(.+)"\\)$', tables["roles"], re.M),
             *re.findall('^BH_RECORD_VERB\\("(.+)"\\)$', tables["record_words"], re.M)}
    types = re.findall('^BH_RECORD_OBJECT\\("(.+)"\\)$', tables["record_words"], re.M)

    def listed(words):
        return textwrap.fill(", ".join(f"`{word}`" for word in sorted(words)), 140, break_on_hyphens=False) + ".\n"
    return f"Verbs:\n\n{listed(verbs)}\nTypes of `obj`:\n\n{listed(types)}"


def test_words():
    """docs/audit-format.md lists all verbs and types; `verify_audit_test.py words` prints the lists."""
    check("verbs and types are documented", words_section() in (ROOT / "docs/audit-format.md").read_text(encoding="utf-8"), "see `words`")


def test_formats():
    """docs/audit-format.md has every member of records and of what is carried on, and no other."""
    text = (ROOT / "docs/audit-format.md").read_text(encoding="utf-8")
    rows = dict(re.findall("^\\| `([a-z]+)` \\| (.+) \\|$", text, re.M))
    check("members of records are documented", set(rows) == set(v.FORMS) | set(ITEMS), set(rows) ^ (set(v.FORMS) | set(ITEMS)))
    told = {name: {member for member in re.findall("`([a-z_]+)`", rows[name]) if member != "row"} for name in ITEMS}
    check("members of what is carried on are documented", told == {name: set(forms) for name, (forms, _) in ITEMS.items()}, told)
    must = {name: set(re.findall("\\*\\*`([a-z_]+)`", rows[name])) for name in ITEMS}
    check("those that every item has", must == {name: always for name, (_, always) in ITEMS.items()}, must)
    check("kinds of names", tuple(re.findall("^\\| [0-9]+ \\| `([a-z]+)`", text, re.M)) == KINDS)


def test_records():
    good = b'{"phase":"event","seq":0,"ts":"5","v":1}'
    named = b'{"names":[{"c":"%s","id":3,"kind":"principal"}],"phase":"event","seq":0,"ts":"5","v":3,"verb":"x"}' % (b"ab" * 32)
    became = b'{"jobs":[{"job":7,"started":"4","state":"running"}],"phase":"event","seq":0,"ts":"5","v":3,"verb":"x"}'
    placed = b'{"jobs":[{"job":7,"row":"%s","state":"running"}],"phase":"event","seq":0,"ts":"5","v":4,"verb":"x"}' % (b"ab" * 32)
    rows = [("spaces", good.replace(b",", b", ")), ("order of keys", b'{"seq":0,"phase":"event","ts":"5","v":1}'),
            ("a key twice", b'{"phase":"event","seq":0,"seq":0,"ts":"5","v":1}'), ("a fraction", good.replace(b"0", b"0.0")),
            ("another number", good.replace(b"0", b"1")), ("no time", b'{"phase":"event","seq":0,"v":1}'),
            ("a version", good.replace(b'"v":1', b'"v":5')), ("rows of version 3", placed.replace(b'"v":4', b'"v":3')), ("names of version 2", named.replace(b'"v":3', b'"v":2')),
            ("names without an id", named.replace(b'"id":3,', b"")), ("names of another kind", named.replace(b"principal", b"person")),
            ("jobs without a state", became.replace(b',"state":"running"', b"")), ("an end that says when it began", became.replace(b'{"job"', b'{"cause":"x","ended":"9","job"')),
            ("a count of version 2", good.replace(b'{', b'{"count":2,').replace(b'"v":1', b'"v":2')), ("a count of one", good.replace(b'{', b'{"count":1,').replace(b'"v":1', b'"v":3')),
            ("orders of version 1", good.replace(b'{', b'{"orders":"-c",')), ("an outcome of the future", b'{"order":4096,"phase":"outcome","seq":0,"ts":"5","v":1}'),
            ("an order in an event", b'{"order":1,"phase":"event","seq":0,"ts":"5","v":1}'), ("not UTF-8", b"\xff"), ("deep", b"[" * 100000)]
    for record in (good, named, became, placed, good.replace(b'{', b'{"count":2,').replace(b'"v":1', b'"v":3')):
        v.check_records([record], v.Claims())
    for name, record in rows:
        try:
            v.check_records([record], v.Claims())
            check(f"a record with {name} is refused", False)
        except v.Bad:
            check(f"a record with {name} is refused", True)


def test_orders():
    """Rows of (phase, order as record and place, orders, verb), and the number of the row that is bad."""
    given = ("intent", None, "-cs", "job.submit")
    carved, started = ("outcome", (0, 1), "", "node.carved"), ("outcome", (0, 2), "", "node.started")
    unknown = ("outcome", (0, 1), "", "order.unknown")
    rows = [("both answered", [given, started, carved], None), ("one open", [given, started], None),
            ("answered after all", [given, unknown, unknown, carved], None), ("answered twice", [given, carved, carved], 2),
            ("unknown after the answer", [given, carved, unknown], 2), ("no order at that place", [given, ("outcome", (0, 0), "", "node.carved")], 1),
            ("no order in that record", [given, given, ("outcome", (1, 3), "", "node.carved")], 2),
            ("another's answer", [given, ("outcome", (0, 1), "", "node.started")], 1), ("a letter", [("intent", None, "-x", "job.submit")], 0),
            ("a stop", [("intent", None, "-t", "job.cancel"), ("outcome", (0, 1), "", "node.stopping")], 1)]
    for name, records, bad in rows:
        leaves = []
        for number, (phase, order, orders, verb) in enumerate(records):
            value = {"phase": phase, "seq": number, "ts": "5", "v": 2, "verb": verb}
            value.update({"order": order[0] << 12 | order[1]} if order else {}, **({"orders": orders} if orders else {}))
            leaves.append(v.json.dumps(value, sort_keys=True, separators=(",", ":")).encode())
        try:
            found = None
            open_ones = len(v.check_records(leaves, v.Claims()).open)
        except v.Bad as wrong:
            found = int(str(wrong).split(":")[0].split()[1])
        check(f"orders: {name}", found == bad and (name != "one open" or open_ones == 1), found)


def test_numbers_of_before():
    """Rows of (version, the revision's number, differences): a document of before version 4 may have the number of its names."""
    for version, number, wanted in ((3, 0, 0), (3, 2, 0), (3, 1, 1), (4, 0, 2), (4, 2, 0)):
        claims = v.Claims()
        site = {"verb": "site.apply", "obj": {"type": "site"}, "actor": {"id": 2}, "text": "51" * 32}
        for place, record in enumerate([{"verb": "names.give"}, {"verb": "names.give"}, site]):
            claims.take(place, {"ts": str(1000 + place), "v": version, "dec": {"allow": True}, **record})
        claims.document_row("revision", f"{number:020}", '{"at_ns":"1002","changes":5,"digest":"%s","principal":2}' % ("51" * 32))
        claims.end_documents(False)
        check(f"revision {number} of version {version}", len(claims.differing) == wanted, claims.differing)


def test_texts_of_revisions():
    """Rows of (revisions, what names the first one's text, too, the text that lacks, differences): what the newest ones have must be there."""
    kept = 512
    again = {"verb": "site.apply", "obj": {"type": "site"}, "dec": {"allow": True}}
    for revisions, also, lost, wanted in ((kept, None, 1, 1), (kept + 1, None, 1, 0), (kept + 1, None, 2, 1), (kept + 2, None, 2, 0),
                                          (kept + 1, None, kept + 1, 1), (kept + 1, again, 1, 1), (kept + 1, {"verb": "node.ended"}, 1, 1),
                                          (kept + 1, dict(again, dec={"rule": 7}), 1, 1)):
        claims = v.Claims()
        digests = [f"{number:064x}" for number in range(1, revisions + 1)]
        records = [dict(again, text=digest) for digest in digests] + ([dict(also, text=digests[0])] if also else [])
        for number, record in enumerate(records):
            claims.take(number, {"ts": str(1000 + number), "v": 4, **record})
        claims.seen = set(digests) - {digests[lost - 1]}
        claims.end(False)
        check(f"text {lost} of {revisions} revisions lacks, {also}", len(claims.differing) == wanted, claims.differing)


def test_keys_of_an_export():
    """Rows of (the last record destroys the key, the row's time, what becomes of it): a row of before is a little later than its record."""
    for destroys, time, wanted in ((True, 1001, "erased"), (True, 1003, "erased"), (True, 0, None), (False, 1003, "good"), (False, 1000, None)):
        claims, facts = v.Claims(), {"kind": 2, "tenant_id": 5, "month": 202611, "created_ns": 990}
        for place, verb in enumerate(["key.make", "key.destroyed" if destroys else "test"]):
            claims.take(place, {"ts": str(1000 + place), "v": 4, "dec": {"allow": True}, "verb": verb, "tenant": 5, "obj": {"type": "key", "id": 4}})
        v.take_key(claims, {"id": 4, **facts, "destroyed_ns": str(time)})
        found = next((what for what in ("erased", "good") if claims.counts.get("keys", {}).get(what)), None)
        check(f"a key {'that the last record destroyed' if destroys else 'in force'}, a row of {time}", found == wanted and bool(claims.differing) == (wanted is None), (found, claims.differing))


OCTOBER, BORDER, NOVEMBER, LAST = (seconds * 10**9 for seconds in (1792065600, 1793491200, 1794484800, 1797768000))
MINUTE = 60 * 10**9
# What is not said of a row below: the text's record is of the present version, tenant 5 and October, key.make of October and
# version 4 with its month, the key's row the same, destroyed by a record of a second before the last; nothing is pruned.
TEXTS = [
    # what, what is otherwise, (differences, erased, not bound)
    ("its month", {}, (0, 1, 0)),
    ("nothing was destroyed", {"by": False, "destroyed_ns": 0}, (1, 0, 0)),
    ("the month before", {"at": NOVEMBER}, (1, 0, 0)),
    ("the month after", {"made": NOVEMBER, "month": 202611}, (1, 0, 0)),
    ("another tenant's", {"tenant": 6}, (1, 0, 0)),
    ("it came after", {"late": True}, (1, 0, 0)),
    ("a moment after the month", {"at": BORDER + MINUTE - 1}, (0, 1, 0)),
    ("a minute after the month", {"at": BORDER + MINUTE}, (1, 0, 0)),
    ("a moment before the month", {"at": BORDER - 1, "made": BORDER, "month": 202611}, (1, 0, 0)),
    ("the tenant's own key", {"month": 0}, (1, 0, 0)),
    ("the site's own text", {"tenant": 0, "of": 0}, (1, 0, 0)),
    ("the row says another month", {"at": NOVEMBER, "row": 202611}, (2, 0, 0)),
    ("since the last record", {"by": False, "destroyed_ns": LAST}, (0, 1, 0)),
    ("since, another month", {"by": False, "destroyed_ns": LAST, "at": NOVEMBER}, (1, 0, 0)),
    ("since, of a store", {"by": False, "destroyed_ns": LAST, "store": True}, (2, 0, 0)),
    ("before, and no record says so", {"by": False}, (2, 0, 0)),
    ("a key of version 3", {"made_v": 3}, (0, 1, 0)),
    ("its row is not asked", {"made_v": 3, "at": NOVEMBER, "row": 202611}, (1, 0, 0)),
    ("made a moment after the month", {"made_v": 3, "made": BORDER + 10**9}, (0, 1, 0)),
    ("no rows of keys", {"row": None}, (0, 1, 0)),
    ("no rows of keys, another month", {"row": None, "at": NOVEMBER}, (1, 0, 0)),
    ("a text of version 1, any month", {"v": 1, "at": NOVEMBER}, (0, 1, 0)),
    ("of version 1, without a key", {"v": 1, "made": None, "row": None}, (0, 1, 0)),
    ("of version 2, without a key", {"v": 2, "made": None, "row": None}, (1, 0, 0)),
    ("of version 1, and it came after", {"v": 1, "late": True}, (1, 0, 0)),
    ("of version 1, since the last record", {"v": 1, "at": NOVEMBER, "by": False, "destroyed_ns": LAST}, (0, 1, 0)),
    ("pruned", {"pruned": True}, (0, 1, 0)),
    ("pruned, another month", {"pruned": True, "row": 202609}, (1, 0, 0)),
    ("pruned, since the last record", {"pruned": True, "by": False, "destroyed_ns": LAST}, (0, 1, 0)),
    ("pruned, no rows of keys", {"pruned": True, "row": None}, (0, 1, 0)),
    ("pruned, and so is whose text it is", {"pruned": True, "row": 202609, "type": "dataset"}, (0, 0, 1)),
]


def records_of_text(case, facts):
    """A text, and the key that sealed it or another, as records say, each with its time."""
    text = {"verb": "job.exec", "text": "52" * 32, "tenant": case["tenant"], "obj": {"type": case["type"], "id": 7}, "v": case["v"]}
    key = {"verb": "key.make", "tenant": case["of"], "obj": {"type": "key", "id": 4}, "v": case["made_v"]}
    if case["made_v"] > 3:
        key["text"] = key_digest(facts)
    made = [(case["made"], key)] if case["made"] and not case["pruned"] else []
    gone = [(LAST - 1, {"verb": "key.shred", "obj": {"type": "tenant", "id": case["of"]}})] if case["by"] else []
    if case["by"] and case["made"]:
        gone.append((LAST - 1, {"verb": "key.destroyed", "tenant": case["of"], "obj": {"type": "key", "id": 4}}))
    texts = [(case["at"], text)]
    return ([] if case["late"] else texts) + made + gone + (texts if case["late"] else []) + [(LAST, {"verb": "daemon.start"})]


def test_texts_of_keys():
    """A text is missing: rightly when the key that sealed it was destroyed."""
    for what, otherwise, wanted in TEXTS:
        case = {"at": OCTOBER, "tenant": 5, "of": 5, "v": 4, "type": "job", "late": False, "made": OCTOBER, "made_v": 4, "month": 202610,
                "by": True, "destroyed_ns": LAST - 1, "store": False, "pruned": False, **otherwise}
        facts = {"kind": 2, "tenant_id": case["of"], "month": case["month"], "created_ns": 77}
        claims, row = v.Claims(), case.get("row", case["month"])
        if case["pruned"]:
            claims.skip(0)
        for number, (ts, record) in enumerate(records_of_text(case, facts), 1 if case["pruned"] else 0):
            claims.take(number, {"ts": str(ts), "v": 4, "dec": {"allow": True}, **record})
        facts["month"] = row
        if row is not None and case["store"]:
            claims.key_row(4, facts, case["destroyed_ns"], case["destroyed_ns"] > 0)
            claims.date_key(4, facts, False)
        elif row is not None:
            v.take_key(claims, {"id": 4, **facts, "destroyed_ns": str(case["destroyed_ns"])})
        claims.end(True)
        counts = claims.counts.get("texts", {"erased": 0, "not bound": 0})
        got = len(claims.differing), counts["erased"], counts["not bound"]
        check(f"a missing text, {what}", got == wanted, (got, claims.differing))


def folder(how):
    """The key and the files that the C test prints."""
    lines = subprocess.run([sys.argv[1], how], check=True, capture_output=True, text=True).stdout.splitlines()
    return v.parse_vkeys(lines[0]), {path: base64.b64decode(data) for path, data in (line.split(" ") for line in lines[1:])}


def test_pruned():
    """Of a bundle that was pruned its hashes are enough."""
    vkey, files = folder("pruned")
    bundle, tile = "tile/entries/000", "tile/0/000"
    check("nothing is missing yet", verdict(files, vkey) == "good")
    del files[bundle]
    check("a bundle that was pruned", verdict(files, vkey) == "good", verdict(files, vkey))
    bits = [bit for bit in range(0, 8 * len(files[tile]), 97) if verdict(dict(files, **{tile: flipped(files[tile], bit)}), vkey) != "bad"]
    check("its hashes are what was signed", not bits, bits[:20])
    del files[tile]
    check("its hashes are needed", verdict(files, vkey) == "missing")


def main():
    if "words" in sys.argv:
        print(words_section(), end="")
        return
    vkey, files = folder("print")
    every = "all" in sys.argv
    test_signatures()
    check("the log of the C code is whole", verdict(files, vkey) == "good", verdict(files, vkey))
    for path in files:
        check(f"{path} missing is found", verdict({p: d for p, d in files.items() if p != path}, vkey) == "missing")
        longer = verdict(dict(files, **{path: files[path] + b"x"}), vkey), verdict(dict(files, **{path: files[path][:-1]}), vkey)
        check(f"{path} longer or shorter is found", longer == ("bad", "bad"), longer)
        bits = unfound(files, vkey, path, 1 if every else 3 if path == "checkpoint" else 97)
        check(f"{path}: bits flipped are found", not bits, bits[:20])
    test_tail_cuts(files)
    test_pruned()
    test_words()
    test_formats()
    test_records()
    test_orders()
    test_numbers_of_before()
    test_texts_of_revisions()
    test_keys_of_an_export()
    test_texts_of_keys()
    sys.exit(report.close())


if __name__ == "__main__":
    main()
