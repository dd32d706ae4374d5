"""What all acts share, apart from the page that they stand on."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from ovirt_placement_web.bounds import Bounds, WebMetrics
from ovirt_placement_web.views import endpoints
from ovirt_placement_web.views.endpoints import Act
from tests.builders import cluster


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The outcomes in the audit log, of acts that the engine permits."""

    async def permitted(asked: object, act: Act) -> None:
        pass

    found: list[str] = []
    monkeypatch.setattr(endpoints, "_check_permits", permitted)
    monkeypatch.setattr(endpoints, "note", lambda *words, **more: found.append(words[3]))
    return found


class Ann:
    """Who asks."""

    rights = SimpleNamespace(user_name="ann")


def asked() -> Any:
    limits = Bounds(WebMetrics(), streams=5, streams_each=5)
    site = SimpleNamespace(bounds=limits, root="")
    return SimpleNamespace(request=None, session=Ann(), site=site)


def test_an_act_that_fails_as_nobody_foresaw_is_a_line_of_the_audit_log(noted: list[str]) -> None:
    act = Act("pause", (cluster(),), lambda who: [].pop(), "/")
    with pytest.raises(IndexError):
        asyncio.run(endpoints._carry_out(asked(), act))
    assert noted == ["not known: IndexError('pop from empty list')"]


@pytest.mark.parametrize("plans", [False, True])
def test_acts_that_plan_take_no_place_of_those_that_do_not(noted: list[str], plans: bool) -> None:
    by = asked()
    free = []

    def carry_out(who: str) -> None:
        free.append((by.site.bounds.acts._free, by.site.bounds.plans._free))

    before = (by.site.bounds.acts._free, by.site.bounds.plans._free)
    asyncio.run(endpoints._carry_out(by, Act("begin", (cluster(),), carry_out, "/", plans=plans)))
    assert free == [(before[0] - (not plans), before[1] - plans)]
    assert noted == ["done"]
