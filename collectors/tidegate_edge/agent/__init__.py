"""`tidegate-agent`: the daemon that keeps this host's kernel at what steering.json says, and its commands.

`commands` wires. What a command does alone is in `direct`, what the daemon does in `daemon`: `conversation` and
`protocol` bring it requests, `answers` does what they ask, `lifecycle` keeps generations on disk, `reconcile`
keeps the kernel at the current one; `documents`, `why` and `steering_file` are what is shown of it. `ask` is the
other end of the socket.
"""

from .commands import main as main
