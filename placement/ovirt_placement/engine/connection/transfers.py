"""Keeps what an answer brings within limits, and ends one that nobody waits for any more.

An answer of a few hundred kilobytes can unpack to gigabytes: bytes are counted as they arrive, and again
unpacked.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pycurl

_MIB: Final = 2**20
_MOST_OF_HEADERS: Final = _MIB


class Limits(NamedTuple):
    """How many bytes an answer may have: on its way, and unpacked."""

    received: int
    unpacked: int


#: Ten thousand VMs with all that hangs on them are 4 MiB on their way, and 90 MiB unpacked.
OF_ANSWERS: Final = Limits(128 * _MIB, 512 * _MIB)


class Transfer:
    """One answer: where its bytes go, and why it was cut off, if it was."""

    def __init__(self, ended: Callable[[], bool], limits: Limits) -> None:
        """`ended`: whether nobody waits for answers any more; asked about once a second."""
        self._ended = ended
        self._limits = limits
        #: Why we broke it off; empty if we did not.
        self.interrupted = ""

    def take_over(self, curl: Any, body: io.BytesIO, headers: io.BytesIO) -> None:
        """Have curl ask here before it goes on."""
        curl.setopt(pycurl.WRITEFUNCTION, self._within(body, self._limits.unpacked, "unpacked"))
        curl.setopt(pycurl.HEADERFUNCTION, self._within(headers, _MOST_OF_HEADERS, "of headers"))
        curl.setopt(pycurl.NOPROGRESS, 0)
        curl.setopt(pycurl.XFERINFOFUNCTION, self._go_on)

    def _within(self, buffer: io.BytesIO, most: int, kind: str) -> Callable[[bytes], int]:
        def write(content: bytes) -> int:
            if buffer.tell() + len(content) > most:
                self.interrupted = f"its answer is larger than {_size(most)} {kind}"
                return 0  # fewer bytes than were given: curl breaks off
            return buffer.write(content)

        return write

    def _go_on(self, _expected: int, received: int, *_sent: int) -> int:
        """Curl breaks off after anything but 0."""
        if received > self._limits.received:
            self.interrupted = f"its answer is larger than {_size(self._limits.received)}"
        elif self._ended():
            self.interrupted = "nobody waits for its answer any more"
        return 1 if self.interrupted else 0


def _size(count: int) -> str:
    return f"{count // _MIB} MiB" if count >= _MIB else f"{count} bytes"
