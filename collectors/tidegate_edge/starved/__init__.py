"""BBR that is short of CPU: its signs in sockets and in the host's health, and when new connections do without it.

observer = Observer()
state = State()
state = step(state, observer.observe())     # every few seconds
stated = without_bbr(steering, "cubic") if state.fallen_back else steering

What the signs are: dsl/SPEC.md, section 5, `bbr_starved`; the figures behind them: docs/cpu-limited-bbr.md.
"""

from .fallback import PATIENCE, Look, State, step
from .observe import Observer
from .pressure import Pressed, pressed
from .signature import Signs, signs
from .without import is_bbr, without_bbr

__all__ = [
    "PATIENCE",
    "Look",
    "Observer",
    "Pressed",
    "Signs",
    "State",
    "is_bbr",
    "pressed",
    "signs",
    "step",
    "without_bbr",
]
