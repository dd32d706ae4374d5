"""Digests that FIPS mode has."""

from __future__ import annotations

from ovirt_service.digests import digest, digest_name


def test_a_digest_is_the_beginning_of_a_sha_256() -> None:
    # FIPS 180-2, appendix B.1.
    assert digest("abc", 8).hex() == digest_name("abc", 8) == "ba7816bf8f01cfea"
    assert digest("\ud800", 4) != digest("\udfff", 4)
