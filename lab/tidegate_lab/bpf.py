"""BPF programs of the laboratory: built by clang when they are used, and what only they need of libbpf."""

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Final

from tidegate_edge.libbpf.library import Needs, bound, library

# bpf/bpf.h and bpf/libbpf.h, beside the table of tidegate_edge.libbpf.library.
_FUNCTIONS: Final = {
    "bpf_map__attach_struct_ops": (ctypes.c_void_p, (ctypes.c_void_p,)),
    "bpf_map__set_map_flags": (ctypes.c_int, (ctypes.c_void_p, ctypes.c_uint32)),
    "bpf_prog_test_run_opts": (ctypes.c_int, (ctypes.c_int, ctypes.c_void_p)),
}


@contextmanager
def built(name: str) -> Iterator[Path]:
    """The object made of a source beside this file, while the block runs.

    Args:
        name: of the source, without `.bpf.c`.

    Raises:
        RuntimeError: there is no clang, or it failed; what it said is in a note.
    """
    source = Path(__file__).with_name(f"{name}.bpf.c")
    machine = os.uname().machine
    target = {"x86_64": "x86", "aarch64": "arm64"}.get(machine, machine)
    with tempfile.TemporaryDirectory() as directory:
        made = Path(directory) / f"{name}.bpf.o"
        argv = ["clang", "-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]
        argv += [f"-D__TARGET_ARCH_{target}", f"-I/usr/include/{machine}-linux-gnu", "-c", str(source)]
        try:
            subprocess.run([*argv, "-o", made], check=True, capture_output=True, text=True)
        except FileNotFoundError as error:
            raise RuntimeError("no clang: `make system` installs it") from error
        except subprocess.CalledProcessError as error:
            failure = RuntimeError(f"clang can't build {source.name}")
            failure.add_note(error.stderr)
            raise failure from error
        yield made


def libbpf(needs: Needs) -> ctypes.CDLL:
    """The library, with the types of the functions that only the laboratory calls.

    Raises:
        Unavailable: it is not installed, or too old.
    """
    library(needs)
    return _typed()


@cache
def _typed() -> ctypes.CDLL:
    loaded = bound()
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded
