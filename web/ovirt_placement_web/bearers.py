"""Tokens of programs, and of the portal: what the engine says of each, for a minute."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Hashable
from typing import Final, TypeVar

from ovirt_placement.engine.connection.sso import Refused, UserTokens, sendable
from ovirt_placement.engine.reading.rights import Rights, read_rights
from ovirt_placement_web.bounds import Bounds

_TOKEN_SECONDS: Final = 60.0
_MOST_TOKENS: Final = 1000

_Said = TypeVar("_Said")


class Bearers:
    """The engine is asked about each token once a minute, however many requests come with it.

    Whose token the engine has taken before does not queue with tokens that nobody knows. For the loop's
    thread alone.
    """

    def __init__(self, tokens: UserTokens, bounds: Bounds) -> None:
        self._tokens = tokens
        self._bounds = bounds
        #: What the engine said of those that it took, and when; and when it refused others.
        self._known: dict[bytes, tuple[Rights, float]] = {}
        self._refused: dict[bytes, float] = {}
        self._asked: dict[bytes, asyncio.Task[Rights]] = {}

    async def rights(self, token: str, asker: Hashable, *, seconds: float = _TOKEN_SECONDS) -> Rights:
        """What the engine said of a token in the last `seconds`, else what it says when asked now.

        Raises `Refused`, `EngineAway`, and `Refusal` while too many ask.
        """
        key, now = hashlib.sha256(token.encode()).digest(), time.monotonic()
        if not sendable(token) or now - self._refused.get(key, -_TOKEN_SECONDS) < _TOKEN_SECONDS:
            raise Refused("the engine does not take this token")
        rights, at = self._known.get(key, (None, 0.0))
        if rights is not None and now - at < seconds:
            return rights
        bounds = self._bounds
        known = key in self._known
        async with bounds.holders.place(key) if known else bounds.strangers.place(asker or key):
            asked = self._asked.get(key)
            if asked is None:
                asked = self._asked[key] = asyncio.ensure_future(self._ask(key, token, asker))
                asked.add_done_callback(lambda done: self._ended(key, done))
            return await asyncio.shield(asked)

    async def _ask(self, key: bytes, token: str, asker: Hashable) -> Rights:
        bounds = self._bounds
        kind, asker = (bounds.rights, key) if key in self._known else (bounds.tokens, asker or key)
        try:
            rights = await kind.run(asker, read_rights, self._tokens, token)
        except Refused:
            self._known.pop(key, None)
            _keep(self._refused, key, time.monotonic())
            raise
        _keep(self._known, key, (rights, time.monotonic()))
        return rights

    def _ended(self, key: bytes, done: asyncio.Task[Rights]) -> None:
        del self._asked[key]
        if not done.cancelled():
            done.exception()  # it is nobody's mistake if nobody waits for it any more


def _keep(kept: dict[bytes, _Said], key: bytes, said: _Said) -> None:
    """Of too many, those that were asked longest ago are forgotten."""
    kept.pop(key, None)
    kept[key] = said
    if len(kept) > _MOST_TOKENS:
        del kept[next(iter(kept))]
