"""The ledger of files: which blocks of them the store has.

An entry follows its block. A crash between the two leaves a block without its entry, and its token makes the next
insert of it a no-op.
"""

from collections.abc import Collection
from pathlib import Path

from clickhouse_connect.driver.client import Client


def known_blocks(client: Client, tokens: Collection[str]) -> set[str]:
    """Those of these tokens that have an entry."""
    rows = client.query(
        "SELECT DISTINCT toString(token) FROM ingested_blocks WHERE token IN {tokens:Array(String)}",
        parameters={"tokens": list(tokens)},
    ).result_rows
    return {str(row[0]) for row in rows}


def note_block(client: Client, token: str, path: Path, added: int) -> None:
    """Make the entry of a block that is in the store.

    Args:
        client: of an open and migrated store.
        token: of the block.
        path: of the file that it is of; its name is noted.
        added: rows.
    """
    client.command(
        "INSERT INTO ingested_blocks (token, file, added) VALUES ({token:String}, {file:String}, {added:UInt64})",
        parameters={"token": token, "file": path.name, "added": added},
    )
