"""The [enforcer.notifications] section: who is notified of what, and in which words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ovirt_enforcer.notifications.kinds import ABOUT, COMMON_FACTS, NoticeKind

_HA: Final = (NoticeKind.HA_ALERT, NoticeKind.HA_ALL_CLEAR, NoticeKind.HA_UNKNOWN)


class EngineEventSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: What becomes an event of the engine.
    kinds: tuple[NoticeKind, ...] = (
        *_HA,
        NoticeKind.BREAKER_OPEN,
        NoticeKind.PLAN_WAITS,
        NoticeKind.MAINTENANCE_FAILED,
        NoticeKind.DRAIN_BLOCKED,
        NoticeKind.UNITS_DISABLED,
        NoticeKind.UNITS_ENABLED,
    )
    #: How many of the less urgent kinds are sent an hour; more are reported together.
    most_per_hour: Annotated[int, Meta(ge=1)] = 60


class WebhookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    #: As http://HOST:9093/api/v2/alerts of Alertmanager; empty: none.
    url: Annotated[str, Meta(pattern=r"^(https?://\S+)?\Z")] = ""
    #: What is sent there.
    kinds: tuple[NoticeKind, ...] = tuple(NoticeKind)
    #: How many of the less urgent kinds are sent an hour; more are reported together.
    most_per_hour: Annotated[int, Meta(ge=1)] = 60
    #: How long one request may take.
    timeout_seconds: Annotated[float, Meta(gt=0)] = 10.0
    #: The CA of the receiver's certificate; else those of the system.
    ca_file: Path | None = None
    #: A file with a bearer token.
    token_file: Path | None = None


class NotificationSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    engine: EngineEventSettings = EngineEventSettings()
    webhook: WebhookSettings = WebhookSettings()
    #: Sentences in place of our own, with $names for facts.
    sentences: Mapping[NoticeKind, str] = {}

    def __post_init__(self) -> None:
        """Find out now what could not be reported later."""
        for kind, sentence in self.sentences.items():
            template = Template(sentence)
            if not template.is_valid():
                raise ValueError(f"sentence of {kind}: write $$ for a dollar sign")
            known = ABOUT[kind].facts | COMMON_FACTS
            for name in template.get_identifiers():
                if name not in known:
                    raise ValueError(f"sentence of {kind}: no ${name}: it has ${', $'.join(sorted(known))}")

    def sentence(self, kind: NoticeKind, facts: Mapping[str, str]) -> str:
        """The sentence with these facts."""
        return Template(self.sentences.get(kind, ABOUT[kind].sentence)).substitute(facts)
