"""The reader of key files: each input gives keys that are read again as they are, or what is wrong."""

from __future__ import annotations

import json
import random
from functools import cache

from ovirt_placement.model import PlacementKey, Snapshot, key_file
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
        b": ",
        b"- ",
        b"\n",
        b"\n  ",
        b'"',
        b"'",
        b"|",
        b">",
        b"&a",
        b"*a",
        b"<<: ",
        b"!!",
    ),
    *(
        b"null",
        b"yes",
        b".inf",
        b".nan",
        b"0x1f",
        b"1:30",
        b"2026-01-01",
        b"!!binary ",
        b"!!python/object:a",
        b"%YAML 3",
    ),
    *(
        b"---",
        b"...",
        b"#",
        b"\t",
        b"\xff",
        b"\x00",
        b"\xe2\x80\xa8",
        b"9" * 5000,
        b"? ",
        b"[" * 500,
        b"- " * 500,
    ),
)


@cache
def _world() -> Snapshot:
    return build.snapshot(build.host("h1"), build.host("h2"), build.vm("v1", "h1"))


_KEYS = (
    PlacementKey("node", "h1", "system", "Speed", 1.5),
    PlacementKey("node", "h2", "system", "Speed", 2.0),
    PlacementKey("server", "v1", "customer", "Speed", "fast", 0.5),
)


@cache
def _files() -> list[bytes]:
    """Each key alone and all together, as YAML and as JSON: short files are read in less time."""
    chosen = [*((key,) for key in _KEYS), _KEYS]
    described = [json.dumps(key_file.described(keys, _world())) for keys in chosen]
    return [text.encode() for text in (*(key_file.dumps(keys, _world()) for keys in chosen), *described)]


def attempt(chance: random.Random) -> None:
    try:
        keys = key_file.loads(damaged(chance.choice(_files()), _TOKENS, chance), _world())
    except UserError:
        return
    again = key_file.loads(key_file.dumps(keys, _world()).encode(), _world())
    assert sorted(map(repr, again)) == sorted(map(repr, keys))
