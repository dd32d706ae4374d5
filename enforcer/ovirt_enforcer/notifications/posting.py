"""Posts documents to a receiver within bounds: of what is taken in of its answer, and of the whole time."""

from __future__ import annotations

import io
import ssl
from collections.abc import Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

import pycurl

from ovirt_placement.engine.connection.transfers import Limits, Transfer

#: Of an answer its status counts, and a sentence for the log.
_LIMITS: Final = Limits(2**16, 2**16)
_MILLISECONDS: Final = 1000


class Answer(NamedTuple):
    status: int
    #: As much of its text as there was time and room for.
    text: str


class NoAnswer(Exception):
    """Nothing came that shows whether the receiver has taken it; the text says why."""


class Poster:
    """One receiver; for one thread."""

    def __init__(
        self, url: str, *, headers: Sequence[str], ca_file: Path | None, timeout_seconds: float
    ) -> None:
        """Without a CA those count that the system trusts. The timeout is for all that a request takes."""
        self._curl = curl = pycurl.Curl()
        curl.setopt(pycurl.URL, url)
        curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        # Without the last, curl asks for leave to send a large document.
        curl.setopt(pycurl.HTTPHEADER, ["Content-Type: application/json", *headers, "Expect:"])
        if (trusted := ca_file or ssl.get_default_verify_paths().cafile) is not None:
            curl.setopt(pycurl.CAINFO, str(trusted))
        curl.setopt(pycurl.TIMEOUT_MS, max(1, round(timeout_seconds * _MILLISECONDS)))
        curl.setopt(pycurl.NOSIGNAL, 1)

    def post(self, document: bytes) -> Answer:
        """Send a document. Raises `NoAnswer`."""
        body, transfer = io.BytesIO(), Transfer(lambda: False, _LIMITS)
        transfer.take_over(self._curl, body, io.BytesIO())
        self._curl.setopt(pycurl.POSTFIELDS, document)
        try:
            self._curl.perform()
        except pycurl.error as error:
            # A receiver that has said what it does with it need not have said all.
            if self._status < HTTPStatus.OK:
                raise NoAnswer(transfer.interrupted or _text(error)) from None
        return Answer(self._status, body.getvalue().decode(errors="replace"))

    @property
    def _status(self) -> int:
        """That of the last answer, 0 if there was none; those below 200 announce another one."""
        return int(self._curl.getinfo(pycurl.RESPONSE_CODE))


def _text(error: Any) -> str:
    return str(error.args[-1])
