"""YAML as a tree that knows its lines; values stay text, so no tag, date or number is interpreted."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tidegate_dsl.diagnostics import InputError, unreadable

if TYPE_CHECKING:
    from yaml.nodes import Node


_MERGES: Final = 8  # a merge key can name a mapping that merges it in turn


class Document:
    """A YAML file that has been read, and its messages.

    Args:
        path: the path to read and to call it by.

    Raises:
        InputError: the file can not be read or is not YAML; the message names the line.
    """

    def __init__(self, path: Path) -> None:
        import yaml  # noqa: PLC0415 - a file without an inventory is checked without it

        self.path = path
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # C where PyYAML was built with libyaml
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise unreadable(path, error) from error
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 text") from error
        except ValueError as error:  # a path with a zero byte or a lone surrogate
            raise InputError(f"{str(path)!r} is no path") from error
        try:
            self.root: Node | None = yaml.compose(text, Loader=loader)
        except yaml.MarkedYAMLError as error:
            line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
            raise InputError(f"{path}{line}: not YAML: {error.problem}") from error
        except (yaml.YAMLError, RecursionError) as error:
            raise InputError(f"{path}: not YAML: {str(error).splitlines()[0]}") from error

    def at(self, node: "Node") -> str:
        """`path:line` of a node."""
        return f"{self.path}:{node.start_mark.line + 1}"

    def fault(self, node: "Node", message: str, *, way_out: str | None = None) -> InputError:
        """An error about a node."""
        return InputError(f"{self.at(node)}: {message}", help=way_out)

    def pairs(self, node: "Node", what: str, *, depth: int = 0) -> Iterator[tuple[str, "Node", "Node"]]:
        """Keys and values of a mapping (key text, key, value); nothing of an empty value.

        What a merge key brings comes first, so that in a dict the mapping's own keys win.

        Raises:
            InputError: it is no mapping, or a key is no text, or stands twice.
        """
        from yaml.nodes import MappingNode, ScalarNode, SequenceNode  # noqa: PLC0415

        if isinstance(node, ScalarNode) and node.value in ("", "~", "null"):
            return
        if not isinstance(node, MappingNode):
            raise self.fault(node, f"{what} must be a mapping")
        own = []
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                raise self.fault(key, f"a key of {what} must be text")
            if key.value != "<<":
                own.append((key.value, key, value))
            elif depth == _MERGES:
                raise self.fault(key, f"{what} merges more than {_MERGES} mappings deep")
            else:
                for merged in reversed(value.value) if isinstance(value, SequenceNode) else (value,):
                    yield from self.pairs(merged, what, depth=depth + 1)
        seen: set[str] = set()
        for name, key, _ in own:
            if name in seen:
                raise self.fault(key, f"`{name}` stands twice in {what}")
            seen.add(name)
        yield from own

    def items(self, node: "Node", what: str) -> list[tuple[str, "Node"]]:
        """The texts of a sequence of scalars, with their nodes.

        Raises:
            InputError: it is no sequence of scalars.
        """
        from yaml.nodes import SequenceNode  # noqa: PLC0415

        if not isinstance(node, SequenceNode):
            raise self.fault(node, f"{what} must be a list")
        return [(self.text(item, f"an entry of {what}"), item) for item in node.value]

    def text(self, node: "Node", what: str) -> str:
        """The text of a scalar.

        Raises:
            InputError: it is no scalar.
        """
        from yaml.nodes import ScalarNode  # noqa: PLC0415

        if not isinstance(node, ScalarNode):
            raise self.fault(node, f"{what} must be a single value")
        return str(node.value)
