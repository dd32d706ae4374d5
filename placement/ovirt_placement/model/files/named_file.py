"""Reads a file that a person has named: whatever is wrong is reported with its name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ovirt_service import files
from ovirt_service.errors import UserError

Content = TypeVar("Content")


def load(path: Path, what: str, most_mib: int, loads: Callable[[bytes], Content]) -> Content:
    """Read a file and decode it; `what` it holds is named where it cannot be read.

    Raises `UserError` with the name of the file if it cannot be read, or as `loads` does.
    """
    try:
        content = files.read_bounded(path, most_mib)
    except OSError as error:
        raise UserError(f"{path}: cannot read the {what}: {error.strerror}") from None
    try:
        return loads(content)
    except UserError as error:
        raise UserError(f"{path}: {error}") from None
