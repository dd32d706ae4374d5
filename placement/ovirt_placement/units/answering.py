"""Answers either proxy: the old one reads what a unit prints, ours takes what it returns."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

#: Our proxy says here that it takes the value that a method returns.
_TAKES = "OVIRT_SCHEDULER_PROXY_TAKES"

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


def stays() -> bool:
    """Whether this process answers more than one call, as a worker of ours does."""
    return os.environ.get(_TAKES) == "returned"


def answers(decide: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """Print what a unit's method returns, too, since the old proxy reads that.

    Ours says that it takes the value, and is spared half a millisecond of printing with 500 hosts.
    """

    @wraps(decide)
    def answer(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        result = decide(*args, **kwargs)
        if not stays():
            print(result)
        return result

    return answer
