"""The reader of state files: each input gives a state that is read again as it is, or what is wrong."""

from __future__ import annotations

import random
from functools import cache

from ovirt_placement.model.files import state_file
from ovirt_service.errors import UserError
from tests import builders as build

from . import damaged

_TOKENS = (
    *b'{ } [ ] , : " null true -1 1e999 0.5 NaN \\u0000 "v1" "h" "up" "id": \\ud800 \xff \x00'.split(b" "),
    *(b'"format": 2', b"9" * 30, b"[" * 2000, b'{"a":' * 2000),
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
