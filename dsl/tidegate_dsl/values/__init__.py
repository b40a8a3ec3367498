"""Quantities, prefixes and times of the tree as numbers; what is none is reported."""

from .prefixes import Network, check_prefix, order
from .quantities import count_within, reduce, reduce_within
from .times import check_time

__all__ = [
    "Network",
    "check_prefix",
    "check_time",
    "count_within",
    "order",
    "reduce",
    "reduce_within",
]
