"""What the SDK waits for the engine with: sockets with any number, and errors that keep what curl says."""

from __future__ import annotations

import time
from typing import Any, Final

import pycurl

#: `select` takes no descriptor from 1,024 on; curl names none of these, and pycurl does not wait at all.
_PAUSE_SECONDS: Final = 0.01


class Sockets:
    """As the `pycurl.CurlMulti` that it stands for, with another `select` and `info_read`."""

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

    def info_read(self) -> Any:
        """What has ended; raises `pycurl.error` for a request that failed, which the SDK would print."""
        found = self._multi.info_read()
        for _curl, number, text in found[2]:
            raise pycurl.error(number, text)
        return found
