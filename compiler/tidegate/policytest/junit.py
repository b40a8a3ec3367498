"""Results of policy tests as JUnit XML, which continuous integration shows.

The form is that of Jenkins' xunit plugin (junit-10.xsd); there is no standard.
"""

import re
from collections.abc import Iterable
from typing import Final
from xml.etree import ElementTree

from tidegate_dsl import render

from tidegate.policytest.judge import Status, Tried
from tidegate.policytest.report import detail, gist
from tidegate.policytest.run import FileReport

# What is no character of XML 1.0 (section 2.2).
_STRANGE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENTS: Final[dict[Status, str]] = {"failed": "failure", "unreadable": "error", "not run": "skipped"}


def junit_xml(reports: Iterable[FileReport]) -> str:
    """One suite a file, one case a test; a policy with errors is a case that could not be run."""
    root = ElementTree.Element("testsuites", name="tidegate test")
    root.extend(_suite(report) for report in reports)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(report: FileReport) -> ElementTree.Element:
    path = _text(str(report.tested.path))
    statuses = [tried.status for tried in report.tried]
    broken = report.tested.policy is None
    suite = ElementTree.Element(
        "testsuite",
        name=path,
        tests=str(len(statuses) + broken),
        failures=str(statuses.count("failed")),
        errors=str(statuses.count("unreadable") + broken),
        skipped=str(statuses.count("not run")),
    )
    if broken:
        case = ElementTree.SubElement(suite, "testcase", classname=path, name="the policy has no errors")
        error = ElementTree.SubElement(case, "error", message="the policy has errors")
        error.text = _text(render(report.tested.checked))
    suite.extend(_case(path, tried) for tried in report.tried)
    return suite


def _case(path: str, tried: Tried) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase", classname=path, name=_text(tried.test.name), file=path, line=str(tried.test.clause.line)
    )
    if element := _ELEMENTS.get(tried.status):
        said = ElementTree.SubElement(case, element, message=_text(gist(tried)))
        said.text = _text("\n".join(detail(tried)))
    return case


def _text(value: str) -> str:
    return _STRANGE.sub("\N{REPLACEMENT CHARACTER}", value)
