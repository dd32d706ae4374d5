"""What the daemon keeps in mind of one cluster: when it is due, what failed, and what was said already."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from ovirt_enforcer.planning.plan import Plan
from ovirt_service.errors import UserError

_log = logging.getLogger(__name__)

#: After a failure: this, doubled with each further one up to the interval.
_FIRST_PAUSE_SECONDS = 1.0


@dataclass(slots=True)
class Attention:
    """All of this may be lost at any moment: after a restart it is found out anew."""

    name: str
    #: When to look again, by the daemon's clock.
    due: float = 0.0
    #: What is left of the plan that is being carried out.
    plan: Plan | None = None
    _failures: int = 0
    _complaint: str = ""
    _said: str = ""
    _announced: str = ""

    @property
    def failing(self) -> bool:
        """Whether the last look failed."""
        return self._failures > 0

    def announce(self, plan: str) -> None:
        """Log a plan, unless it is the one that was logged last."""
        if plan != self._announced:
            _log.info("%s", plan)
            self._announced = plan

    def say(self, text: str) -> None:
        """Log something, unless it was the last thing said."""
        if text != self._said:
            _log.info("%s", text)
            self._said = text

    def fail(self, error: Exception, now: float, longest_pause: float) -> None:
        """Log a failure, in full if it is not one that a person can mend, and put off the next look."""
        complaint = f"{type(error).__name__}: {error}"
        if complaint != self._complaint:
            if isinstance(error, UserError):
                _log.warning("%s: %s", self.name, error)
            else:
                _log.error("%s: %s", self.name, complaint, exc_info=error)
            self._complaint = complaint
        self.due = now + min(longest_pause, _FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 16))
        self._failures += 1

    def recover(self) -> None:
        if self._complaint:
            _log.info("%s: all is well again", self.name)
        self._failures = 0
        self._complaint = ""
