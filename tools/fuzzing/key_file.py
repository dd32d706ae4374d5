"""The reader of key files: each input gives keys that are read again as they are, or what is wrong."""

from __future__ import annotations

import json
import random
from functools import cache

from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.model.files import key_file
from ovirt_service.errors import UserError
from tests import builders as build

from . import damaged

_TOKENS = (
    *b"{ } [ ] , : \" ' | > &a *a !! null yes .inf .nan 0x1f 1:30 2026-01-01 !!python/object:a".split(b" "),
    *b"--- ... # \xff \x00 \xe2\x80\xa8".split(b" "),
    *(b": ", b"- ", b"\n", b"\n  ", b"<<: ", b"!!binary ", b"%YAML 3", b"\t", b"? "),
    *(b"9" * 5000, b"[" * 500, b"- " * 500),
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
