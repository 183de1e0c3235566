"""JSON Schema as tools really write it: mended for the `jsonschema` library, which checks calls, and shown in one line.

Mended: a keyword that is null (or PHP's empty map, a list) says nothing, a null subschema takes anything, a reference
to what is not there (or to another document: nothing is fetched) is no rule, and neither is a pattern that the `regex`
library cannot read.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from seal.core.types import Json

if TYPE_CHECKING:
    from jsonschema import ValidationError

_OF_NAMES = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_OF_SCHEMAS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems", "items", "additionalItems", "contains", "not"}) | {
    "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "if", "then", "else"
}  # fmt: skip
_KINDS: Mapping[str, str] = {
    "required": "missing_argument",
    "additionalProperties": "unexpected_argument",
    "type": "wrong_type",
}
SHORT: Mapping[str, str] = {
    "string": "str", "integer": "int", "number": "num", "boolean": "bool", "array": "list", "object": "dict"
}  # fmt: skip
_MATCH_SECONDS = 0.2
_MAX_REFERENCES = 200  # that one line follows


class Violation(NamedTuple):
    """What of a call its schema forbids."""

    path: tuple[str, ...]  # of the value: ("lines", "0", "sku"); () for the arguments as a whole
    kind: str  # one of ERROR_KINDS
    message: str
    rule: str  # the keyword


def mended(schema: Json) -> Json:
    """The schema as the library can use it; the same where nothing is odd. Raises ValueError for endless nesting."""
    try:
        return _mended(schema, schema)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def fault(schema: Json) -> str:
    """Why a schema is not legal, in few words; "" where it is."""
    from jsonschema import SchemaError

    try:
        _validator(json.dumps(schema))
    except SchemaError as error:
        return f"{'.'.join(map(str, error.absolute_path)) or 'schema'}: {error.message}"[:300]
    except (RecursionError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def violations(schema: Json, arguments: Mapping[str, Json]) -> list[Violation]:
    """What the schema forbids of these arguments, the worst of each first; nothing where it is not legal itself."""
    from jsonschema.exceptions import best_match
    from referencing.exceptions import Unresolvable

    if fault(schema):
        return []
    try:
        errors = list(_validator(json.dumps(schema)).iter_errors(json.loads(json.dumps(arguments))))
    except (Unresolvable, RecursionError, ArithmeticError):  # a reference to itself; a number that no float holds
        return []
    places: dict[Any, list[ValidationError]] = {}
    for error in errors:
        places.setdefault(next(iter(error.absolute_path), None), []).append(error)
    worst = [_violation(best) for group in (errors, *places.values()) if (best := best_match(group))]
    return list(dict.fromkeys(worst))


def fields(schema: Json) -> tuple[dict[str, Json], frozenset[str], bool]:
    """Of an object schema: its properties (references followed), which are required, whether it takes others, too."""
    root = mended(schema)
    return _fields(root, root, 8)


def at(root: Json, reference: Json) -> Json:
    """What `#/$defs/Name` refers to; None where that is not there."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    for part in reference.removeprefix("#").split("/")[1:]:
        part = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(root, list) and part.isdecimal() and int(part) < len(root):
            root = root[int(part)]
        else:
            root = root.get(part) if isinstance(root, Mapping) else None
    return root if reference in ("#", "") or "/" in reference else None


def shape(schema: Json, root: Json, follow: list[int] | None = None, above: tuple[str, ...] = ()) -> str:
    """A value in one line: `list[{sku, qty?: int 1..9, state: new|used}]`. Schemas as `mended` gives them."""
    follow = follow or [_MAX_REFERENCES]
    if not isinstance(schema, Mapping):
        return "any"

    def inner(part: Json) -> str:
        return shape(part, root, follow, above)

    if "$ref" in schema:
        name = str(schema["$ref"])
        follow[0] -= 1
        if name in above or follow[0] < 1:
            return name.rsplit("/", 1)[-1]
        target = at(root, name)
        whole = {**target, **{k: v for k, v in schema.items() if k != "$ref"}} if isinstance(target, Mapping) else {}
        return shape(whole, root, follow, (*above, name))
    if "enum" in schema or "const" in schema:
        return "|".join(map(word, schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]))
    for key, sign in (("anyOf", "|"), ("oneOf", "|"), ("allOf", " & ")):
        if isinstance(schema.get(key), list) and schema[key]:
            rest = {k: v for k, v in schema.items() if k in ("properties", "required", "additionalProperties")}
            return sign.join(dict.fromkeys(inner({**rest, **part} if rest else part) for part in schema[key]))
    kinds = schema.get("type", "object" if "properties" in schema else "array" if "items" in schema else "any")
    if isinstance(kinds, list):
        return "|".join(inner({**schema, "type": kind}) for kind in kinds)
    if kinds == "array":
        if isinstance(schema.get("prefixItems"), list):
            return f"[{', '.join(map(inner, schema['prefixItems']))}]"
        return f"list[{inner(schema['items'])}]" if schema.get("items") else "list"
    if kinds == "object":
        return _object(schema, inner)
    return f"{SHORT.get(kinds, kinds)}{_limits(schema)}"


def word(value: Json) -> str:
    """An allowed value as a prompt shows it."""
    return " ".join(value.split()) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _object(schema: Mapping[str, Json], inner: Any) -> str:
    parts = []
    for name, part in (schema.get("properties") or {}).items():
        text, mark = inner(part), "" if name in (schema.get("required") or ()) else "?"
        parts.append(f"{name}{mark}" + (f": {text}" if text != "str" else ""))
    others = schema.get("additionalProperties")
    if isinstance(others, Mapping) and others:
        return f"{{{', '.join([*parts, f'any: {inner(others)}'])}}}"
    return f"{{{', '.join(parts)}}}" if parts else "dict"


def _limits(schema: Mapping[str, Json]) -> str:
    low = schema.get("minimum", schema.get("exclusiveMinimum"))
    high = schema.get("maximum", schema.get("exclusiveMaximum"))
    limits = f" {'' if low is None else low}..{'' if high is None else high}" if (low, high) != (None, None) else ""
    kind = f" {schema['format']}" if isinstance(schema.get("format"), str) else ""
    return f"{limits}{kind}" + (f" /{schema['pattern']}/" if isinstance(schema.get("pattern"), str) else "")


def _fields(schema: Json, root: Json, depth: int) -> tuple[dict[str, Json], frozenset[str], bool]:
    if not isinstance(schema, Mapping) or not depth:
        return {}, frozenset(), False
    own, required = schema.get("properties"), schema.get("required")
    properties = dict(own) if isinstance(own, Mapping) else {}
    needed = (
        frozenset(name for name in required if isinstance(name, str)) if isinstance(required, list) else frozenset()
    )
    others = schema.get("additionalProperties", False) is not False or bool(schema.get("patternProperties"))
    parts = [(at(root, schema["$ref"]), True)] if "$ref" in schema else []
    for key in ("allOf", "anyOf", "oneOf"):
        parts += [(part, key == "allOf") for part in schema.get(key, ())] if isinstance(schema.get(key), list) else []
    for part, always in parts:
        more, also, open_ = _fields(part, root, depth - 1)
        properties, others = {**more, **properties}, others or open_
        needed |= also if always else frozenset()
    return properties, needed, others


def _mended(schema: Json, root: Json) -> Json:
    if not isinstance(schema, Mapping):
        return {} if schema is None or schema is True else {"not": {}} if schema is False else schema
    found = {}
    for key, value in schema.items():
        if key == "$id" or (key == "$schema" and not isinstance(value, str)):
            continue
        if (value is None and key not in ("default", "const")) or (value == [] and key in _OF_NAMES):
            continue
        if key in ("$ref", "$dynamicRef") and at(root, value) is None:
            continue
        if key in _OF_NAMES and isinstance(value, Mapping):
            kept = (name for name in value if key != "patternProperties" or _compiles(name))
            value = {name: _mended(value[name], root) for name in kept}
        elif key in _OF_SCHEMAS and isinstance(value, list):
            value = [_mended(part, root) for part in value]
        elif key in _OF_SCHEMAS and isinstance(value, Mapping):
            value = _mended(value, root)
        found[key] = value
    return found


def _compiles(pattern: str) -> bool:
    import re  # the library's own for the names of properties

    try:
        return bool(re.compile(pattern))
    except re.error:
        return False


@lru_cache(512)
def _validator(text: str) -> Any:
    """Raises SchemaError. No remote reference is fetched."""
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import extend, validator_for
    from referencing import Registry

    schema = mended(json.loads(text))
    kinds = schema.get("type", "object") if isinstance(schema, Mapping) else ""
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise SchemaError("the arguments of a tool are an object")
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(schema, format_checker=None)
    return extend(kind, {"pattern": _pattern})(schema, registry=Registry())


def _pattern(validator: Any, pattern: str, value: Json, schema: Json) -> "Iterator[ValidationError]":
    import regex
    from jsonschema import ValidationError

    try:
        wrong = isinstance(value, str) and not regex.search(pattern, value, timeout=_MATCH_SECONDS)
    except (regex.error, TimeoutError):
        wrong = False
    if wrong:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _violation(error: "ValidationError") -> Violation:
    path: Sequence[Any] = list(error.absolute_path)
    if error.validator == "required" and isinstance(error.validator_value, list):
        path = [*path, *[name for name in error.validator_value if name not in error.instance][:1]]
    rule = error.validator
    if rule in ("anyOf", "oneOf") and all(part.validator == "type" and not part.path for part in error.context):
        rule = "type"  # none of the types of a union
    return Violation(tuple(map(str, path)), _KINDS.get(rule, "invalid_value"), error.message, rule)
