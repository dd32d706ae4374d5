"""Spoils what the inventory service reads of others: questions at its socket, and the state that it saved."""

from __future__ import annotations

import contextlib
import random
import tempfile
from pathlib import Path

import msgspec

from ovirt_placement.inventory import publication
from ovirt_placement.inventory.protocol import Decide, Refresh, Wake, decoded, encoded, question_decoder
from ovirt_placement.inventory.publication import Moments, Publication, now
from tests.placement.model.full_state import full_state, loaded
from tools.fuzzing import damaged

_TOKENS = (b"\xc0", b"\x90", b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xa5value", b"\xcb\x7f\xf0", b"type")
_QUESTIONS = tuple(
    encoded(one)
    for one in (
        Refresh(1.0, vm="v"),
        Wake(3),
        Decide("filter", "AffinityFilter", ["h1", "h2"], "v", {"a": "b"}),
    )
)
_FOLDER = tempfile.TemporaryDirectory()


_SNAPSHOT = loaded(full_state())


def _saved() -> bytes:
    folder = Path(_FOLDER.name)
    publication.save_state(folder, Publication(7, Moments(now(), store_asked_at=now()), _SNAPSHOT))
    return (folder / publication.STATE_FILE).read_bytes()


_STATE = _saved()


def attempt(chance: random.Random) -> None:
    """What is spoilt is refused in words, or is none the worse."""
    with contextlib.suppress(msgspec.MsgspecError, ValueError):
        encoded(decoded(damaged(chance.choice(_QUESTIONS), _TOKENS, chance), question_decoder.decode))
    (Path(_FOLDER.name) / publication.STATE_FILE).write_bytes(damaged(_STATE, _TOKENS, chance))
    found = publication.restore_state(Path(_FOLDER.name), 0.0)
    assert found is None or found.snapshot == _SNAPSHOT
