"""The configuration file: what is wrong in it is said in one line, and the sample names every key."""

import json
import re
import socket
import tomllib
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from ovirt_scheduler_proxy import settings
from ovirt_scheduler_proxy.http import Gate
from ovirt_service.errors import UserError
from tests.paths import CHECKOUT

SAMPLE = CHECKOUT / "packaging/ovirt-scheduler-proxy.toml"


def load(tmp_path: Path, text: str) -> settings.Settings:
    file = tmp_path / "proxy.toml"
    file.write_text(text)
    return settings.load(file)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server]\nlisen = 'x'", 'server.lisen: unknown key; did you mean "listen"?'),
        ("[sever]", 'sever: unknown key; did you mean "server"?'),
        ("[units.A]\non_fail = 'accept'", 'units[...].on_fail: unknown key; did you mean "on_failure"?'),
        (
            "[[plugins]]\ndirectory = '/a'\npyton = ''",
            'plugins[0].pyton: unknown key; did you mean "python"?',
        ),
        ("[log]\nxyz = 1", "log.xyz: unknown key; known are level"),
        ("[calls]\non_failure = 'maybe'", 'calls.on_failure: cannot be "maybe"; one of accept, reject'),
        ("[calls]\ndeadline_seconds = 0", "calls.deadline_seconds: expected a number > 0.0"),
        ("[workers]\nwarm = 0", "workers.warm: expected a whole number >= 1"),
        ("[workers]\nwarm = 8\nmost = 4", "workers.most is less than workers.warm"),
        ("[workers]\nwarm = 'many'", "workers.warm: expected a whole number, not text"),
        ("[[plugins]]\npython = 'x'", "plugins[0].directory: is missing"),
        ("[server]\nallowed_clients = ['here']", "server.allowed_clients"),
        ("[server", "not TOML"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UserError) as caught:
        load(tmp_path, text)
    message = str(caught.value)
    assert said in message
    assert str(tmp_path / "proxy.toml") in message
    assert "\n" not in message


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        settings.with_plugins(settings.Settings(), [str(tmp_path / "absent")])


def test_folders_of_the_command_line_keep_what_the_file_says_of_them(tmp_path: Path) -> None:
    read = load(tmp_path, f"[[plugins]]\ndirectory = '{tmp_path}'\npython = 'py'\n")
    chosen = settings.with_plugins(read, [f"{tmp_path}/."])
    assert [folder.python for folder in chosen.plugins] == ["py"]


def folders(*named: Path) -> list[str]:
    chosen = settings.with_plugins(settings.Settings(), list(map(str, named)))
    return [one.directory for one in chosen.plugins]


def test_a_folder_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    folder, link = tmp_path / "plugins", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    assert folders(link, folder, tmp_path) == [str(link), str(tmp_path)]


def test_the_sample_names_every_key_with_its_default(tmp_path: Path) -> None:
    text = SAMPLE.read_text("utf-8")
    uncommented = re.sub(r"(?m)^#(?=[\[a-z])", "", text)
    document = tomllib.loads(uncommented)
    assert settings.decode(tomllib.loads(text), SAMPLE) == settings.Settings()
    for section in msgspec.structs.fields(settings.Settings):
        found = document[section.name]
        if section.name == "units":
            assert set(next(iter(found.values()))) == {*settings.UnitSettings.__struct_fields__}
        elif section.name == "plugins":
            assert set(found[0]) == {*settings.PluginFolder.__struct_fields__}
        else:
            assert found == json.loads(msgspec.json.encode(section.default)), section.name


def test_who_may_connect() -> None:
    gate = Gate(settings.Server(allowed_clients=("192.0.2.0/24", "2001:db8::1")))

    def admits(address: str) -> bool:
        with socket.socket() as accepted:
            return gate.admit(Mock(), 0, accepted, address, Mock()) is not None

    for address in ("127.0.0.1", "::1", "::ffff:127.0.0.1", "192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1"):
        assert admits(address)
    for address in ("192.0.3.1", "2001:db8::2", "fe80::1%eth0"):
        assert not admits(address)
    gate.close()


def test_our_plugins_are_taken_where_no_folder_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of the old proxy come first, where they are still there."""
    ours, former = tmp_path / "ours", tmp_path / "former"
    ours.mkdir()
    monkeypatch.delenv(settings.PLUGINS_VARIABLE, raising=False)
    monkeypatch.setattr(settings, "DEFAULT_PLUGINS", str(ours))
    monkeypatch.setattr(settings, "FORMER_PLUGINS", str(former))
    assert folders() == [str(ours)]
    former.mkdir()
    assert folders() == [str(former)]
