"""The contracts between rooms: a document is checked against its JSON Schema, and has one canonical form.

Canonical JSON is what digests are taken of: keys sorted, no spaces, every character beyond ASCII escaped.
"""

import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from importlib import resources
from typing import Any, Final, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from tidegate.errors import BAD_INPUT, Failure

Contract = Literal["plan", "vars", "fleet", "steering"]

ERRORS_SHOWN: Final = 5
VALUE_CHARACTERS: Final = 60


def validate(document: object, name: Contract, source: str) -> None:
    """Check a document against `schemas/NAME.schema.json`.

    Args:
        document: as `json.loads` or `yaml.safe_load` gives it.
        name: the contract.
        source: what the user knows the document by, mostly a path; leads the message.

    Raises:
        Failure: the document breaks the contract. Names up to five places, each with its JSON path, the value
            found and what is allowed there.
    """
    described = _once(_describe(error) for error in _validator(name).iter_errors(document))
    found = list(itertools.islice(described, ERRORS_SHOWN + 1))
    if not found:
        return
    shown = [f"{source}: {text}" for text in found[:ERRORS_SHOWN]]
    if len(found) > ERRORS_SHOWN:
        shown.append(f"{source}: there are more")
    raise Failure("\n".join(shown), help=f"the contract is schemas/{name}.schema.json", exit_code=BAD_INPUT)


def canonical_json(document: object) -> bytes:
    """The one form of a JSON document: equal documents give equal bytes on every machine.

    Raises:
        ValueError: a number is not finite; JSON has no such number.
    """
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode("ascii")


def sha256_digest(document: object) -> str:
    """`sha256:` and the hex SHA-256 (FIPS 180-4) of the document's canonical JSON."""
    return f"sha256:{hashlib.sha256(canonical_json(document)).hexdigest()}"


def _once(texts: Iterable[str]) -> Iterator[str]:
    """Each text the first time it comes: keys that one object lacks are one error, told with each of them."""
    seen: set[str] = set()
    for text in texts:
        if text not in seen:
            seen.add(text)
            yield text


def _whole_pattern(
    _validator: object, pattern: str, instance: object, _schema: object
) -> Iterator[ValidationError]:
    # In ECMA-262, the dialect of JSON Schema, `$` is the end of the input; in Python a newline may follow it.
    if isinstance(instance, str) and not re.search(re.sub(r"\$$", r"\\Z", pattern), instance):
        yield ValidationError("does not match")


_Validator: Final[Any] = extend(Draft202012Validator, {"pattern": _whole_pattern})  # type: ignore[no-untyped-call]


@functools.cache
def _validator(name: Contract) -> Any:  # noqa: ANN401 — jsonschema gives its validator classes no static type
    schema = resources.files(f"{__package__}.schemas").joinpath(f"{name}.schema.json")
    return _Validator(json.loads(schema.read_text(encoding="utf-8")))


def _describe(error: ValidationError) -> str:
    """`PATH: VALUE what is allowed`."""
    inner = _innermost(error)
    allowed = _ALLOWED.get(str(inner.validator), _any_other)(inner)
    return f"{inner.json_path}: {_short(inner.instance)} {allowed}"


def _innermost(error: ValidationError) -> ValidationError:
    """Of alternatives, the first error of the one whose type fits; the error itself where not just one does."""
    while error.context:
        alternatives: dict[object, list[ValidationError]] = {}
        for inner in error.context:
            alternatives.setdefault(inner.relative_schema_path[0], []).append(inner)
        fitting = [
            errors
            for errors in alternatives.values()
            if not any(inner.validator == "type" and not inner.relative_path for inner in errors)
        ]
        if len(fitting) != 1:
            return error
        error = fitting[0][0]
    return error


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=True, default=str)
    return f"`{text if len(text) <= VALUE_CHARACTERS else text[: VALUE_CHARACTERS - 3] + '...'}`"


def _keys(keys: object) -> str:
    return ", ".join(f"`{key}`" for key in sorted(keys))  # type: ignore[call-overload]


def _required(error: ValidationError) -> str:
    instance: Any = error.instance
    return f"lacks the key {_keys(set(_list(error)) - set(instance))}"


def _list(error: ValidationError) -> list[Any]:
    value: Any = error.validator_value
    return list(value)


def _unknown_keys(error: ValidationError) -> str:
    instance: Any = error.instance
    schema: Any = error.schema
    known = schema.get("properties", {})
    return f"has the unknown key {_keys(set(instance) - set(known))}; allowed: {_keys(known)}"


def _dependent(error: ValidationError) -> str:
    instance: Any = error.instance
    needs: Any = error.validator_value
    missing = {need for key, wanted in needs.items() if key in instance for need in wanted} - set(instance)
    return f"lacks the key {_keys(missing)}, which another of its keys needs"


def _alternatives(error: ValidationError) -> str:
    return f"must be {' or '.join(_alternative(schema) for schema in _list(error))}"


def _alternative(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    return f"an object with {_keys(schema['required'])}" if "required" in schema else str(schema.get("type"))


def _pattern(error: ValidationError) -> str:
    meaning = error.schema.get("description") if isinstance(error.schema, dict) else None
    return f"must match {error.validator_value}" + (f": {meaning}" if meaning else "")


def _any_other(error: ValidationError) -> str:
    return f"breaks `{error.validator}: {error.validator_value}`"


_ALLOWED: Final[dict[str, Callable[[ValidationError], str]]] = {
    "additionalProperties": _unknown_keys,
    "anyOf": _alternatives,
    "const": lambda error: f"must be {_short(error.validator_value)}",
    "dependentRequired": _dependent,
    "enum": lambda error: f"must be one of {_keys(_list(error))}",
    "maximum": lambda error: f"must be at most {error.validator_value}",
    "minProperties": lambda error: f"must have at least {error.validator_value} key",
    "minimum": lambda error: f"must be at least {error.validator_value}",
    "pattern": _pattern,
    "required": _required,
    "type": lambda error: f"must be of type {error.validator_value}",
}
