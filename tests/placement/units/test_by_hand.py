"""What a person asks a unit leaves nothing behind by which later decisions go."""

from __future__ import annotations

import pytest

from ovirt_placement.config import InventorySettings
from ovirt_placement.inventory.decision import Base, Decisions
from ovirt_placement.inventory.published.protocol import Decide
from ovirt_placement.inventory.published.publication import now
from ovirt_placement.units.decisions import Decider
from tests.builders import APART, group, host, snapshot, vm

STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("new"), group("g", APART, "a new"))


class Source:
    """A state that is as fresh as can be."""

    def base(self, max_age: float, until: float, vm: str | None = None, *, patient: bool = True) -> Base:
        return Base(STATE, now())

    def as_of(self) -> float | None:
        return now()

    def last(self) -> Base | None:
        return Base(STATE, now())


@pytest.mark.parametrize(("method", "unit"), [("filter", "AffinityFilter"), ("score", "SoftAffinityWeight")])
@pytest.mark.parametrize("by_hand", [False, True], ids=["engine", "person"])
def test_only_what_the_engine_asks_is_expected(method: str, unit: str, by_hand: bool) -> None:
    decisions = Decisions(Source(), InventorySettings())
    decide = Decider(decisions, 1.0)
    decided = decide(Decide(method, unit, ["h1", "h2"], "new", by_hand=by_hand))
    assert (decided.failure, decided.hosts != []) == (None, True)
    assert decisions.accepted.has_news is not by_hand
    # Nor of a VM with its present host among the hosts, which the engine never asks about.
    others = Decisions(Source(), InventorySettings())
    Decider(others, 1.0)(Decide(method, unit, ["h1", "h2"], "a"))
    assert not others.accepted.has_news
