"""All faults, by name: each strikes a stage, at moments that its seed draws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from tools.faults import answers, befalling
from tools.faults.stage import Stage

Fault = Callable[[Stage, Random], None]

FAULTS: Mapping[str, Fault] = {**answers.FAULTS, **befalling.FAULTS}
