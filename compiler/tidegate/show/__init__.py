"""What people read: plans, verdicts and explanations as text. JSON is printed by the commands themselves."""

from tidegate.show.lines import names
from tidegate.show.verdicts import files, verdict

__all__ = ["files", "names", "verdict"]
