"""Leads what a plugin folder's interpreter writes to stderr into the log: line by line, and escaped there."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import IO

log = logging.getLogger(__name__)

#: A longer line is reported in pieces.
_LONGEST = 4096
#: Seconds that the last lines may take once the process has ended.
_LAST_SECONDS = 1.0


class Complaints:
    """Reads in a thread of its own, for as long as anybody has the other end."""

    def __init__(self, folder: str, stream: IO[bytes]) -> None:
        #: The last line that was written.
        self.last = ""
        self._folder = folder
        self._thread = threading.Thread(target=self._read, args=(stream,), name="complaints", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all is reported: the process has ended."""
        self._thread.join(_LAST_SECONDS)

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            for line in iter(partial(stream.readline, _LONGEST), b""):
                if text := line.decode(errors="replace").rstrip():
                    self.last = text
                    log.warning("%s: %s", self._folder, text)
