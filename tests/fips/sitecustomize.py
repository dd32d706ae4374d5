"""Refuses the digests that EL's Python refuses in FIPS mode, in interpreters with this folder on PYTHONPATH.

There BLAKE2 is OpenSSL's alone, which knows no other size and is not approved; MD5 passes where it protects
nothing.
"""

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

_new, _md5 = hashlib.new, hashlib.md5


def _blake2(content: bytes = b"", *, usedforsecurity: bool = True) -> Any:
    raise ValueError("[digital envelope routines] unsupported")


def _md5_of_no_secret(content: bytes = b"", *, usedforsecurity: bool = True) -> Any:
    if usedforsecurity:
        raise ValueError("[digital envelope routines] unsupported")
    return _md5(content, usedforsecurity=False)


def _named(name: str, content: bytes = b"", **arguments: Any) -> Any:
    refusing = {"md5": _md5_of_no_secret, "blake2b": _blake2, "blake2s": _blake2}
    chosen = refusing.get(name.lower())
    return chosen(content, **arguments) if chosen else _new(name, content, **arguments)


hashlib.blake2b = hashlib.blake2s = _blake2  # type: ignore[assignment, misc]  # as FIPS mode does
hashlib.md5 = _md5_of_no_secret
hashlib.new = _named

# The test may want to know which processes did without.
if reported := os.environ.get("FIPS_PROCESSES"):
    Path(reported, str(os.getpid())).write_text(" ".join(sys.orig_argv))
