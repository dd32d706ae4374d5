"""Digests that name things, made so that a machine in FIPS mode has them, and files that are named by one.

A digest here is no protection: two names must only not fall together. FIPS mode refuses BLAKE2 whatever it is
for, so a digest is the beginning of a SHA-256. Files that an earlier release named by BLAKE2 are renamed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path


def digest(text: str, size: int) -> bytes:
    """Digest a text, unpaired surrogates included, into this many bytes: 32 at most."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]


def digest_name(text: str, size: int) -> str:
    """Digest a text into a part of a file's name, of two digits a byte."""
    return digest(text, size).hex()


def former_name(text: str, size: int) -> str:
    """What an earlier release named it; in FIPS mode, where that release made no file, the present name."""
    try:
        return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
    except (AttributeError, TypeError, ValueError):
        return digest_name(text, size)


def take_over(former: Path, file: Path) -> None:
    """Rename the file or folder of an earlier release, unless its successor stands there already."""
    with contextlib.suppress(OSError):
        if not os.path.lexists(file):
            former.rename(file)
