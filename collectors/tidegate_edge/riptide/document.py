"""A state as one JSON document, for `status --json` and for the next start."""

from ipaddress import ip_network
from typing import Any, Final, TypeAlias

from tidegate_edge.errors import BAD_INPUT, Failure
from tidegate_edge.steer.prefix import order
from tidegate_edge.steer.steering import Learn

from .hold_out import draw_ppm
from .state import Grouping, Learned, State
from .windows import MAX_DESTINATIONS, under

Document: TypeAlias = dict[str, Any]

_WAY_OUT: Final = "delete the state; the windows are learned again"


def as_document(state: State, settings: Learn, now_us: int) -> Document:
    """What is learned, and what it was learned from.

    Returns:
        `by`; `destinations`, sorted: `prefix`, `initcwnd` (segments), `held_out`, `age_us` (since it was last
        observed); and `counts`, as `State` has them.
    """
    held = under(state, settings)
    return {
        "by": held.by,
        "destinations": [
            {
                "prefix": str(prefix),
                "initcwnd": each.window,
                "held_out": each.draw_ppm < settings.hold_out_ppm,
                "age_us": now_us - each.observed_us,
            }
            for prefix, each in sorted(held.learned.items(), key=lambda item: order(item[0]))
        ],
        "counts": dict(held.counts),
    }


def from_document(document: Document, settings: Learn, now_us: int, by: Grouping = "host") -> State:
    """The state of a document, under settings that may be others: what they do not allow is left out.

    Counts begin anew, and every connection is new. A document of another grouping gives an empty state.

    Raises:
        Failure: the document is not what `as_document` makes.
    """
    try:
        if document["by"] != by:
            return State(by=by)
        learned = {
            (prefix := ip_network(each["prefix"])): Learned(
                int(each["initcwnd"]), now_us - max(0, int(each["age_us"])), draw_ppm(prefix)
            )
            for each in document["destinations"][:MAX_DESTINATIONS]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise Failure(f"learned windows: {error!r}", help=_WAY_OUT, exit_code=BAD_INPUT) from error
    kept = {
        prefix: each for prefix, each in learned.items() if now_us - each.observed_us < settings.expire_us
    }
    return under(State(kept, by=by), settings)
