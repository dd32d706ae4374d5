"""A TOML file that cannot be read is reported in one line with its name."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest

from ovirt_service import files
from ovirt_service.errors import UserError


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
