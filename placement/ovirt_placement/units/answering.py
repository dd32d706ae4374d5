"""Answers either proxy: the old one reads what a unit prints, ours takes what it returns."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Generic, ParamSpec, TypeVar

from ovirt_placement import inventory

#: Our proxy says here that it takes the value that a method returns, and that it records why hosts drop.
_TAKES = "OVIRT_SCHEDULER_PROXY_TAKES"
_RECORDS = "OVIRT_SCHEDULER_PROXY_RECORDS"
#: And here who asks.
_ASKED = "OVIRT_SCHEDULER_PROXY_ASKED"

Item = TypeVar("Item")
Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


class Aged(list[Item], Generic[Item]):
    """A list for the proxy, which records with the decision how old the state was that it was decided on.

    And why hosts were dropped, as JSON, if it records that.
    """

    def __init__(self, items: Iterable[Item], state_age_seconds: float, reasons: bytes = b"") -> None:
        super().__init__(items)
        self.state_age_seconds = state_age_seconds
        self.reasons = reasons


class AgedMove(tuple[str, list[str]]):
    """The VM that a balance moves, and where it may go, with the age of the state that it was decided on."""

    state_age_seconds: float

    def __new__(cls, vm: str, hosts: list[str], state_age_seconds: float) -> AgedMove:
        move = super().__new__(cls, (vm, hosts))
        move.state_age_seconds = state_age_seconds
        return move


def stays() -> bool:
    """Whether this process answers more than one call, as a worker of ours does."""
    return os.environ.get(_TAKES) == "returned"


def records() -> bool:
    """Whether the caller records why hosts were dropped."""
    return os.environ.get(_RECORDS) == "reasons"


def by_hand() -> bool:
    """Whether a person asks, so that nothing follows from the answer."""
    return os.environ.get(_ASKED) == "by hand"


def answers(decide: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Print what a unit's method returns, too, since the old proxy reads that.

    Ours says that it takes the value, and is spared half a millisecond of printing with 500 hosts.
    """

    @wraps(decide)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        if stays():
            return decide(*args, **kwargs)
        try:
            result = decide(*args, **kwargs)
        finally:
            inventory.close()
        print(result)
        return result

    return answer
