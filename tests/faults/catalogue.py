"""All faults, by name: each strikes a stage, at moments that its seed draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tests.faults import answers, befalling
from tests.faults.stage import Stage

Fault = Callable[[Stage, Random], None]

FAULTS: Mapping[str, Fault] = {**answers.FAULTS, **befalling.FAULTS}
