"""What goes wrong because of what a person wrote or set up, reported in one line that says what to do."""

from collections.abc import Iterator
from contextlib import contextmanager


class UserError(Exception):
    """A mistake that its reader can repair: the text says what is wrong, where, and what would be right.

    Commands print it as one line, without a traceback, and exit with `EXIT_STATUS`.
    """


class OutcomeUnknown(UserError):
    """What was asked for may have been done, or may not: its answer was lost."""


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Say of a mistake where it is: what is raised within says so first."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{place}{error}") from None


#: The exit status of every command after a `UserError`.
EXIT_STATUS = 2
