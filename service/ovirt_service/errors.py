"""What goes wrong because of what a person wrote or set up, reported in one line that says what to do."""

from __future__ import annotations


class UserError(Exception):
    """A mistake that its reader can repair: the text says what is wrong, where, and what would be right.

    Commands print it as one line, without a traceback, and exit with `EXIT_STATUS`.
    """


class OutcomeUnknown(UserError):
    """What was asked for may have been done, or may not: its answer was lost."""


#: The exit status of every command after a `UserError`.
EXIT_STATUS = 2
