"""What is compared: a unit of the engine, the questions for it, and our copies with their switches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tools.engine_conformance.question import Question
from tools.engine_conformance.reading import Agreement, as_hosts, as_is, as_tiers, same
from tools.engine_conformance.requests import Asking, placing, questions
from tools.engine_conformance.switches import Switch

#: How many questions about whole clusters make a whole run.
FEWER = 5_000
AS_THEY_ARE = same(as_is)


@dataclass(frozen=True)
class Copy:
    """One of our answers to what a unit of the engine answers."""

    answer: Callable[[Question], Any]
    switches: tuple[Switch, ...] = ()
    #: Switches of which ours is asked without the quirk, too: that can be compared in no other way.
    beforehand: tuple[Switch, ...] = ()


@dataclass(frozen=True)
class Unit:
    name: str
    kind: str
    asking: Asking
    copies: Mapping[str, Copy]
    agree: Agreement = AS_THEY_ARE
    #: How many questions make a whole run.
    number: int = 20_000
    #: What is the same in all requests.
    request: Mapping[str, Any] = field(default_factory=dict)

    def questions(self, seed: int, number: int) -> Iterator[Question]:
        return questions(self.kind, self.asking, seed, number, **self.request)


def filter_unit(name: str, engine_class: str, asking: Asking = placing, **copies: Copy) -> Unit:
    return Unit(name, "filter", asking, copies, same(as_hosts), request={"unit": engine_class})


def weight_unit(name: str, engine_class: str, asking: Asking = placing, **copies: Copy) -> Unit:
    return Unit(name, "weight", asking, copies, same(as_tiers), request={"unit": engine_class})
