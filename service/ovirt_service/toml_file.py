"""Reads a TOML file, and says in one line why it cannot be read."""

from __future__ import annotations

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from ovirt_service import bounded_file, identity
from ovirt_service.errors import UserError

#: A long configuration has some kilobytes.
_MOST_MIB = 4


def read(path: Path) -> dict[str, Any]:
    """Return what the file holds.

    Raises `UserError` if it cannot be read, is not TOML, or if everybody may change it: what runs by it
    would be in anybody's hands.
    """
    try:
        with open(identity.opened(path), "rb") as file:
            if os.fstat(file.fileno()).st_mode & stat.S_IWOTH:
                raise UserError(f"{path}: everybody may change the configuration: chmod o-w {path}")
            return tomllib.loads(bounded_file.read_stream(file, str(path), _MOST_MIB).decode())
    except OSError as error:
        raise UserError(f"{path}: cannot read the configuration: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: not TOML: nested too deeply") from None
