#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""Sets kernel parameters now and for every boot, and remembers what stood there, so that they can be put back."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: sysctls
short_description: Set kernel parameters, and put back what stood there before
version_added: "0.1.0"
description:
  - Sets parameters of the running kernel and writes them to C(/etc/sysctl.d), where every boot reads them.
  - What stood there first is remembered on the host. A parameter that is no longer named gets it back, and with
    O(state=absent) all do; one that somebody else has set since keeps what it has.
  - Either all parameters are set or none is.
options:
  name:
    description: Of this set of parameters; its files are named after it.
    type: str
    required: true
  values:
    description: The parameters and their values, as C(sysctl) writes them.
    type: dict
    default: {}
  optional:
    description: Those which a kernel may lack or refuse; that is shown as a warning then, and the others are set.
    type: list
    elements: str
    default: []
  boot_directory:
    description: Where every boot reads parameters.
    type: path
    default: /etc/sysctl.d
  memory_directory:
    description: Where what stood there before is kept.
    type: path
    default: /var/lib/tidegate-sysctls
  kernel_directory:
    description: Where the kernel shows its parameters.
    type: path
    default: /proc/sys
  state:
    description: Whether they are set.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    support: full
    description: The kernel is read and nothing is changed. What it would refuse is not known then.
  diff_mode:
    support: full
    description: The parameters in the kernel, before and after.
author:
  - The Tidegate authors (@tidegate)
"""

EXAMPLES = r"""
- name: Keep the window of connections that were idle
  tidegate.edge.sysctls:
    name: riptide
    values:
      net.ipv4.tcp_slow_start_after_idle: 0

- name: Put back what was there
  tidegate.edge.sysctls:
    name: riptide
    state: absent
"""

RETURN = r"""
before:
  description: The parameters that are or were ours, as the kernel had them.
  type: dict
  returned: success
  sample: {net.ipv4.tcp_slow_start_after_idle: "1"}
after:
  description: The same, as the kernel has them now, or in check mode would have.
  type: dict
  returned: success
refused:
  description: Optional parameters that this kernel lacks or refuses, and why.
  type: dict
  returned: success
"""

import contextlib
import re
import tempfile
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

PARAMETER = re.compile(r"[a-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
NAME = re.compile(r"[a-z][a-z0-9_]*")

Values = dict[str, str]


def one_line(value: Any) -> str:  # noqa: ANN401 - YAML's
    """A value as the kernel takes it, blanks as `sysctl` writes them."""
    return " ".join(str(int(value) if isinstance(value, bool) else value).split())


def parse(text: str) -> Values:
    """The `key = value` lines of a sysctl.d(5) file of ours."""
    pairs = (line.split(" = ", 1) for line in text.splitlines() if line and not line.startswith("#"))
    return dict(pairs)


def lines(values: Values) -> str:
    """`key = value` lines, as sysctl.d(5) has them."""
    return "".join(f"{key} = {values[key]}\n" for key in sorted(values))


def to_put_back(ours: Values, remembered: Values, found: Values, wanted: Values) -> Values:
    """What the parameters get that are no longer wanted; what somebody else set since stays.

    Args:
        ours: what the last run set.
        remembered: what stood there before the first.
        found: what the kernel has.
        wanted: what it shall have.
    """
    dropped = remembered.keys() - wanted.keys()
    return {key: remembered[key] for key in dropped if found.get(key) == ours.get(key)}


class Kernel:
    """The parameters of the running kernel.

    Args:
        directory: `/proc/sys`.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def read(self, key: str) -> str | None:
        """A parameter's value, None where the kernel has no such parameter, or does not show it."""
        try:
            return one_line(self._path(key).read_text(encoding="utf-8"))
        except OSError:
            return None

    def write(self, key: str, value: str) -> None:
        """Set a parameter.

        Raises:
            OSError: the kernel refuses.
        """
        with self._path(key).open("r+", encoding="utf-8") as file:
            file.write(f"{value}\n")

    def _path(self, key: str) -> Path:
        return self._directory.joinpath(*key.split("."))


class Set:
    """A named set of parameters: in the kernel, for the next boot, and what stood there before.

    Args:
        module: Ansible's, whose parameters say all.
    """

    def __init__(self, module: AnsibleModule) -> None:
        given = module.params
        self._module = module
        self._kernel = Kernel(Path(given["kernel_directory"]))
        self._boot = Path(given["boot_directory"]) / f"60-tidegate-{given['name']}.conf"
        self._memory = Path(given["memory_directory"]) / f"{given['name']}.conf"
        self._optional = set(given["optional"])
        self.ours = parse(self._text(self._boot))
        self.remembered = parse(self._text(self._memory))
        self.refused: Values = {}
        self._first = self.remembered

    def read(self, keys: set[str]) -> Values:
        """Those of the parameters that the kernel shows."""
        return {key: value for key in sorted(keys) if (value := self._kernel.read(key)) is not None}

    def known(self, wanted: Values, found: Values) -> Values:
        """Those of the wanted ones that this kernel has; the others are refused, if they are optional."""
        missing = wanted.keys() - found.keys()
        if missing - self._optional:
            names = ", ".join(sorted(missing - self._optional))
            self._module.fail_json(msg=f"this kernel has no {names}: nothing was changed")
        self.refused |= dict.fromkeys(missing, "this kernel has no such parameter")
        return {key: value for key, value in wanted.items() if key in found}

    def remember(self, values: Values) -> None:
        """Keep what stood there before; none is forgotten before it was put back."""
        self.remembered = values
        self._keep(self._memory, values)

    def for_boot(self, values: Values) -> None:
        """Have every boot set these."""
        self._keep(self._boot, values)

    def change(self, new: Values, found: Values) -> None:
        """Set parameters of the kernel, all or none but those that are optional."""
        done = []
        for key, value in new.items():
            if found.get(key) == value:
                continue
            try:
                self._kernel.write(key, value)
            except OSError as error:
                if key in self._optional:
                    self.refused[key] = f"{value}: {error.strerror}"
                    self._give_up(key, found)
                    continue
                for other in done:
                    with contextlib.suppress(OSError):
                        self._kernel.write(other, found[other])
                self.remember(self._first)
                self._module.fail_json(
                    msg=f"the kernel refused {key} = {value}: {error.strerror}; what had been set was put back"
                )
            else:
                done.append(key)

    def _give_up(self, key: str, found: Values) -> None:
        """What an earlier run set must not outlive the memory of what stood there before."""
        first = self._first.get(key)
        if first is not None and found.get(key) == self.ours.get(key):
            with contextlib.suppress(OSError):
                self._kernel.write(key, first)

    @staticmethod
    def _text(path: Path) -> str:
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def _keep(self, path: Path, values: Values) -> None:
        if parse(self._text(path)) == values and (values or not path.exists()):
            return
        if not values:
            path.unlink(missing_ok=True)
            if path is self._memory:
                with contextlib.suppress(OSError):  # another set of parameters is remembered there
                    path.parent.rmdir()
            return
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=self._module.tmpdir, delete=False) as file:
            file.write(f"# Tidegate's; `{self._module.params['name']}`\n{lines(values)}")
        Path(file.name).chmod(0o644)
        self._module.atomic_move(file.name, str(path))


def checked(given: dict[str, Any]) -> Values:
    """The wanted values.

    Raises:
        ValueError: a name is none.
    """
    if not NAME.fullmatch(given["name"]):
        raise ValueError(f"`{given['name']}` is no name of a set: lower-case letters, digits and _")
    for key in given["values"]:
        if not PARAMETER.fullmatch(key):
            raise ValueError(f"`{key}` is no kernel parameter: write it as in net.ipv4.tcp_rmem")
    return {key: one_line(value) for key, value in given["values"].items()}


def main() -> None:
    """Bring the kernel, the boot's file and the memory to what is asked for."""
    module = AnsibleModule(
        argument_spec={
            "name": {"type": "str", "required": True},
            "values": {"type": "dict", "default": {}},
            "optional": {"type": "list", "elements": "str", "default": []},
            "boot_directory": {"type": "path", "default": "/etc/sysctl.d"},
            "memory_directory": {"type": "path", "default": "/var/lib/tidegate-sysctls"},
            "kernel_directory": {"type": "path", "default": "/proc/sys"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        supports_check_mode=True,
    )
    try:
        asked = checked(module.params)
    except ValueError as error:
        module.fail_json(msg=str(error))
    settings = Set(module)
    if module.params["state"] == "absent":
        asked = {}
    keys = asked.keys() | settings.remembered.keys()
    found = settings.read(keys)
    wanted = settings.known(asked, found)
    back = to_put_back(settings.ours, settings.remembered, found, wanted)
    boot_changes = settings.ours != wanted
    forgets = bool(settings.remembered.keys() - wanted.keys())
    after = {**found, **back, **wanted}
    if not module.check_mode:
        settings.remember(
            {**settings.remembered, **{k: found[k] for k in wanted if k not in settings.remembered}}
        )
        settings.change({**back, **wanted}, found)
        wanted = {key: value for key, value in wanted.items() if key not in settings.refused}
        boot_changes = settings.ours != wanted
        settings.for_boot(wanted)
        settings.remember({key: value for key, value in settings.remembered.items() if key in wanted})
        after = settings.read(keys)
    for key, reason in settings.refused.items():
        module.warn(f"{key}: {reason}")
    module.exit_json(
        changed=found != after or boot_changes or forgets,
        before=found,
        after=after,
        refused=settings.refused,
        diff={
            "before": lines(found),
            "after": lines(after),
            "before_header": "kernel parameters",
            "after_header": "kernel parameters",
        },
    )


if __name__ == "__main__":
    main()
