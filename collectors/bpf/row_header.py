"""Write the C header that tells a BPF program where a row's fields lie, and what else it shares with its reader.

`python collectors/bpf/row_header.py > row.h`
"""

import sys
from typing import Final

from tidegate_edge.schemas.rows import ROW, ROW_LENGTH
from tidegate_edge.sockets.iterator import CLASS_STEPS, READ_ROWS
from tidegate_edge.sockets.traffic import INTRA_POP, KEY_OF_THE_REST

SHARED: Final = {
    "ROW_LENGTH": ROW_LENGTH,
    "READ_ROWS": READ_ROWS,
    "CLASS_STEPS": CLASS_STEPS,
    "CLASS_KEY_REST": f"{KEY_OF_THE_REST:#x}ULL",
    "CLASS_WITHIN_HOST": INTRA_POP,
}


def header() -> str:
    """`ROW_AT_<field>` for each field, and the names of `SHARED`."""
    places = {name: place[1] for name, place in (ROW.fields or {}).items()}
    lines = ["/* Made by row_header.py of schemas/sockets.proto. */", "#pragma once", ""]
    lines += [f"#define {name} {value}" for name, value in SHARED.items()]
    lines += [f"#define ROW_AT_{name} {at}" for name, at in places.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(header())
