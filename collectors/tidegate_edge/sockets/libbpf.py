"""A BPF iterator loaded by the system's libbpf, through ctypes: a host needs neither compiler nor kernel headers.

The interface is that of libbpf 1.0 (`libbpf.so.1`, Debian's libbpf1): it returns NULL or a negative number on
failure and leaves the cause in errno.
"""

import ctypes
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tidegate_edge.errors import MISSING_PART, Failure

LIBRARY: Final = "libbpf.so.1"
KERNEL_BTF: Final = Path("/sys/kernel/btf/vmlinux")

_MESSAGE_LENGTH: Final = 1 << 16
_PRINT: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_WARNING: Final = 0  # enum libbpf_print_level

# Function: (result, arguments), as bpf/libbpf.h and bpf/bpf.h declare them.
_FUNCTIONS: Final = {
    "bpf_object__open_file": (ctypes.c_void_p, (ctypes.c_char_p, ctypes.c_void_p)),
    "bpf_object__load": (ctypes.c_int, (ctypes.c_void_p,)),
    "bpf_object__close": (None, (ctypes.c_void_p,)),
    "bpf_object__find_program_by_name": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)),
    "bpf_object__find_map_by_name": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_char_p)),
    "bpf_map__fd": (ctypes.c_int, (ctypes.c_void_p,)),
    "bpf_program__attach_iter": (ctypes.c_void_p, (ctypes.c_void_p, ctypes.c_void_p)),
    "bpf_link__fd": (ctypes.c_int, (ctypes.c_void_p,)),
    "bpf_link__destroy": (ctypes.c_int, (ctypes.c_void_p,)),
    "bpf_iter_create": (ctypes.c_int, (ctypes.c_int,)),
    "libbpf_set_print": (ctypes.c_void_p, (ctypes.c_void_p,)),
}


class Unavailable(Failure):
    """This host can't run the program, and why.

    Args:
        why: in words, lower case, no full stop.
    """

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no BPF: {why}", help="`--reader netlink` reads the same rows", exit_code=MISSING_PART
        )


@dataclass(frozen=True, slots=True)
class Loaded:
    """A program in the kernel, which leaves it with `unload` or with this process.

    Attributes:
        library: libbpf.
        handle: its object.
        link: its link of the iterator.
        map_fd: the map of the program's global variables.
    """

    library: ctypes.CDLL
    handle: int
    link: int
    map_fd: int

    def start(self) -> int:
        """A descriptor from which one walk is read, in the network namespace of the calling thread.

        Raises:
            OSError: the kernel refuses.
        """
        descriptor: int = self.library.bpf_iter_create(self.library.bpf_link__fd(self.link))
        if descriptor < 0:
            raise OSError(-descriptor, os.strerror(-descriptor))
        return descriptor

    def unload(self) -> None:
        """Detach and forget the program; `map_fd` is closed."""
        self.library.bpf_link__destroy(self.link)
        self.library.bpf_object__close(self.handle)


def load(path: Path, program: str) -> Loaded:
    """Load an object file, let the verifier check it, and attach its iterator.

    Args:
        path: of the object.
        program: name of the iterator in it.

    Raises:
        Unavailable: and why.
    """
    if not path.is_file():
        raise Unavailable(f"this installation has no {path.name}: it was built without clang")
    library = _library()
    said: list[str] = []
    with _heard(library, said):
        handle = library.bpf_object__open_file(os.fsencode(path), None)
        if not handle:
            raise Unavailable(_reason("libbpf can't read the object", ctypes.get_errno(), said))
        link = None
        if library.bpf_object__load(handle) == 0:
            found = library.bpf_object__find_program_by_name(handle, program.encode())
            link = library.bpf_program__attach_iter(found, None)
        if not link:
            reason = _reason("the kernel refuses the program", ctypes.get_errno(), said)
            library.bpf_object__close(handle)
            raise Unavailable(reason)
        variables = library.bpf_object__find_map_by_name(handle, b".bss")
        return Loaded(library, handle, link, library.bpf_map__fd(variables))


@cache
def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY, use_errno=True)
        for name, (result, arguments) in _FUNCTIONS.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
    except OSError as error:
        raise Unavailable(f"{LIBRARY} is not installed (Debian: libbpf1)") from error
    except AttributeError as error:
        raise Unavailable(f"{LIBRARY} is older than 1.0: {error}") from error
    return library


@contextmanager
def _heard(library: ctypes.CDLL, said: list[str]) -> Iterator[None]:
    """Gather libbpf's warnings instead of letting it print them."""
    format_message = ctypes.CDLL(None).vsnprintf
    buffer = ctypes.create_string_buffer(_MESSAGE_LENGTH)

    def listen(level: int, form: bytes, values: int) -> int:
        if level == _WARNING:
            format_message(buffer, ctypes.c_size_t(len(buffer)), form, ctypes.c_void_p(values))
            said.append(buffer.value.decode(errors="replace"))
        return 0

    listener = _PRINT(listen)
    library.libbpf_set_print(ctypes.cast(listener, ctypes.c_void_p))
    try:
        yield
    finally:
        library.libbpf_set_print(None)


def _reason(what: str, code: int, said: list[str]) -> str:
    if code in (errno.EPERM, errno.EACCES) and not _verdict(said):
        return "it takes CAP_BPF and CAP_PERFMON, which this process lacks"
    if not KERNEL_BTF.exists():
        return f"the kernel has no BTF ({KERNEL_BTF}): it is older than 5.4 or built without CONFIG_DEBUG_INFO_BTF"
    because = _verdict(said) or (said[-1].strip() if said else os.strerror(code))
    return f"{what} (Linux {os.uname().release}; it takes 5.12): {because}"


def _verdict(said: list[str]) -> str:
    """What the verifier said last, before its statistics; empty where it was not asked."""
    log = next((text for text in reversed(said) if "BEGIN PROG LOAD LOG" in text), "")
    lines = log.partition("BEGIN PROG LOAD LOG --")[2].partition("processed ")[0].splitlines()
    spoken = [line.strip() for line in lines if line.strip() and not line.startswith("verification time")]
    return spoken[-1] if spoken else ""
