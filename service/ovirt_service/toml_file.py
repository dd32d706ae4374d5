"""Reads a TOML file, and says in one line why it cannot be read."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from ovirt_service.errors import UserError


def read(path: Path) -> dict[str, Any]:
    """Return what the file holds. Raises `UserError` if it cannot be read or is not TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
