"""Lets the SDK wait for sockets whose numbers are too high for the system call that it waits with."""

from __future__ import annotations

import time
from typing import Any, Final

#: `select` takes no descriptor from 1,024 on; curl names none of these, and pycurl does not wait at all.
_PAUSE_SECONDS: Final = 0.01


class HighSockets:
    """As the `pycurl.CurlMulti` that it stands for, but `select` never returns at once without success."""

    def __init__(self, multi: Any) -> None:
        self._multi = multi

    def __getattr__(self, name: str) -> Any:
        return getattr(self._multi, name)

    def select(self, seconds: float) -> int:
        """Wait until a socket is ready; for a moment only where there is none that can be waited for."""
        if any(self._multi.fdset()):
            return int(self._multi.select(seconds))
        time.sleep(min(_PAUSE_SECONDS, seconds))
        return 0
