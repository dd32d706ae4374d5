"""Why units failed, by what the proxy logs of it: each failure is of a kind that was to be expected."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

#: Kinds of failures, and what the proxy says of them.
_KINDS = {
    "engine away": re.compile(r"raised NoSnapshot: "),
    "deadline": re.compile(r"(did not answer|got no worker) in time"),
    "cut off": re.compile(r"is cut off for up to"),
    "worker killed": re.compile(r"lost its worker process several times"),
}
#: Workers are killed at any time. All others happen while there is no engine, and as long after it is back
#: as the inventory may take to notice that, and a call to end.
_ANY_TIME = {"worker killed"}
_RECOVERY_SECONDS = 20.0

#: The proxy logs a failure so long after its answer at the latest.
_LOGGED_SECONDS = 30.0

_LINE = re.compile(r"(?P<at>\S+ \S+) WARNING \[(?P<call>\S+)\] (?P<reported>.*)")


@dataclass
class Failures:
    """Those of one window."""

    #: Calls in which a unit failed, as the log shows.
    calls: int = 0
    #: How many units failed, by kind.
    kinds: Counter[str] = field(default_factory=Counter)
    #: Lines that report a failure of no kind, or of one that was not to be expected then.
    unexplained: list[str] = field(default_factory=list)


@dataclass
class Outage:
    """A time without an engine, in seconds since the epoch."""

    began: float
    ended: float = float("inf")

    def explains(self, at: float) -> bool:
        return self.began <= at <= self.ended + _RECOVERY_SECONDS


class FailureLog:
    """Reads on in the proxy's log."""

    def __init__(self, file: Path, outages: Sequence[Outage]) -> None:
        self._file = file
        self._outages = outages
        self._read = 0
        #: Lines that were read and not taken, and the last call of those that were.
        self._lines: list[str] = []
        self._last = ""

    def wait_for(self, calls: int) -> None:
        """Wait until it reports this many calls more, for what is logged comes a moment later."""
        until = time.monotonic() + _LOGGED_SECONDS
        while len(self._calls()) < calls and time.monotonic() < until:
            time.sleep(0.05)

    def take(self) -> Failures:
        """The failures since the last look."""
        calls = self._calls()
        found = Failures(len(calls))
        for line in self._lines:
            kind = self._kind(line)
            if kind is None:
                found.unexplained.append(line)
            else:
                found.kinds[kind] += 1
        self._lines, self._last = [], calls[-1] if calls else self._last
        return found

    def _calls(self) -> list[str]:
        """Read on; the calls that are reported, but for the last of those before."""
        with self._file.open("rb") as opened:
            opened.seek(self._read)
            content = opened.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        self._lines += whole.decode().splitlines()
        reported = [match["call"] for match in map(_LINE.fullmatch, self._lines) if match]
        return [call for call in dict.fromkeys(reported) if call != self._last]

    def _kind(self, line: str) -> str | None:
        """The kind of the failure that a line reports, where it is explained."""
        match = _LINE.fullmatch(line)
        if match is None:
            return None
        kind = next((name for name, reported in _KINDS.items() if reported.search(match["reported"])), None)
        at = datetime.strptime(match["at"], "%Y-%m-%d %H:%M:%S,%f").timestamp()
        if kind not in _ANY_TIME and not any(outage.explains(at) for outage in self._outages):
            return None
        return kind
