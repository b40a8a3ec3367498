"""Diagnostics as SARIF 2.1.0 (OASIS, Static Analysis Results Interchange Format), for code scanning and editors.

Columns count characters, which `columnKind` declares. `helpUri` must be absolute, and a policy's author may read the
pages anywhere, so a rule carries its page as text and names it in its properties.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Final
from urllib.parse import quote

from .codes import CODES
from .report import Diagnostic, Edit, page
from .source import Source

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

Json = dict[str, object]


def sarif(
    results: Iterable[tuple[Source, Sequence[Diagnostic], Sequence[Diagnostic]]],
    *,
    version: str,
    explain: Callable[[str], str],
) -> Json:
    """One log with one run.

    Args:
        results: each file, what was found in it, and the warnings that it silences.
        version: of the tool.
        explain: a code's page in Markdown.
    """
    found = [
        (source, diagnostic, silent)
        for source, told, silenced in results
        for silent, diagnostics in ((False, told), (True, silenced))
        for diagnostic in diagnostics
    ]
    codes = sorted({diagnostic.code for _, diagnostic, _ in found})
    run: Json = {
        "tool": {
            "driver": {
                "name": "tidegate",
                "version": version,
                "rules": [_rule(code, explain) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": [
            _result(source, diagnostic, codes.index(diagnostic.code), silent=silent)
            for source, diagnostic, silent in found
        ],
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str, explain: Callable[[str], str]) -> Json:
    return {
        "id": code,
        "shortDescription": {"text": CODES[code]},
        "help": {
            "text": f"tidegate check --explain {code}",
            "markdown": explain(code),
        },
        "properties": {"page": page(code)},
    }


def _result(source: Source, diagnostic: Diagnostic, rule: int, *, silent: bool) -> Json:
    lines = [diagnostic.message, *diagnostic.notes]
    if diagnostic.help:
        lines.append(f"help: {diagnostic.help}")
    span = diagnostic.span
    result: Json = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity,
        "message": {"text": "\n".join(lines)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(source),
                    "region": {
                        "startLine": span.line,
                        "startColumn": span.column,
                        "endLine": span.line,
                        "endColumn": span.end_column,
                    },
                }
            }
        ],
        # An empty list says that nothing is suppressed; where one result has the property, every one must.
        "suppressions": [{"kind": "inSource"}] if silent else [],
    }
    if diagnostic.fix:
        replacements = [_replacement(source, edit) for edit in diagnostic.fix.edits]
        result["fixes"] = [
            {
                "description": {"text": diagnostic.fix.title},
                "artifactChanges": [{"artifactLocation": _artifact(source), "replacements": replacements}],
            }
        ]
    return result


def _replacement(source: Source, edit: Edit) -> Json:
    line, column = edit.span.line, edit.span.column
    end_line, end_column = source.end_place(edit.span)
    return {
        "deletedRegion": {
            "startLine": line,
            "startColumn": column,
            "endLine": end_line,
            "endColumn": end_column,
        },
        "insertedContent": {"text": edit.text},
    }


def _artifact(source: Source) -> Json:
    """The file as a URI, relative to where the command ran unless it was given as an absolute path (RFC 3986)."""
    path = PurePath(source.path)
    return {"uri": path.as_uri() if path.is_absolute() else quote(path.as_posix())}
