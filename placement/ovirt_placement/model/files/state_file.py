"""Reads and writes the cluster state file: a whole engine's placement state as one JSON object."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import named_file
from ovirt_placement.model.files.state_check import check
from ovirt_service.decoding import complaint
from ovirt_service.errors import UserError
from ovirt_service.text import unbroken

FORMAT = 1
#: Ten times as much as ten thousand VMs with all that hangs on them.
_MOST_MIB = 256

#: How a line break may stand within a text of JSON.
_BREAKS = re.compile(
    rb"\\[nrf]|\\u00(?:0[a-d]|1[c-e]|85)|\\u202[89]|\xc2\x85|\xe2\x80[\xa8\xa9]", re.IGNORECASE
)


class _Head(msgspec.Struct):
    """What must be read before anything else: a newer format may have keys that are unknown here."""

    format: int = FORMAT


def load(path: Path) -> Snapshot:
    """Read a state file.

    Raises `UserError` if it cannot be read, is no state file, or holds what cannot be; it names the place.
    """
    return named_file.load(path, "state file", _MOST_MIB, loads)


def loads(content: bytes) -> Snapshot:
    """Decode a state file's content; raises `UserError` as `load` does, without the name of the file."""
    if not content.lstrip().startswith(b"{"):
        raise UserError("is no state file (ovirt-placement snapshot makes one)")
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != FORMAT:
            raise UserError(f"format: this release reads format {FORMAT}, not {head.format}")
        snapshot = _decoded(content)
    except msgspec.ValidationError as error:
        raise UserError(complaint(error, Snapshot)) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UserError(_malformed(str(error), content)) from None
    except RecursionError:
        raise UserError("not a state file: nested too deeply") from None
    check(snapshot)
    return snapshot


def dumps(snapshot: Snapshot) -> bytes:
    """Encode a snapshot as a state file, two spaces a level, ready to be read by people.

    What may be left out and has its default value is left out.
    """
    state = {"format": FORMAT, "pending": (), **msgspec.to_builtins(snapshot)}
    return msgspec.json.format(msgspec.json.encode(state), indent=2) + b"\n"


def _decoded(content: bytes) -> Snapshot:
    """Decode it; the texts in it are one line each, and so cannot pass for lines of an answer."""
    if not _BREAKS.search(content):
        return msgspec.json.decode(content, type=Snapshot)
    return msgspec.convert(_unbroken(msgspec.json.decode(content)), Snapshot, str_keys=True)


def _unbroken(found: Any) -> Any:
    if isinstance(found, str):
        return unbroken(found)
    if isinstance(found, list):
        return [_unbroken(one) for one in found]
    if isinstance(found, dict):
        return {unbroken(key): _unbroken(value) for key, value in found.items()}
    return found


def _malformed(message: str, content: bytes) -> str:
    """Return the line and column where the JSON is invalid: editors know these, not a count of bytes."""
    at = re.search(r"\(byte (\d+)\)", message)
    if at is None:
        return f"not a JSON object: {message[:1].lower()}{message[1:]}"
    before = content[: int(at[1])]
    line = before.count(b"\n") + 1
    column = len(before) - (before.rfind(b"\n") + 1) + 1
    reason = message[: at.start()].removeprefix("JSON is malformed: ").strip()
    return f"line {line}, column {column}: not JSON: {reason}"
