"""Whose rights root takes in a folder, and where it takes none because others could choose whose."""

import os
from pathlib import Path

import pytest

from ovirt_service import identity
from ovirt_service.errors import UserError

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root takes the rights of others")
OWNER, OTHER = 12_345, 12_350


def made(path: Path, uid: int = 0, mode: int = 0o755) -> Path:
    path.mkdir(parents=True)
    os.chown(path, uid, uid)
    path.chmod(mode)
    return path


def test_a_folder_of_root_is_roots_to_work_in(tmp_path: Path) -> None:
    assert identity.owner(made(tmp_path / "a")) is None
    assert identity.owner(tmp_path / "absent" / "deeper") is None
    assert not identity.is_others(tmp_path / "a")


def test_the_first_owner_on_the_way_decides(tmp_path: Path) -> None:
    made(tmp_path / "a", OWNER)
    deeper = made(tmp_path / "a" / "b", OTHER, 0o777)
    assert (identity.owner(deeper), identity.is_others(deeper)) == ((OWNER, OWNER), True)


def test_a_link_of_root_is_followed(tmp_path: Path) -> None:
    made(tmp_path / "disk" / "a", OWNER)
    (tmp_path / "a").symlink_to("disk/a")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert [identity.owner(tmp_path / link) for link in "ab"] == [(OWNER, OWNER)] * 2


@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_a_folder_of_root_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    made(tmp_path / "a", mode=mode)
    with pytest.raises(UserError, match="others may write there: give it to the user of the services"):
        identity.owner(tmp_path / "a")


@pytest.mark.parametrize(("mode", "uid"), [(0o770, 0), (0o777, OWNER), (0o1777, OWNER)])
def test_a_folder_that_others_can_replace_is_refused(tmp_path: Path, mode: int, uid: int) -> None:
    made(tmp_path / "shared", mode=mode)
    made(tmp_path / "shared" / "a", uid)
    with pytest.raises(UserError, match="others than root may put another folder in its place"):
        identity.owner(tmp_path / "shared" / "a")


def test_a_link_that_others_can_have_put_there_is_not_followed(tmp_path: Path) -> None:
    made(tmp_path / "roots")
    made(tmp_path / "shared", mode=0o1777)
    (tmp_path / "shared" / "a").symlink_to(tmp_path / "roots")
    with pytest.raises(UserError, match="a link that others than root can have put there"):
        identity.owner(tmp_path / "shared" / "a")
    with pytest.raises(OSError, match="a link that others than root can have put there"):
        identity.create(tmp_path / "shared" / "a" / "file")
    assert not list((tmp_path / "roots").iterdir())


def test_a_new_file_takes_the_place_of_nothing(tmp_path: Path) -> None:
    made(tmp_path / "a", OWNER, 0o777)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "target")
    with pytest.raises(FileExistsError):
        identity.create(tmp_path / "a" / "link")
    assert not (tmp_path / "target").exists()
    os.close(identity.create(tmp_path / "a" / "file"))
    assert (tmp_path / "a" / "file").stat().st_mode & 0o777 == 0o600


def test_another_process_answers_as_the_owner_and_this_one_stays_root(tmp_path: Path) -> None:
    made(tmp_path / "a", OWNER)

    def who() -> bytes:
        return repr((os.getresuid(), os.getresgid(), os.getgroups(), os.umask(0))).encode()

    said = identity.answer_as_owner([tmp_path / "a"], who)
    assert said.decode() == repr(((OWNER,) * 3, (OWNER,) * 3, [], 0o007))
    assert os.geteuid() == 0

    def fails() -> bytes:
        raise UserError("it is so")

    with pytest.raises(UserError, match="it is so"):
        identity.answer_as_owner([tmp_path / "a"], fails)


def test_what_was_opened_before_is_read_afterwards(tmp_path: Path) -> None:
    made(tmp_path / "a", OWNER)
    closed = tmp_path / "closed"
    closed.write_text("secret")
    closed.chmod(0o600)
    child = os.fork()
    if child == 0:
        identity.become_owner([tmp_path / "a"], [closed])
        read = [os.read(identity.opened(closed), 100) for _ in range(2)]
        os._exit(0 if (os.geteuid(), read) == (OWNER, [b"secret"] * 2) else 1)
    assert os.waitpid(child, 0)[1] == 0
