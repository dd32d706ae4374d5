"""Who the searches find that placement rules name: the engine alone can say, and is asked again and again."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ovirt_placement.model import PlacementRule
from ovirt_placement.model.placement_rules import MemberSearch, SearchOf

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection

#: What is searched, and by which text.
Wanted = frozenset[tuple[SearchOf, str]]
NO_SEARCHES: Wanted = frozenset()


def searches_of(rules: Iterable[PlacementRule]) -> Wanted:
    """The searches that rules name."""
    return frozenset(search for rule in rules for search in rule.searches)


def read_searches(connection: EngineConnection, wanted: Wanted) -> tuple[MemberSearch, ...]:
    """Have the engine answer them; raises what `EngineConnection.get` raises, but for its refusals."""
    # The SDK takes long to load and is not needed where somebody publishes.
    from ovirt_placement.engine.reading.searches import search_members

    return tuple(search_members(connection, of, text) for of, text in sorted(wanted))


class KnownSearches:
    """The last answer to each search; whom it has found counts on while the engine refuses it."""

    def __init__(self) -> None:
        self.wanted = NO_SEARCHES
        #: The same object as long as nothing changes.
        self.found: tuple[MemberSearch, ...] = ()
        #: When each was last answered, in seconds since the epoch.
        self._answered: dict[tuple[SearchOf, str], float] = {}

    def want(self, wanted: Wanted) -> None:
        """Forget what is not wanted any more."""
        if wanted != self.wanted:
            self.wanted = wanted
            self._keep(self.found)

    def put(self, answers: Iterable[MemberSearch]) -> None:
        """Take the answers of one reading."""
        known = {(one.of, one.text): one for one in self.found}
        for one in answers:
            if one.found is not None:
                self._answered[one.of, one.text] = time.time()
            before = known.get((one.of, one.text))
            known[one.of, one.text] = one if before is None else self._after(before, one)
        self._keep(known.values())

    def _after(self, before: MemberSearch, now: MemberSearch) -> MemberSearch:
        if now.found is not None or before.found is None:
            return now
        moment = time.gmtime(self._answered[now.of, now.text])
        since = time.strftime("%Y-%m-%d %H:%M:%S UTC", moment)
        return replace(now, found=before.found, problem=f"{now.problem}; whom it found at {since} counts")

    def _keep(self, answers: Iterable[MemberSearch]) -> None:
        kept = tuple(one for one in answers if (one.of, one.text) in self.wanted)
        if kept != self.found:
            self.found = kept
