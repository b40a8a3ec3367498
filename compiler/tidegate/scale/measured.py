"""The figures that were measured, with what measured them."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured figure: its unit, what it is of, and the program that measures it."""

    value: float
    unit: str
    what: str
    command: str


@dataclass(frozen=True, slots=True)
class Measurements:
    """All figures of one day and one machine, by the names that `sizes` uses."""

    machine: str
    date: str
    figures: dict[str, Figure]

    def __getitem__(self, name: str) -> float:
        return self.figures[name].value


def _read() -> Measurements:
    document = json.loads(files(__package__).joinpath("measured.json").read_text())
    figures = {name: Figure(**figure) for name, figure in document["figures"].items()}
    return Measurements(document["machine"], document["date"], figures)


MEASURED: Final = _read()
