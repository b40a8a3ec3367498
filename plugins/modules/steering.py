#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Has the Tidegate agent of a host make the kernel match a steering file; the deciding is all the agent's."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: steering
short_description: Make the kernel match a steering file
version_added: "0.1.0"
description:
  - Runs C(tidegate-agent apply) on the host, or C(tidegate-agent flush), and reports what the agent did.
  - The agent touches only what is its own and is idempotent.
  - A claim that the host cannot keep is no error; it is shown as a warning and returned in RV(not_applied).
options:
  steering_file:
    description: The file that the agent reads, as C(schemas/steering.schema.json) says.
    type: path
    required: true
  content:
    description:
      - What O(steering_file) would hold.
      - Read in check mode alone, in place of O(steering_file), which need not exist then.
    type: str
  confirm_within:
    description:
      - How long what was applied lasts unless it is confirmed, as C(10m). It takes the agent's service.
      - Where the service has that very generation confirmed, and the kernel matches it, nothing is applied.
      - Without it, what was applied stays.
    type: str
  again:
    description: Whether to apply also a generation that the service has confirmed.
    type: bool
    default: false
  state:
    description: C(absent) leaves nothing of the agent's in the kernel.
    type: str
    choices: [present, absent]
    default: present
  state_directory:
    description: Where the agent keeps what it has to remember between runs.
    type: path
    default: /var/lib/tidegate
  agent:
    description: How the agent is started, program and first arguments, each an item.
    type: list
    elements: str
    default: [/usr/bin/tidegate-agent]
attributes:
  check_mode:
    support: full
    description: The agent plans and reports, and changes nothing.
  diff_mode:
    support: full
    description: The agent's settings and the default algorithm, before and after.
author:
  - The Tidegate authors (@tidegate)
"""

EXAMPLES = r"""
- name: Make the kernel match the steering file
  tidegate.edge.steering:
    steering_file: /etc/tidegate/steering.json

- name: The same, taken back in ten minutes unless `tidegate-agent confirm` is run
  tidegate.edge.steering:
    steering_file: /etc/tidegate/steering.json
    confirm_within: 10m

- name: The same in a network namespace
  tidegate.edge.steering:
    steering_file: /etc/tidegate/steering.json
    agent: [ip, netns, exec, pop, /usr/bin/tidegate-agent]
"""

RETURN = r"""
generation:
  description: The generation that the steering file carries; null after a flush.
  type: str
  returned: success
  sample: 0f1e2d3c4b5a6978
added:
  description: Prefixes that were given settings.
  type: list
  elements: str
  returned: success
replaced:
  description: Prefixes whose settings were replaced.
  type: list
  elements: str
  returned: success
removed:
  description: Prefixes whose settings were taken away.
  type: list
  elements: str
  returned: success
not_applied:
  description: Attributes of claims that this host cannot keep, each with its prefix and the reason.
  type: list
  elements: dict
  returned: success
  sample:
    - prefix: 203.0.113.0/24
      attribute: congestion_control
      reason: routes cannot gate by size
pending:
  description: The generation that waits to be confirmed, for how long, and what comes back else; null if none does.
  type: dict
  returned: success
  sample: {generation: 0f1e2d3c4b5a6978, seconds_left: 600.0, reverts_to: null}
failed_claims:
  description: Prefixes whose route the kernel refused, each with the reason.
  type: list
  elements: dict
  returned: when the kernel refused some
"""

import json
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

DONE = 0
KERNEL_REFUSED_SOME = 1


def command(given: dict[str, Any], steering_file: str, dry_run: bool) -> list[str]:
    """The agent's argument list for one run.

    Args:
        given: the module's parameters.
        steering_file: what is applied.
        dry_run: whether nothing may change.
    """
    state = ["--state-dir", given["state_directory"], "--json"]
    changing = ["--dry-run"] if dry_run else []
    if given["state"] == "absent":
        return [*given["agent"], "flush", *state, *changing]
    if given["confirm_within"] and not dry_run:
        changing = ["--confirm-within", given["confirm_within"]]
    return [*given["agent"], "apply", "--steering", steering_file, *state, *changing]


def is_confirmed(status: dict[str, Any], steering_file: str) -> bool:
    """Whether the agent's service holds the file's generation for good, and the kernel matches it.

    Args:
        status: what `tidegate-agent status` printed.
        steering_file: the file.
    """
    try:
        generation = json.loads(Path(steering_file).read_text(encoding="utf-8"))["generation"]
    except (OSError, ValueError, KeyError, TypeError):
        return False  # the agent says what ails it
    service_has = "drift" in status and status["generation"] == generation
    return service_has and status["matches"] and status["pending"] is None


def diff(report: dict[str, Any]) -> dict[str, str]:
    """What the kernel held before and holds after, as Ansible shows it."""
    default = report["default_congestion_control"]
    shown = {}
    for moment in ("before", "after"):
        lines = [f"default congestion control {default[moment]}", *report[moment]]
        shown[moment] = "".join(f"{line}\n" for line in lines)
        shown[f"{moment}_header"] = "kernel, as tidegate-agent set it"
    return shown


def remarks(report: dict[str, Any]) -> list[str]:
    """What the operator should know although nothing failed."""
    kept_back = [
        f"{row['prefix']}: {row['attribute']} not applied: {row['reason']}" for row in report["not_applied"]
    ]
    return kept_back + [f"{row['prefix'] or 'host'}: {row['reason']}" for row in report["warnings"]]


def status(module: AnsibleModule) -> dict[str, Any]:
    """What the agent says of itself; empty where it says nothing."""
    given = module.params
    _, output, _ = module.run_command(
        [*given["agent"], "status", "--state-dir", given["state_directory"], "--json"]
    )
    try:
        return json.loads(output)
    except ValueError:
        return {}


def main() -> None:
    """Run the agent once and hand its report to Ansible."""
    module = AnsibleModule(
        argument_spec={
            "steering_file": {"type": "path", "required": True},
            "content": {"type": "str"},
            "confirm_within": {"type": "str"},
            "again": {"type": "bool", "default": False},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_directory": {"type": "path", "default": "/var/lib/tidegate"},
            "agent": {"type": "list", "elements": "str", "default": ["/usr/bin/tidegate-agent"]},
        },
        supports_check_mode=True,
    )
    given = module.params
    steering_file = given["steering_file"]
    if module.check_mode and given["content"] is not None:
        would_be = Path(module.tmpdir) / "steering.json"
        would_be.write_text(given["content"], encoding="utf-8")
        steering_file = str(would_be)

    dry_run = module.check_mode
    if given["state"] == "present" and given["confirm_within"] and not given["again"] and not dry_run:
        # What was confirmed needs no probation: an unchanged roll-out changes nothing.
        dry_run = is_confirmed(status(module), steering_file)
    code, output, errors = module.run_command(command(given, steering_file, dry_run))
    if code not in {DONE, KERNEL_REFUSED_SOME}:
        module.fail_json(msg=f"the agent stopped with code {code}: {errors.strip()}", rc=code)
    try:
        report = json.loads(output)
    except ValueError:
        module.fail_json(msg="the agent printed no report", stdout=output, stderr=errors)

    for remark in remarks(report):
        module.warn(remark)
    returned = ("generation", "added", "replaced", "removed", "not_applied")
    result = {
        "changed": report["changed"],
        "diff": diff(report),
        "pending": report.get("pending"),
        **{key: report[key] for key in returned},
    }
    if code == KERNEL_REFUSED_SOME:
        refused = [f"{row['prefix']}: {row['reason']}" for row in report["failed"]]
        module.fail_json(
            msg=f"the kernel refused {'; '.join(refused)}", failed_claims=report["failed"], **result
        )
    module.exit_json(**result)


if __name__ == "__main__":
    main()
