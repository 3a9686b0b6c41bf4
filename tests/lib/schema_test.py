"""The checker of replies finds what does not fit."""
import json
import sys

import schema

DOCUMENT = schema.Document(json.dumps({
    "paths": {"/v1/things/{id}": {"get": {"responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/thing"}}}},
                                                        "default": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/error"}}}}}}}},
    "components": {"schemas": {
        "thing": {"type": "object", "additionalProperties": False, "required": ["id"],
                  "properties": {"id": {"type": "integer", "minimum": 0, "maximum": 9}, "kind": {"type": "string", "enum": ["a", "b"]},
                                 "at": {"type": ["string", "null"], "pattern": "^[0-9]+$"}, "parts": {"type": "array", "items": {"$ref": "#/components/schemas/thing"}},
                                 "open": {"type": "object"}}},
        "error": {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}}}}))

# what it is, the status, the reply, whether it fits
CASES = [
    ("the least", 200, {"id": 1}, True), ("all", 200, {"id": 1, "kind": "a", "at": None, "parts": [{"id": 2}], "open": {"x": 1}}, True),
    ("a missing key", 200, {"kind": "a"}, False), ("an unknown key", 200, {"id": 1, "extra": 1}, False),
    ("another type", 200, {"id": "1"}, False), ("a boolean is no integer", 200, {"id": True}, False), ("a range", 200, {"id": 10}, False),
    ("a word that is none", 200, {"id": 1, "kind": "c"}, False), ("a pattern", 200, {"id": 1, "at": "x"}, False),
    ("an unknown key further in", 200, {"id": 1, "parts": [{"id": 2, "extra": 1}]}, False), ("no object", 200, [], False),
    ("an error", 404, {"error": "no"}, True), ("an error without its key", 404, {"id": 1}, False),
]


def fits(status, reply):
    try:
        schema.check(DOCUMENT, "GET", "/v1/things/7?x=1", (status, "application/json", json.dumps(reply)))
        return True
    except AssertionError:
        return False


print(f"1..{len(CASES)}")
wrong = [name for name, status, reply, expected in CASES if fits(status, reply) != expected]
for number, (name, *_) in enumerate(CASES, 1):
    print("not ok" if name in wrong else "ok", number, "-", name)
sys.exit(bool(wrong))
