"""Files that others give us, and what the processes of a user have in memory for one another."""

import time
from io import BytesIO
from pathlib import Path

import pytest

from ovirt_service import files
from ovirt_service.errors import UserError
from ovirt_service.files import digest, digest_name


def test_what_a_file_holds_or_why_it_cannot_be_read(tmp_path: Path) -> None:
    file = tmp_path / "part.toml"
    for content, said in (
        (None, "cannot read the configuration: No such file or directory"),
        (b"[section", "not TOML: Expected"),
        (b"\xff", "not TOML: 'utf-8' codec"),
    ):
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(UserError) as refusal:
            files.read_toml(file)
        assert str(refusal.value).startswith(f"{file}: {said}")
    file.write_text('[section]\nkey = "value"\n')
    assert files.read_toml(file) == {"section": {"key": "value"}}


def test_a_file_may_be_so_large() -> None:
    for size in (2**20 - 1, 2**20):
        assert len(files.read_stream(BytesIO(b"x" * size), "it", 1)) == size
    with pytest.raises(UserError, match="it: holds more than 1 MiB"):
        files.read_stream(BytesIO(b"x" * (2**20 + 1)), "it", 1)


def test_who_holds_a_lock_for_too_long_stops_nobody(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    began = time.monotonic()
    with files.one_locked([one, other], 60), files.one_locked([one, other], 60):
        assert time.monotonic() < began + 30
        with files.one_locked([one, other], 0.01), files.one_locked([tmp_path / "no" / "folder"], 60):
            assert time.monotonic() < began + 30
    with files.one_locked([one], 60):
        assert time.monotonic() < began + 30


def test_a_folder_in_memory_is_the_users_alone() -> None:
    place = files.memory_folder("of-this-test")
    assert place.stat().st_mode & 0o777 == 0o700
    place.chmod(0o777)
    assert files.memory_folder("of-this-test") == Path("/dev/null")
    place.rmdir()
    place.symlink_to("/tmp")
    assert files.memory_folder("of-this-test") == Path("/dev/null")
    place.unlink()


def test_a_digest_is_the_beginning_of_a_sha_256() -> None:
    # FIPS 180-2, appendix B.1.
    assert digest("abc", 8).hex() == digest_name("abc", 8) == "ba7816bf8f01cfea"
    assert digest("\ud800", 4) != digest("\udfff", 4)
