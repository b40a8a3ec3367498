"""Modules beside the tests, such as `reference_selection`, can be imported by them."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.append(str(Path(__file__).parent))

# An example that a busy machine interrupts is no failure; pytest-timeout bounds a test as a whole.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
