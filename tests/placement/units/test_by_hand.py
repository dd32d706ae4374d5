"""What a person asks a unit leaves nothing behind by which later decisions go."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from ovirt_placement import inventory
from ovirt_placement.units.decisions import accepted_hosts, ranked_hosts
from tests.builders import APART, group, host, snapshot, vm

STATE = snapshot(host("h1"), host("h2"), vm("a", "h1"), vm("new"), group("g", APART, "a new"))


class Known:
    """A decision that notes what is to be expected after it."""

    confirmed = snapshot = STATE
    awaited, age_seconds = False, 0.0

    def __init__(self) -> None:
        self.left: list[str] = []

    def unsure(self, vms: object) -> set[str]:
        return set()

    def expect_accepted(self, unit: str, *_: object) -> None:
        self.left.append(unit)

    expect_ranks = expect_accepted


ASKED: list[tuple[Callable[..., Any], str]] = [
    (accepted_hosts, "AffinityFilter"),
    (ranked_hosts, "SoftAffinityWeight"),
]


@pytest.mark.parametrize(("ask", "unit"), ASKED, ids=["filter", "weight"])
@pytest.mark.parametrize(
    ("asked", "hosts", "is_left"),
    [("", ["h1", "h2"], True), ("by hand", ["h1", "h2"], False)],
    ids=["engine", "person"],
)
def test_only_what_the_engine_asks_is_expected(
    ask: Callable[..., Any],
    unit: str,
    asked: str,
    hosts: list[str],
    is_left: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Known()
    monkeypatch.setattr(inventory, "decision", lambda *_, **__: known)
    monkeypatch.setitem(os.environ, "OVIRT_SCHEDULER_PROXY_ASKED", asked)
    assert ask(unit, hosts, "new", {})
    assert known.left == [unit] * is_left
    # Nor of a VM with its present host among the hosts, which the engine never asks about.
    assert ask(unit, hosts, "a", {})
    assert known.left == [unit] * is_left
