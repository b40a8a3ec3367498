"""An editor's side of the Language Server Protocol, over the pipes of a real `tidegate lsp`."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Json = Any  # a message's values, as `json` reads them


class Refusal(Exception):
    """The server's error response; the message is what an editor shows."""


class Editor:
    """One editor and its server; every wait is for a message."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._process = process
        self._last_id = 0
        self._versions: dict[str, int] = {}
        self.capabilities: Json = None

    def initialize(self, *, snippets: bool = True, encodings: tuple[str, ...] = ("utf-16",)) -> None:
        item = {"snippetSupport": snippets}
        answer = self.request(
            "initialize",
            processId=None,
            rootUri=None,
            capabilities={
                "general": {"positionEncodings": list(encodings)},
                "textDocument": {"completion": {"completionItem": item}},
            },
        )
        self.capabilities = answer["capabilities"]
        self.notify("initialized")

    def open(self, path: Path, text: str) -> Json:
        """Open a document; the diagnostics that come back."""
        uri = path.as_uri()
        self._versions[uri] = 1
        item = {"uri": uri, "languageId": "tide", "version": 1, "text": text}
        self.notify("textDocument/didOpen", textDocument=item)
        return self.diagnostics(path)

    def change(self, path: Path, *changes: Json) -> Json:
        """Change a document; the diagnostics that come back."""
        uri = path.as_uri()
        self._versions[uri] += 1
        document = {"uri": uri, "version": self._versions[uri]}
        self.notify("textDocument/didChange", textDocument=document, contentChanges=list(changes))
        return self.diagnostics(path)

    def diagnostics(self, path: Path) -> Json:
        """The next diagnostics of a document."""
        while True:
            message = self._read()
            if message.get("method") == "window/showMessage":
                raise Refusal(message["params"]["message"])
            if (
                message.get("method") == "textDocument/publishDiagnostics"
                and message["params"]["uri"] == path.as_uri()
            ):
                assert message["params"].get("version") in (self._versions.get(path.as_uri()), None)
                return message["params"]["diagnostics"]

    def at(self, method: str, path: Path, line: int, character: int, **more: Json) -> Json:
        """Ask about a position; both count from 0."""
        position = {"line": line, "character": character}
        return self.about(method, path, position=position, **more)

    def about(self, method: str, path: Path, **more: Json) -> Json:
        """Ask about a document."""
        return self.request(f"textDocument/{method}", textDocument={"uri": path.as_uri()}, **more)

    def request(self, method: str, **params: Json) -> Json:
        """Ask, and wait for the answer."""
        self._last_id += 1
        self._write({"id": self._last_id, "method": method, **({"params": params} if params else {})})
        while True:
            message = self._read()
            if message.get("id") == self._last_id and "method" not in message:
                if "error" in message:
                    raise Refusal(message["error"]["message"])
                return message.get("result")

    def notify(self, method: str, **params: Json) -> None:
        """Say something that has no answer."""
        self._write({"method": method, "params": params})

    def quit(self) -> int:
        """Shut the server down; its exit code."""
        self.request("shutdown")
        self.notify("exit")
        return self._process.wait()

    def _write(self, message: Json) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _read(self) -> Json:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if not length:
            raise EOFError("the server has ended")
        return json.loads(self._process.stdout.read(length))


@contextmanager
def editor(*options: str, **capabilities: Json) -> Iterator[Editor]:
    """An editor with a server that it started and that ends with it."""
    command = [str(Path(sys.executable).with_name("tidegate")), "lsp", *options]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        try:
            made = Editor(process)
            made.initialize(**capabilities)
            yield made
        finally:
            process.kill()
