"""What a policy is checked against, from YAML: the fleet of an inventory, and the limits."""

from .inventory import inventory_directory, inventory_file, read_fleet
from .limits import Limit, Limits, read_limits

__all__ = [
    "Limit",
    "Limits",
    "inventory_directory",
    "inventory_file",
    "read_fleet",
    "read_limits",
]
