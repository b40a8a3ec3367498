"""Ask the guard: Open Policy Agent judges variables by the rules in `policies/`.

The answer is yes only where OPA said so in the form that the rules promise. Whatever else happens, OPA missing,
too old, too slow, dead or talking nonsense, is a `Failure`, never a yes.
"""

import functools
import json
import re
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import Any, Final

from tidegate.errors import BAD_INPUT, MISSING_PART, Failure

# Only the two, for the package's own sets are as large as its input.
QUERY: Final = '{"allow": data.tidegate.guard.allow, "denials": data.tidegate.guard.denials}'
OLDEST_OPA: Final = (1, 0)  # Rego v1 without `import rego.v1`
TIMEOUT_SECONDS: Final = 60.0  # 50 POPs of 500 claims take about 2 s of one core
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024  # a denial of each of 100,000 claims fits
MAX_COMPLAINT_BYTES: Final = 2_000
_HELP: Final = (
    "put OPA 1.0 or later on PATH, or name it with `--opa`; `policies/get-opa.sh build/bin/opa` builds one"
)

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Denial:
    """One reason against; `pop` and `prefix` are empty where it is about more than one.

    `code` is stable and listed in policies/README.md; `message` is for people.
    """

    code: str
    pop: str | None
    prefix: str | None
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the guard said; denials in OPA's order, which is sorted."""

    allow: bool
    denials: tuple[Denial, ...]


def plan_document(
    *, vars_by_pop: Mapping[str, Document], fleet: Document, as_of: str, watermark: str
) -> Document:
    """What the guard is asked before a plan is saved or applied.

    Args:
        vars_by_pop: by POP, documents of `schemas/vars.schema.json`.
        fleet: a document of `schemas/fleet.schema.json`.
        as_of: the time that the plan was made for, as the plan writes it.
        watermark: end of the last closed window, likewise; judged by its age at `as_of`.
    """
    return {
        "kind": "plan",
        "as_of": as_of,
        "watermark": watermark,
        "vars": dict(vars_by_pop),
        "fleet": fleet,
    }


def vars_document(vars_by_pop: Mapping[str, Document], fleet: Document) -> Document:
    """What the guard is asked before a rollout: no age, for a generation that is left alone stays valid."""
    return {"kind": "vars", "vars": dict(vars_by_pop), "fleet": fleet}


def judge(
    document: Document, *, opa: str = "opa", rules: Path | None = None, limits: Path | None = None
) -> Verdict:
    """Have OPA judge a document of `plan_document` or `vars_document`.

    Args:
        document: the input of the rules.
        opa: the program, by path or by name on PATH.
        rules: a folder of .rego files; default: those that ship with the package.
        limits: a YAML file with the top key `limits`; default: limits.yaml beside the rules.

    Raises:
        Failure: 2 where rules or limits cannot be read, 3 where OPA gives no answer that can be trusted.
    """
    require_opa(opa)
    with resources.as_file(resources.files("tidegate") / "policies") as shipped:
        folder = rules or shipped
        data = _data_files(folder, limits or folder / "limits.yaml")
        options = [option for path in data for option in ("--data", str(path))]
        answer = _run(
            [opa, "eval", "--format", "json", "--stdin-input", *options, QUERY], json.dumps(document).encode()
        )
    return _verdict(answer, opa)


@functools.cache
def require_opa(opa: str) -> None:
    """Check, once a process, that `opa` is there and new enough.

    Raises:
        Failure: it is not.
    """
    version = re.search(rb"^Version: v?(\d+)\.(\d+)", _run([opa, "version"], b""), re.MULTILINE)
    if version is None:
        raise _untrusted(opa, "`opa version` names no version")
    found = (int(version[1]), int(version[2]))
    if found < OLDEST_OPA:
        raise _untrusted(opa, f"it is version {found[0]}.{found[1]}, older than 1.0")


def _data_files(folder: Path, limits: Path) -> list[Path]:
    """The rules without their tests, and the limits."""
    rules = sorted(path for path in folder.glob("*.rego") if not path.name.endswith("_test.rego"))
    if not rules:
        raise Failure(f"{folder}: holds no guard rules (*.rego)", exit_code=BAD_INPUT)
    if not limits.is_file():
        raise Failure(f"{limits}: there is no such file of limits", exit_code=BAD_INPUT)
    return [*rules, limits]


def _run(arguments: list[str], question: bytes) -> bytes:
    """What OPA prints; within the time and the size that are allowed, and only if it ends well."""
    opa = arguments[0]
    with TemporaryFile() as asked, TemporaryFile() as complaint:
        asked.write(question)  # by a file, so that neither side can block the other
        asked.seek(0)
        try:
            process = subprocess.Popen(arguments, stdin=asked, stdout=subprocess.PIPE, stderr=complaint)
        except OSError as error:
            raise _untrusted(opa, f"it cannot be started: {error.strerror}") from error
        timer = Timer(TIMEOUT_SECONDS, process.kill)
        with process:
            timer.start()
            try:
                answer = process.stdout.read(MAX_ANSWER_BYTES + 1) if process.stdout else b""
                if len(answer) > MAX_ANSWER_BYTES:
                    process.kill()
                process.wait()
            finally:
                timer.cancel()
        complaint.seek(0)
        complained = complaint.read(MAX_COMPLAINT_BYTES) or answer[:MAX_COMPLAINT_BYTES]
    if len(answer) > MAX_ANSWER_BYTES:
        raise _untrusted(opa, f"it printed more than {MAX_ANSWER_BYTES} bytes")
    if process.returncode == -signal.SIGKILL:
        raise _untrusted(opa, f"it was killed, or gave no answer within {TIMEOUT_SECONDS:g} s")
    if process.returncode != 0:
        reason = complained.decode(errors="replace").strip()
        raise _untrusted(opa, f"it ended with code {process.returncode}: {reason}")
    return answer


def _verdict(answer: bytes, opa: str) -> Verdict:
    try:
        document = json.loads(answer)
    except ValueError as error:
        raise _untrusted(opa, "its answer is not JSON") from error
    match document:
        case {"result": [{"expressions": [{"value": {"allow": bool(allow), "denials": list(found)}}]}]}:
            verdict = Verdict(allow, tuple(_denial(each, opa) for each in found))
        case _:
            raise _untrusted(opa, "its answer lacks `allow` or `denials`")
    if verdict.allow and verdict.denials:
        raise _untrusted(opa, "it allows and denies at once")
    return verdict


def _denial(document: object, opa: str) -> Denial:
    match document:
        case {
            "code": str(code),
            "pop": str() | None as pop,
            "prefix": str() | None as prefix,
            "message": str(message),
        }:
            return Denial(code, pop, prefix, message)
        case _:
            raise _untrusted(
                opa, f"a denial has an unknown form: {json.dumps(document)[:MAX_COMPLAINT_BYTES]}"
            )


def _untrusted(opa: str, reason: str) -> Failure:
    return Failure(f"the guard gave no answer: `{opa}`: {reason}", help=_HELP, exit_code=MISSING_PART)
