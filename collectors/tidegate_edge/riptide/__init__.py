"""Riptide: initial windows toward other POPs, learned from those that open connections reached.

observer = Observer(settings.toward)
state = State()
state = learn(state, observer.observe(), settings, now_us)    # every `settings.every_us`
claims(state, settings)                                       # segments by destination, for the backend
"""

from .document import as_document, from_document
from .idle import restarts_after_idle
from .observe import Observation, Observer
from .state import State
from .windows import claims, learn

__all__ = [
    "Observation",
    "Observer",
    "State",
    "as_document",
    "claims",
    "from_document",
    "learn",
    "restarts_after_idle",
]
