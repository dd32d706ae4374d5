"""Which kinds are reported to whom, and in which words, is found out to be wrong when the service starts."""

from __future__ import annotations

from typing import Any

import pytest

from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.config import Config
from ovirt_service.errors import UserError


def settings(**notifications: Any) -> EnforcerSettings:
    config = Config({"enforcer": {"notifications": notifications}}, "the file")
    return config.section("enforcer", EnforcerSettings)


def test_a_sentence_is_ones_own() -> None:
    own = settings(sentences={"plan_waits": "$engine: look at $plan, it costs $$"}).notifications
    assert own.sentence(NoticeKind.PLAN_WAITS, {"engine": "e", "plan": "p1"}) == "e: look at p1, it costs $"
    assert own.sentence(NoticeKind.ENGINE_BACK, {"engine": "e"}) == "engine e answers again"


@pytest.mark.parametrize("kind", NoticeKind)
def test_every_sentence_can_be_said(kind: NoticeKind) -> None:
    facts = dict.fromkeys(ABOUT[kind].facts, "something")
    assert "$" not in settings().notifications.sentence(kind, {"engine": "e", **facts})


@pytest.mark.parametrize(
    ("notifications", "complaint"),
    [
        ({"sentences": {"plan_waits": "see $plane"}}, r"\$plane: it has \$cluster, \$engine, \$plan"),
        ({"sentences": {"plan_waits": "costs $ 5"}}, r"write \$\$ for a dollar sign"),
        ({"webhook": {"kinds": ["ha_alarm"]}}, "ha_alarm"),
        ({"webhook": {"url": "ftp://x"}}, "url"),
        ({"engine": {"kind": []}}, "kind"),
    ],
)
def test_what_is_wrong_is_named(notifications: Any, complaint: str) -> None:
    with pytest.raises(UserError, match=complaint):
        settings(**notifications)
