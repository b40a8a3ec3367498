"""The functions of libbpf that Tidegate calls, through ctypes, and what its failures mean.

The interface is that of libbpf 1.0 (`libbpf.so.1`, Debian's libbpf1): a function returns NULL or a negative number on
failure and leaves the cause in errno. It also raises RLIMIT_MEMLOCK by itself, only where the kernel (before 5.11)
counts BPF memory against it.
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

_Pointer, _Int, _U32, _U64, _Text = (
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_uint32,
    ctypes.c_uint64,
    ctypes.c_char_p,
)

# Function: (result, arguments), as bpf/libbpf.h and bpf/bpf.h declare them.
_FUNCTIONS: Final = {
    "bpf_object__open_file": (_Pointer, (_Text, _Pointer)),
    "bpf_object__load": (_Int, (_Pointer,)),
    "bpf_object__close": (None, (_Pointer,)),
    "bpf_object__find_program_by_name": (_Pointer, (_Pointer, _Text)),
    "bpf_object__find_map_by_name": (_Pointer, (_Pointer, _Text)),
    "bpf_program__fd": (_Int, (_Pointer,)),
    "bpf_program__set_autoload": (_Int, (_Pointer, ctypes.c_bool)),
    "bpf_program__attach_iter": (_Pointer, (_Pointer, _Pointer)),
    "bpf_map__fd": (_Int, (_Pointer,)),
    "bpf_map__reuse_fd": (_Int, (_Pointer, _Int)),
    "bpf_link__fd": (_Int, (_Pointer,)),
    "bpf_link__destroy": (_Int, (_Pointer,)),
    "bpf_iter_create": (_Int, (_Int,)),
    "bpf_link_create": (_Int, (_Int, _Int, _Int, _Pointer)),
    "bpf_link_update": (_Int, (_Int, _Int, _Pointer)),
    "bpf_link_detach": (_Int, (_Int,)),
    "bpf_obj_pin": (_Int, (_Int, _Text)),
    "bpf_obj_get": (_Int, (_Text,)),
    "bpf_obj_get_info_by_fd": (_Int, (_Int, _Pointer, _Pointer)),
    "bpf_map_create": (_Int, (_Int, _Text, _U32, _U32, _U32, _Pointer)),
    "bpf_map_freeze": (_Int, (_Int,)),
    "bpf_map_lookup_elem": (_Int, (_Int, _Pointer, _Pointer)),
    "bpf_map_update_elem": (_Int, (_Int, _Pointer, _Pointer, _U64)),
    "bpf_map_delete_elem": (_Int, (_Int, _Pointer)),
    "bpf_map_get_next_key": (_Int, (_Int, _Pointer, _Pointer)),
    "bpf_map_update_batch": (_Int, (_Int, _Pointer, _Pointer, _Pointer, _Pointer)),
    "bpf_map_lookup_batch": (_Int, (_Int, _Pointer, _Pointer, _Pointer, _Pointer, _Pointer, _Pointer)),
    "libbpf_set_print": (_Pointer, (_Pointer,)),
}


@dataclass(frozen=True, slots=True)
class Needs:
    """What a program takes, for the message where a host lacks it.

    Attributes:
        linux: the oldest version.
        capabilities: in words.
        otherwise: the way out, one sentence.
    """

    linux: str
    capabilities: str
    otherwise: str


class Unavailable(Failure):
    """This host can't run the program, and why.

    Args:
        why: in words, lower case, no full stop.
        needs: of the program.
    """

    def __init__(self, why: str, needs: Needs) -> None:
        super().__init__(f"no BPF: {why}", help=needs.otherwise, exit_code=MISSING_PART)


def library(needs: Needs) -> ctypes.CDLL:
    """The library, loaded once.

    Raises:
        Unavailable: it is not installed, or too old.
    """
    try:
        return bound()
    except OSError as error:
        raise Unavailable(f"{LIBRARY} is not installed (Debian: libbpf1)", needs) from error
    except AttributeError as error:
        raise Unavailable(f"{LIBRARY} is older than 1.0: {error}", needs) from error


@cache
def bound() -> ctypes.CDLL:
    """The library with the types of its functions.

    Raises:
        OSError: it is not installed.
        AttributeError: it lacks a function.
    """
    loaded = ctypes.CDLL(LIBRARY, use_errno=True)
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def succeed(result: int) -> int:
    """The result of a function that says its error by a negative number.

    Raises:
        OSError: it did.
    """
    if result < 0:
        raise OSError(-result, os.strerror(-result))
    return result


@contextmanager
def heard(said: list[str]) -> Iterator[None]:
    """Gather libbpf's warnings instead of letting it print them."""
    format_message = ctypes.CDLL(None).vsnprintf
    buffer = ctypes.create_string_buffer(_MESSAGE_LENGTH)

    def listen(level: int, form: bytes, values: int) -> int:
        if level == _WARNING:
            format_message(buffer, ctypes.c_size_t(len(buffer)), form, ctypes.c_void_p(values))
            said.append(buffer.value.decode(errors="replace"))
        return 0

    listener = _PRINT(listen)
    bound().libbpf_set_print(ctypes.cast(listener, ctypes.c_void_p))
    try:
        yield
    finally:
        bound().libbpf_set_print(None)


def reason(what: str, code: int, said: list[str], needs: Needs) -> str:
    """Why a call failed, in words.

    Args:
        what: failed.
        code: errno.
        said: libbpf's warnings.
        needs: of the program.
    """
    if code in (errno.EPERM, errno.EACCES) and not _verdict(said):
        return f"it takes {needs.capabilities}, which this process lacks"
    if not KERNEL_BTF.exists():
        return f"the kernel has no BTF ({KERNEL_BTF}): it is older than 5.4 or built without CONFIG_DEBUG_INFO_BTF"
    because = _verdict(said) or (said[0].strip() if said else os.strerror(code))
    return f"{what} (Linux {os.uname().release}; it takes {needs.linux}): {because}"


def _verdict(said: list[str]) -> str:
    """What the verifier said last, before its statistics; empty where it was not asked."""
    log = next((text for text in reversed(said) if "BEGIN PROG LOAD LOG" in text), "")
    lines = log.partition("BEGIN PROG LOAD LOG --")[2].partition("processed ")[0].splitlines()
    spoken = [line.strip() for line in lines if line.strip() and not line.startswith("verification time")]
    return spoken[-1] if spoken else ""
