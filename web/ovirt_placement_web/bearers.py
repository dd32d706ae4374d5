"""Programs that ask with a token of the engine: what the engine says of each, for a minute."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable

from ovirt_placement.engine.reading.rights import Rights

_TOKEN_SECONDS = 60.0
_MOST_TOKENS = 1000
_TURNS = 64


class Bearers:
    """Programs that ask with a token of the engine, which is asked about each token once a minute."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: Of requests with the same token one asks the engine, and the others wait for its answer.
        self._turns = tuple(threading.Lock() for _ in range(_TURNS))
        self._known: dict[bytes, tuple[Rights, float]] = {}

    def rights(self, token: str, ask: Callable[[], Rights]) -> Rights:
        """What the engine said of a token lately, else what it says when asked now."""
        key = hashlib.sha256(token.encode()).digest()
        with self._turns[key[0] % _TURNS]:
            rights = self._recent(key)
            if rights is None:
                rights = ask()
                self._keep(key, rights)
        return rights

    def _recent(self, key: bytes) -> Rights | None:
        with self._lock:
            rights, at = self._known.get(key, (None, 0.0))
        return rights if time.monotonic() - at < _TOKEN_SECONDS else None

    def _keep(self, key: bytes, rights: Rights) -> None:
        with self._lock:
            if len(self._known) >= _MOST_TOKENS:
                self._known.clear()
            self._known[key] = rights, time.monotonic()
