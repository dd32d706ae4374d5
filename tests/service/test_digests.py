"""Digests that FIPS mode has, and files that take over from those that an earlier release has named."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from ovirt_service.digests import digest, digest_name, former_name, take_over


def test_a_digest_is_the_beginning_of_a_sha_256() -> None:
    # FIPS 180-2, appendix B.1.
    assert digest("abc", 8).hex() == digest_name("abc", 8) == "ba7816bf8f01cfea"
    assert digest("\ud800", 4) != digest("\udfff", 4)


def test_former_names_are_those_of_the_earlier_release() -> None:
    # RFC 7693, appendix A, has the digest of 64 bytes; this is what that release wrote for 8.
    assert former_name("abc", 64).startswith("ba80a53f981c4d0d")
    assert former_name("abc", 8) == hashlib.blake2b(b"abc", digest_size=8).hexdigest()


@pytest.mark.parametrize("refusal", [ValueError, TypeError])
def test_in_fips_mode_nothing_has_a_former_name(
    refusal: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*content: bytes, **arguments: Any) -> None:
        raise refusal

    monkeypatch.setattr(hashlib, "blake2b", refuse)
    assert former_name("abc", 8) == digest_name("abc", 8)


def test_the_former_file_is_renamed_once(tmp_path: Path) -> None:
    former, file = tmp_path / "former", tmp_path / "now"
    take_over(former, file)
    assert not file.exists()
    former.write_text("first")
    take_over(former, file)
    assert (file.read_text(), former.exists()) == ("first", False)
    former.write_text("second")
    take_over(former, file)
    assert (file.read_text(), former.exists()) == ("first", True)
    take_over(file, file)
    assert file.read_text() == "first"
