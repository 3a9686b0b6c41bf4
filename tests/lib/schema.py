"""Holds what the API answers against its own OpenAPI document: an unknown key, a missing one or another type fails.

The checker knows the part of JSON Schema that src/api/openapi.c writes, and refuses the rest."""
import json
import re

KNOWN = {"$ref", "type", "description", "deprecated", "properties", "required", "additionalProperties", "items", "enum", "oneOf",
         "pattern", "maxLength", "maxItems", "minimum", "maximum"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "null": type(None)}


class Document:
    """/openapi.json, by operation."""

    def __init__(self, text):
        self.document = json.loads(text)
        self.operations = [(re.compile(re.sub(r"\{id\}", "[^/]+", re.sub(r"\{rest\}", ".+", path))), methods)
                           for path, methods in self.document["paths"].items()]

    def schema_of(self, method, path, status):
        """Of the JSON that the operation answers; None: of another content type, or no such path."""
        for pattern, methods in self.operations:
            if pattern.fullmatch(path) and method.lower() in methods:
                responses = methods[method.lower()]["responses"]
                content = responses.get(str(status), responses["default"])["content"]
                return content.get("application/json", {}).get("schema")
        return {"$ref": "#/components/schemas/error"} if status >= 400 else None

    def wrong(self, schema, value, at="reply"):
        """What does not fit, one line each."""
        if schema.keys() - KNOWN:
            return [f"{at}: the checker does not know {sorted(schema.keys() - KNOWN)}"]
        if "$ref" in schema:
            return self.wrong(self.document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], value, at)
        if "oneOf" in schema:
            found = [self.wrong(one, value, at) for one in schema["oneOf"]]
            return [] if sum(not one for one in found) == 1 else [line for one in found for line in one] or [f"{at}: fits several"]
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(isinstance(value, TYPES[one]) and (one == "boolean" or not isinstance(value, bool)) for one in types):
            return [f"{at}: {value!r:.60} is no {' or '.join(types)}"]
        return {dict: self.object, list: self.array, str: self.text, int: self.number}.get(type(value), lambda *_: [])(schema, value, at)

    def object(self, schema, value, at):
        lines, properties = [f"{at}: {key} is missing" for key in schema.get("required", []) if key not in value], schema.get("properties")
        for key, member in value.items() if properties is not None else ():
            if key in properties:
                lines += self.wrong(properties[key], member, f"{at}.{key}")
            elif schema.get("additionalProperties") is False:
                lines.append(f"{at}: {key} is in no schema")
        return lines

    def array(self, schema, value, at):
        lines = [f"{at}: {len(value)} items"] if len(value) > schema.get("maxItems", len(value)) else []
        return lines + [line for i, item in enumerate(value) for line in self.wrong(schema["items"], item, f"{at}[{i}]")]

    def text(self, schema, value, at):
        fits = (len(value.encode()) <= schema.get("maxLength", len(value.encode())) and value in schema.get("enum", [value])
                and re.search(schema.get("pattern", ""), value))
        return [] if fits else [f"{at}: {value!r:.60}"]

    def number(self, schema, value, at):
        return [] if schema.get("minimum", value) <= value <= schema.get("maximum", value) else [f"{at}: {value}"]


def check(document, method, path, reply):
    """Raises AssertionError where the reply, (status, content type, text), is not what the document says."""
    status, kind, text = reply
    schema = document.schema_of(method, path.split("?")[0], status)
    if schema and kind.startswith("application/json") and text:
        lines = document.wrong(schema, json.loads(text))
        assert not lines, f"{method} {path} answers {status} against its schema: {'; '.join(lines[:5])}: {text[:500]}"
