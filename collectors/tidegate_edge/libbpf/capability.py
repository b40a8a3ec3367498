"""Whether this process may use BPF (capabilities(7))."""

from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")

# Bits of linux/capability.h; CAP_SYS_ADMIN includes CAP_BPF.
_SYS_ADMIN: Final = 21
_BPF: Final = 39


def may_use_bpf() -> bool:
    """Whether CAP_BPF is effective; a kernel with `unprivileged_bpf_disabled` may refuse all of bpf(2) without it."""
    (effective,) = [
        int(line.split()[1], 16) for line in _STATUS.read_text().splitlines() if line.startswith("CapEff:")
    ]
    return bool(effective & (1 << _BPF | 1 << _SYS_ADMIN))
