"""The reader of state files: each input gives a state that is read again as it is, or what is wrong."""

from __future__ import annotations

import random
from functools import cache

from ovirt_placement.model import state_file
from ovirt_service.errors import UserError
from tests import builders as build

from .damage import damaged

_TOKENS = (
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b'"',
        b"null",
        b"true",
        b"-1",
        b"1e999",
        b"9" * 30,
        b"0.5",
        b"NaN",
        b"\\u0000",
    ),
    *(
        b'"v1"',
        b'"h"',
        b'"up"',
        b'"id":',
        b'"format": 2',
        b"\\ud800",
        b"\xff",
        b"\x00",
        b"[" * 2000,
        b'{"a":' * 2000,
    ),
)


@cache
def _state() -> bytes:
    return state_file.dumps(
        build.snapshot(
            build.host("h"),
            build.vm("v1", "h"),
            build.vm("v2"),
            build.group("g", vms="v1 v2"),
        )
    )


def attempt(chance: random.Random) -> None:
    try:
        snapshot = state_file.loads(damaged(_state(), _TOKENS, chance))
    except UserError:
        return
    assert state_file.loads(state_file.dumps(snapshot)) == snapshot
