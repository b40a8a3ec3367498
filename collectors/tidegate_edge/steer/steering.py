"""steering.json: read, checked against its contract, and turned into records."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from ipaddress import ip_network
from itertools import islice
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from tidegate_edge.errors import BAD_INPUT, Failure

from .prefix import Prefix

MAX_BYTES: Final = 16 * 1024 * 1024
ERRORS_SHOWN: Final = 5
VALUE_CHARACTERS: Final = 120
WAY_OUT: Final = "have Ansible write the file again; the kernel was not touched"
ALGORITHM: Final = re.compile(r"[a-z][a-z0-9_]{0,14}")


@dataclass(frozen=True, slots=True)
class Claim:
    """What new TCP connections of one prefix shall have; None leaves a setting to the covering claim or route."""

    prefix: Prefix
    congestion_control: str | None
    min_bytes: int
    ungated_fallback: bool
    initcwnd: int | None
    initrwnd: int | None


@dataclass(frozen=True, slots=True)
class Learn:
    """How initial windows are learned from the windows of open connections (Riptide).

    Attributes:
        toward: prefixes of the destinations.
        initcwnd_min: least window that is set, segments.
        initcwnd_max: largest window that is set, segments.
        smooth_ppm: weight of the newest observation, parts per million.
        every_us: from one observation to the next.
        expire_us: life of what was learned without a new observation.
        hold_out_ppm: share of the destinations that are observed and get nothing, parts per million.
        initrwnd: receive window offered to the destinations at first, segments; None: the kernel's.
    """

    toward: tuple[Prefix, ...]
    initcwnd_min: int
    initcwnd_max: int
    smooth_ppm: int
    every_us: int
    expire_us: int
    hold_out_ppm: int = 0
    initrwnd: int | None = None


@dataclass(frozen=True, slots=True)
class Steering:
    """One generation of claims for one host; `learn` None: nothing is learned."""

    generation: str
    default_congestion_control: str | None
    claims: tuple[Claim, ...]
    learn: Learn | None

    @property
    def learn_toward(self) -> tuple[Prefix, ...]:
        """The prefixes toward which windows are learned."""
        return self.learn.toward if self.learn else ()

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Every algorithm that the file names, each once, sorted."""
        named = {claim.congestion_control for claim in self.claims} | {self.default_congestion_control}
        return tuple(sorted(name for name in named if name))


def read_steering(path: Path) -> Steering:
    """Read and check a steering file.

    Raises:
        Failure: the file is missing, larger than 16 MiB, no JSON, or breaks the contract `steering.schema.json`,
            or a prefix has host bits or is claimed twice. Names every place, up to five.
    """
    return steering_of(read_file(path), path)


def steering_of(text: bytes, path: Path) -> Steering:
    """Check what a steering file holds; `path` is what messages call it.

    Raises:
        Failure: as `read_steering`.
    """
    document = _parse(text, path)
    _refuse(path, map(_describe, _validator().iter_errors(document)))
    _refuse(path, iter(_contradictions(document)))
    return _records(document)


def _refuse(path: Path, broken: Iterator[str]) -> None:
    """Refuse a file that is broken anywhere; what is not shown is counted, not kept: it may be megabytes."""
    shown = [f"{path}: {text}" for text in islice(broken, ERRORS_SHOWN)]
    if shown:
        more = sum(1 for _ in broken)
        if more:
            shown.append(f"{path}: and {more} more")
        raise Failure("\n".join(shown), help=WAY_OUT, exit_code=BAD_INPUT)


def read_file(path: Path) -> bytes:
    """The bytes of a steering file, whatever they say.

    Raises:
        Failure: it is missing, or larger than 16 MiB.
    """
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", help=WAY_OUT, exit_code=BAD_INPUT) from error
    if len(text) > MAX_BYTES:
        raise Failure(f"{path}: larger than {MAX_BYTES} bytes", help=WAY_OUT, exit_code=BAD_INPUT)
    return text


def _parse(text: bytes, path: Path) -> Any:  # noqa: ANN401 — JSON has no static type before its schema is checked
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in pairs:
            if name in seen:
                raise ValueError(f"the key `{name}` stands twice in one object")
            seen[name] = value
        return seen

    def no_constant(name: str) -> None:
        raise ValueError(f"`{name}` is no JSON number")

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=once, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        reason = f"line {error.lineno}, column {error.colno}: no JSON: {error.msg}"
    except UnicodeDecodeError as error:
        reason = f"byte {error.start}: no UTF-8"
    except RecursionError:
        reason = "no JSON that an agent reads: nested too deeply"
    except ValueError as error:
        reason = str(error)
    raise Failure(f"{path}: {reason}", help=WAY_OUT, exit_code=BAD_INPUT)


def _validator() -> Draft202012Validator:
    schema = resources.files("tidegate_edge") / "schemas" / "steering.schema.json"
    return Draft202012Validator(json.loads(schema.read_text(encoding="utf-8")))


def _describe(error: ValidationError) -> str:
    # An alternative's own errors say more than "not valid under any": the algorithm's name rather than "or null".
    inner = error
    while inner.context:
        inner = next((each for each in inner.context if each.validator != "type"), inner.context[0])
    text = inner.message
    if len(text) > VALUE_CHARACTERS:
        text = f"{text[:VALUE_CHARACTERS]}... (`{inner.validator}: {inner.validator_value}`)"
    return f"{inner.json_path}: {text}"


def _contradictions(document: dict[str, Any]) -> list[str]:
    """What the schema cannot say: host bits, a prefix claimed twice, a name with a line feed at its end."""
    found = []
    places = [("$.default_congestion_control", document["default_congestion_control"])]
    first: dict[Prefix, int] = {}
    for index, claim in enumerate(document["claims"]):
        place = f"$.claims[{index}]"
        places.append((f"{place}.congestion_control", claim.get("congestion_control")))
        try:
            prefix = ip_network(claim["prefix"])
        except ValueError as error:
            found.append(f"{place}.prefix: {error}")
            continue
        if prefix in first:
            found.append(f"{place}.prefix: {prefix} is claimed already by $.claims[{first[prefix]}]")
        first.setdefault(prefix, index)
    for index, text in enumerate((document["riptide"] or {}).get("toward", [])):
        try:
            ip_network(text)
        except ValueError as error:
            found.append(f"$.riptide.toward[{index}]: {error}")
    # Python's `$` lets a line feed follow; the kernel's names have none.
    found += [
        f"{place}: {name!r} is no algorithm's name"
        for place, name in places
        if name and not ALGORITHM.fullmatch(name)
    ]
    return found


def _records(document: dict[str, Any]) -> Steering:
    return Steering(
        generation=document["generation"],
        default_congestion_control=document["default_congestion_control"],
        claims=tuple(_claim(claim) for claim in document["claims"]),
        learn=_learn(document["riptide"]) if document["riptide"] else None,
    )


def _learn(learn: dict[str, Any]) -> Learn:
    return Learn(
        toward=tuple(ip_network(text) for text in learn["toward"]),
        initcwnd_min=int(learn["initcwnd_min"]),
        initcwnd_max=int(learn["initcwnd_max"]),
        smooth_ppm=int(learn["smooth_ppm"]),
        every_us=int(learn["every_us"]),
        expire_us=int(learn["expire_us"]),
        hold_out_ppm=int(learn.get("hold_out_ppm", 0)),
        initrwnd=int(learn["initrwnd"]) if "initrwnd" in learn else None,
    )


def _claim(claim: dict[str, Any]) -> Claim:
    def whole(name: str) -> int | None:
        return int(claim[name]) if name in claim else None  # JSON Schema counts 10.0 as an integer

    return Claim(
        prefix=ip_network(claim["prefix"]),
        congestion_control=claim.get("congestion_control"),
        min_bytes=whole("min_bytes") or 0,
        ungated_fallback=claim.get("ungated_fallback", False),
        initcwnd=whole("initcwnd"),
        initrwnd=whole("initrwnd"),
    )
