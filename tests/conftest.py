"""Modules beside the tests, such as `molecule_scenario`, can be imported by them."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
