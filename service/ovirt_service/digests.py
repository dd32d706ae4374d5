"""Digests that name things, made so that a machine in FIPS mode has them.

A digest here is no protection: two names must only not fall together. FIPS mode refuses BLAKE2 whatever it is
for, so a digest is the beginning of a SHA-256.
"""

from __future__ import annotations

import hashlib


def digest(text: str, size: int) -> bytes:
    """Digest a text, unpaired surrogates included, into this many bytes: 32 at most."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:size]


def digest_name(text: str, size: int) -> str:
    """Digest a text into a part of a file's name, of two digits a byte."""
    return digest(text, size).hex()
