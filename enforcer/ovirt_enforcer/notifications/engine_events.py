"""Reports by events of the engine, where administrators look and the engine's own notifications start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from ovirt_enforcer.notifications.courier import NotDelivered, NumberTaken, Rejected
from ovirt_enforcer.notifications.kinds import ABOUT, NoticeKind
from ovirt_enforcer.notifications.notice import Notice, draw_number
from ovirt_placement.config import EngineSettings
from ovirt_placement.engine.connection.client import EngineAway, EngineConnection, connect
from ovirt_placement.engine.writing.events import add_event
from ovirt_service.errors import UserError

#: By chance a number may be taken already; so often in a row, something else is wrong.
_MOST_NUMBERS: Final = 8


class EngineEvents:
    """The engine's log; for one thread."""

    name = "engine"

    def __init__(
        self, engine: EngineSettings, sentence: Callable[[NoticeKind, Mapping[str, str]], str]
    ) -> None:
        """It has a connection of its own: nobody waits for its requests. Raises `UserError`."""
        self._connection: EngineConnection = connect(engine)
        self._sentence = sentence
        #: Numbers that were sent without an answer: the engine may have them.
        self._uncertain: set[int] = set()

    def send(self, notice: Notice) -> None:
        """Add the event once. Raises `NotDelivered` or `Rejected`.

        A fresh number that the engine has already is somebody else's event, so another one is drawn. One that
        may have been sent before is our own. `NumberTaken` is raised where somebody else must draw.
        """
        for _ in range(_MOST_NUMBERS):
            if self._add(notice) or not notice.fresh or notice.number in self._uncertain:
                self._uncertain.clear()
                return
            if notice.written:
                raise NumberTaken(f"the engine has another event of number {notice.number}")
            notice = replace(notice, number=draw_number())
        raise Rejected("the engine has events of all numbers that were drawn")

    def _add(self, notice: Notice) -> bool:
        try:
            return add_event(
                self._connection,
                number=notice.number,
                severity=ABOUT[notice.kind].severity.value,
                description=self._sentence(notice.kind, notice.facts),
                cluster=notice.cluster,
                vm=notice.vm,
            )
        except EngineAway as away:
            self._uncertain.add(notice.number)
            raise NotDelivered(str(away)) from None
        except UserError as refused:
            raise Rejected(str(refused)) from None
