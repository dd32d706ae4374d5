"""What the proxy knows of policy units: where each comes from, what it is, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType

from .worker.text import one_line


class UnitKind(Enum):
    """What a unit can do; the value is the name that worker processes know it by."""

    FILTER = "filter"
    SCORE = "score"
    BALANCE = "balance"


@dataclass(frozen=True)
class Unit:
    """One policy unit of one kind, as the engine sees it."""

    name: str
    kind: UnitKind
    folder: Path
    module: str
    description: str
    #: `key=regex;key2=regex2`: the parameters that the engine offers for this unit.
    properties: str

    @property
    def file(self) -> Path:
        return self.folder / f"{self.module}.py"


@dataclass(frozen=True)
class Problem:
    """Something that an administrator should repair in a plugin file."""

    file: Path
    sentence: str
    #: The unit that it is about, where it is about one.
    unit: str = ""

    def __str__(self) -> str:
        subject = f"{one_line(self.unit)}: " if self.unit else ""
        return f"{self.file}: {subject}{self.sentence}"


def _by_name(units: tuple[Unit, ...], kind: UnitKind) -> Mapping[str, Unit]:
    return MappingProxyType({unit.name: unit for unit in units if unit.kind is kind})


class Registry:
    """All units that can be asked now. Immutable: a reload makes a new one."""

    def __init__(self, units: tuple[Unit, ...], problems: tuple[Problem, ...]) -> None:
        self.units = units
        self.problems = problems
        self._of_kind = {kind: _by_name(units, kind) for kind in UnitKind}

    def of_kind(self, kind: UnitKind) -> Mapping[str, Unit]:
        """The units of a kind by name."""
        return self._of_kind[kind]
