"""What is logged: said once, with pauses after failures; and the audit log of decisions and migrations."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ovirt_service.daemon import BackOff
from ovirt_service.errors import UserError
from ovirt_service.log import AuditLog
from ovirt_service.repetition import Said

_log = logging.getLogger(__name__)

#: After a failure: this, doubled with each further one up to the interval.
_FIRST_PAUSE_SECONDS = 1.0
#: A failure that lasts is reported again after this, doubled each time up to the longest.
_FIRST_QUIET_SECONDS = 60.0
_LONGEST_QUIET_SECONDS = 3600.0
_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class RetryState:
    """All of this may be lost at any moment: after a restart it is found out again."""

    name: str
    #: When to look again, by the owner's clock.
    due: float = 0.0
    _failures: int = 0
    #: When a failure that lasts is reported again, and for how long it is not reported after that.
    _again: float = 0.0
    _quiet: float = 0.0
    _said: Said = field(default_factory=Said)

    @property
    def failing(self) -> bool:
        """Whether the last look failed."""
        return self._failures > 0

    def announce(self, plan: Sequence[str], gist: str | None = None) -> None:
        """Log a plan line by line, unless it was logged last, or has the same gist as that which was."""
        if self._said.is_news("plan", gist or "\n".join(plan)):
            for line in plan:
                _log.info("%s", line)

    def say(self, text: str) -> None:
        """Log something, unless it was the last thing said."""
        if self._said.is_news("state", text):
            _log.info("%s", text)

    def warn_once(self, text: str) -> None:
        """Log what should not be; the same never again."""
        if self._said.is_news(text):
            _log.warning("%s: %s", self.name, text)

    def fail(self, error: Exception, now: float, longest_pause: float) -> None:
        """Log a failure, in full if it is not one that a person can repair, and put off the next look.

        One that lasts is reported again at growing intervals.
        """
        complaint = f"{type(error).__name__}: {error}"
        # How old something is by now makes no other failure of it.
        news = self._said.is_news("failure", _NUMBER.sub("", complaint))
        if news:
            self._quiet = _FIRST_QUIET_SECONDS
        if news or now >= self._again:
            self._again, self._quiet = now + self._quiet, min(2 * self._quiet, _LONGEST_QUIET_SECONDS)
            if isinstance(error, UserError):
                _log.warning("%s: %s", self.name, error)
            else:
                _log.error("%s: %s", self.name, complaint, exc_info=error)
        self.put_off(now, longest_pause)

    def attempt(self, work: Callable[[], object], clock: Callable[[], float], longest_pause: float) -> bool:
        """Do something unless it is put off; whether it was done. What fails is logged and put off."""
        if self.due > clock():
            return False
        try:
            work()
        except Exception as error:  # the enforcer has other work, too
            self.fail(error, clock(), longest_pause)
            return False
        self.recover()
        return True

    def put_off(self, now: float, longest_pause: float) -> None:
        """Put off the next look, each time longer, for a failure that is reported elsewhere."""
        self._failures += 1
        self.due = now + BackOff(_FIRST_PAUSE_SECONDS, longest_pause).pause_after(self._failures)

    def recover(self) -> None:
        """The last look did not fail; log it if the one before did."""
        if self._said.is_over("failure"):
            _log.info("%s: works again", self.name)
        self._failures = 0

    def forget_failure(self) -> None:
        """Whether it would still fail is not known here any more, and is another's to say."""
        self._said.is_over("failure")
        self._failures = 0


#: Its lines go to the file that the configuration names, and never into the log of the service.
AUDIT_LOG: Final = AuditLog("ovirt_enforcer.audit", "[enforcer] audit_log", in_log=False)


def audit(kind: str, sentence: str, **facts: Any) -> None:
    """Write a line: the kind of event, its facts (ids and names), and a sentence for people."""
    AUDIT_LOG.write({"kind": kind, **facts, "sentence": sentence})
