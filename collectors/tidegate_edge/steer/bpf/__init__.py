"""Steering by a BPF program: settings by prefix, set when a connection is established or passes a size.

Start at `backend`. `held` are the records, `layout` their bytes in the kernel, `policy` the trie of a generation,
`program` what is loaded and pinned, `steered` what each connection was given, `cgroup` where it is attached.
"""

from .backend import BpfBackend
from .held import Counters, Held, Standing, Steered, Unavailable

__all__ = ["BpfBackend", "Counters", "Held", "Standing", "Steered", "Unavailable"]
