"""Reads files that others give us, up to a size: a device or a pipe may have no end."""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from ovirt_service import identity
from ovirt_service.errors import UserError

_MIB = 2**20


def read(path: Path, most_mib: int) -> bytes:
    """All that a file holds. Raises `OSError`, and `UserError` if it holds more than this many MiB."""
    with open(identity.opened(path), "rb") as file:
        return read_stream(file, str(path), most_mib)


def read_stream(file: BinaryIO, name: str, most_mib: int) -> bytes:
    """As `read`, of what is open already."""
    content = file.read(most_mib * _MIB + 1)
    if len(content) > most_mib * _MIB:
        raise UserError(f"{name}: holds more than {most_mib} MiB")
    return content
