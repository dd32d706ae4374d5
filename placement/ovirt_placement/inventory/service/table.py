"""Records that are read again, one by one and all at once: no older answer takes the place of a newer one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

from ovirt_placement.inventory.span import NEVER, Span

_Record = TypeVar("_Record")


class Table(Generic[_Record]):
    """Records by id, each with the span of its reading; also of those that were gone then."""

    def __init__(self) -> None:
        self.records: dict[str, _Record] = {}
        self._read: dict[str, Span] = {}
        #: Of the last reading of all.
        self._all = NEVER

    def accepts(self, identity: str, span: Span) -> bool:
        """Whether a reading of this one is newer than what is known of it, for certain."""
        return span.began >= max(self._read.get(identity, NEVER).ended, self._all.ended)

    def put(self, identity: str, record: _Record | None, span: Span) -> bool:
        """Take one that was read by itself, or None if it is gone; whether it was accepted."""
        if not self.accepts(identity, span):
            return False
        self._read[identity] = span
        if record is None:
            self.records.pop(identity, None)
        else:
            self.records[identity] = record
        return True

    def put_all(self, records: Mapping[str, _Record], span: Span) -> tuple[str, ...]:
        """Take a reading of all; return those that were read by themselves meanwhile.

        One whose reading began later stays as it is. Of these, and of those whose readings began before and
        ended after this one began, only reading again can say what is newer.
        """
        meanwhile = tuple(identity for identity, read in self._read.items() if read.ended > span.began)
        younger = [identity for identity in meanwhile if self._read[identity].began > span.began]
        before = {identity: self.records.get(identity) for identity in younger}
        self.records = dict(records)
        for identity, record in before.items():
            if record is None:
                self.records.pop(identity, None)
            else:
                self.records[identity] = record
        self._read = {identity: self._read[identity] for identity in younger}
        self._all = span
        return meanwhile
