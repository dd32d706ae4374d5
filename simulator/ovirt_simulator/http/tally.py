"""How many requests each user has made to the API: what a client costs the engine."""

from __future__ import annotations

import threading
from collections import Counter


class Tally:
    """Requests that got past the log-in, by the user's full name, since the server started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Counter[str] = Counter()

    def add(self, user_name: str) -> None:
        with self._lock:
            self._made[user_name] += 1

    def made(self) -> dict[str, int]:
        with self._lock:
            return dict(self._made)
