"""Write the C header that tells a BPF program where a row's fields lie, from the row's only description.

`python collectors/bpf/row_header.py > row.h`
"""

import sys

from tidegate_edge.schemas.rows import ROW, ROW_LENGTH
from tidegate_edge.sockets.iterator import READ_ROWS


def header() -> str:
    """`ROW_AT_<field>` for each field, `ROW_LENGTH`, and `READ_ROWS`, the rows of one read."""
    places = {name: place[1] for name, place in (ROW.fields or {}).items()}
    lines = ["/* Made by row_header.py of schemas/sockets.proto. */", "#pragma once", ""]
    lines += [f"#define ROW_LENGTH {ROW_LENGTH}", f"#define READ_ROWS {READ_ROWS}"]
    lines += [f"#define ROW_AT_{name} {at}" for name, at in places.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(header())
