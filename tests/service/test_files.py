"""Files that others give us, and what the processes of a user have in memory for one another."""

import time
from io import BytesIO
from pathlib import Path

import pytest

from ovirt_service import files
from ovirt_service.errors import UserError
from ovirt_service.files import digest, digest_name


def test_what_it_holds(tmp_path: Path) -> None:
    file = tmp_path / "part.toml"
    file.write_text('[section]\nkey = "value"\n')
    assert files.read_toml(file) == {"section": {"key": "value"}}


@pytest.mark.parametrize(
    ("content", "said"), [(b"[section", "not TOML: Expected"), (b"\xff", "not TOML: 'utf-8' codec")]
)
def test_what_is_not_toml(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "part.toml"
    file.write_bytes(content)
    with pytest.raises(UserError) as refusal:
        files.read_toml(file)
    assert str(refusal.value).startswith(f"{file}: {said}")


@pytest.mark.parametrize(("size", "is_read"), [(2**20 - 1, True), (2**20, True), (2**20 + 1, False)])
def test_a_file_may_be_so_large(size: int, is_read: bool) -> None:
    file = BytesIO(b"x" * size)
    if is_read:
        assert len(files.read_stream(file, "it", 1)) == size
    else:
        with pytest.raises(UserError, match="it: holds more than 1 MiB"):
            files.read_stream(file, "it", 1)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent: cannot read the configuration: No such file or directory$"):
        files.read_toml(tmp_path / "absent")


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
