"""Configuration: what a file or a variable says; no secret is printed, or read where others may write."""

import logging
import os
import tomllib
from enum import StrEnum
from pathlib import Path

import msgspec
import pytest

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config
from ovirt_placement.config import EngineSettings, check_url, exposes
from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.engine.connection.client import connect
from ovirt_placement.engine.connection.log_ins import read_password
from ovirt_service.errors import UserError
from tests.configuration import write_configuration, write_password
from tests.paths import CHECKOUT

ANSIBLE = {
    "OVIRT_URL": "https://engine/ovirt-engine/api",
    "OVIRT_USERNAME": "admin@internal",
    "OVIRT_CAFILE": "/ca.pem",
    "OVIRT_INSECURE": "true",
}


class Mode(StrEnum):
    DRY_RUN = "dry-run"
    ENFORCE = "enforce"


class Other(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    mode: Mode = Mode.DRY_RUN


def written(path: Path, text: str) -> Path:
    file = path / "placement.toml"
    file.write_text(text)
    return file


def test_without_a_file_the_variables_of_ansible_speak(tmp_path: Path) -> None:
    engine = config.load(None, ANSIBLE).engine
    assert (engine.url, engine.username) == ("https://engine/ovirt-engine/api", "admin@internal")
    assert (engine.ca_file, engine.insecure) == (Path("/ca.pem"), True)


def test_what_the_file_says_stands_before_the_variables(tmp_path: Path) -> None:
    file = written(tmp_path, '[engine]\nurl = "https://other/api"\ninsecure = false\n')
    engine = config.load(file, ANSIBLE).engine
    assert (engine.url, engine.insecure, engine.username) == ("https://other/api", False, "admin@internal")


def test_the_variable_names_the_file_where_no_argument_does(tmp_path: Path) -> None:
    file = written(tmp_path, '[inventory]\ndirectory = "/somewhere"\nmax_age_seconds = 2\n')
    read = config.load(None, {PATH_VARIABLE: str(file)}).inventory
    assert (read.directory, read.max_age_seconds) == (Path("/somewhere"), 2.0)


def test_a_section_of_a_component_is_decoded_when_it_asks(tmp_path: Path) -> None:
    loaded = config.load(written(tmp_path, '[enforcer]\nmode = "enforce"\n'), {})
    assert loaded.section("enforcer", Other) == Other(Mode.ENFORCE)
    assert config.load(written(tmp_path, ""), {}).section("enforcer", Other) == Other()


def test_an_unknown_key_of_a_component_is_refused_as_any_other(tmp_path: Path) -> None:
    file = written(tmp_path, '[enforcer]\nmoed = "enforce"\n')
    with pytest.raises(UserError) as refusal:
        config.load(file, {}).section("enforcer", Other)
    assert str(refusal.value) == f'{file}: [enforcer] moed: unknown key; did you mean "mode"?'


def test_a_word_that_is_none_of_those_known_is_refused_with_them(tmp_path: Path) -> None:
    file = written(tmp_path, '[enforcer]\nmode = "enforced"\n')
    with pytest.raises(UserError) as refusal:
        config.load(file, {}).section("enforcer", Other)
    known = 'one of dry-run, enforce; did you mean "enforce"?'
    assert str(refusal.value) == f'{file}: [enforcer] mode: cannot be "enforced"; {known}'


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[engine]\npasword_file = "x"', '[engine] pasword_file: unknown key; did you mean "password_file"?'),
        ('[engine]\npassword = "x"', '[engine] password: unknown key; did you mean "password_file"?'),
        ("[inventry]\n", 'unknown section [inventry]; did you mean "inventory"?'),
        ("url = 1", 'unknown key "url" outside of a section'),
        ("engine = 1", "engine: write it as a section, [engine]"),
        ("[engine]\nurl = 1", "[engine] url: expected text or null, not a whole number"),
        ('[engine]\ninsecure = "no"', "[engine] insecure: expected true or false, not text"),
        ("[inventory]\ninterval_seconds = 0", "[inventory] interval_seconds: expected a number > 0.0"),
        (
            "[inventory]\ndirectory = 3",
            "[inventory] directory: expected the path of a file, not a whole number",
        ),
        ("[engine", "not TOML: Expected ']' at the end of a table declaration (at end of document)"),
    ],
)
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(UserError) as refusal:
        config.load(file, {})
    assert str(refusal.value) == f"{file}: {complaint}"


def test_a_file_that_is_not_there_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.toml: cannot read the configuration: No such file"):
        config.load(tmp_path / "absent.toml", {})


def test_a_variable_that_is_neither_true_nor_false_is_a_mistake() -> None:
    with pytest.raises(UserError, match='OVIRT_INSECURE: "maybe" is neither true nor false'):
        config.load(None, {"OVIRT_INSECURE": "maybe"})


def test_an_engine_with_a_name_has_a_directory_of_its_own(tmp_path: Path) -> None:
    unnamed = config.load(written(tmp_path, ""), {})
    assert (unnamed.engine.name, unnamed.inventory.directory) == ("default", Path("/run/ovirt-placement"))
    named = config.load(written(tmp_path, '[engine]\nname = "east-1.x_2"\n'), {})
    assert named.inventory.directory == Path("/run/ovirt-placement/east-1.x_2")
    said = written(tmp_path, '[engine]\nname = "east"\n[inventory]\ndirectory = "/run/ovirt-placement"\n')
    assert config.load(said, {}).inventory.directory == Path("/run/ovirt-placement")


def test_an_engine_with_a_name_has_units_of_its_own(tmp_path: Path) -> None:
    assert config.load(written(tmp_path, ""), {}).unit("ovirt-enforcer") == "ovirt-enforcer"
    named = config.load(written(tmp_path, '[engine]\nname = "east"\n'), {})
    assert named.unit("ovirt-enforcer") == "ovirt-enforcer@east"


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../east", "a/b", "-east", "ea st", "east\\n", "ö", "e" * 65]
)
def test_a_name_that_is_no_part_of_a_path_is_refused(tmp_path: Path, name: str) -> None:
    file = written(tmp_path, f'[engine]\nname = "{name}"\n')
    with pytest.raises(UserError, match=r"\[engine\] name: expected text "):
        config.load(file, {})


def test_the_sample_holds_every_key_with_its_default() -> None:
    sample = CHECKOUT / "packaging" / "ovirt-placement.toml"
    defaults = config.Config({}, "")
    uncommented = "\n".join(
        line.removeprefix("#") for line in sample.read_text().splitlines() if not line.startswith("# ")
    )
    file = tomllib.loads(uncommented)
    for name, settings in (("inventory", defaults.inventory), ("store", defaults.store)):
        assert file[name] == {key: _plain(value) for key, value in msgspec.structs.asdict(settings).items()}
    assert config.Config(file, "sample").ha == config.HaSettings()
    assert set(file["engine"]) == set(msgspec.structs.asdict(defaults.engine))
    enforcer = config.Config(file, "sample").section("enforcer", EnforcerSettings)
    assert enforcer == EnforcerSettings()


def _plain(value: object) -> object:
    return str(value) if isinstance(value, Path) else value


@pytest.mark.parametrize(
    "url",
    [
        "https://admin:secret@engine/ovirt-engine/api",
        "https://engine:port/ovirt-engine/api",
        "https://engine:99999/ovirt-engine/api",
        "https://engine:0/ovirt-engine/api",
        "https://[::1/ovirt-engine/api",
        "https://engine/ovirt-engine/api\n",
        "ftp://engine",
        "https://",
    ],
)
def test_a_url_that_is_none_is_reported_in_one_line_without_its_password(tmp_path: Path, url: str) -> None:
    file = write_configuration(tmp_path, url.replace("\n", "\\n"))
    with pytest.raises(UserError) as refusal:
        config.load(file, {})
    assert "secret" not in str(refusal.value)
    assert str(refusal.value).isprintable()
    with pytest.raises(UserError):
        check_url(url)


@pytest.mark.parametrize(
    ("url", "insecure", "exposed"),
    [
        ("https://engine/ovirt-engine/api", False, ""),
        ("https://engine/ovirt-engine/api", True, "any server that answers"),
        ("http://engine/ovirt-engine/api", False, "in clear"),
        ("http://127.0.0.1:8080/ovirt-engine/api", True, ""),
        ("http://localhost/ovirt-engine/api", False, ""),
    ],
)
def test_who_could_learn_the_password_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, url: str, insecure: bool, exposed: str
) -> None:
    assert exposed in exposes(url, insecure=insecure)
    file = write_password(tmp_path)
    settings = EngineSettings(
        url=f"{url}/{tmp_path.name}", username="me", password_file=file, insecure=insecure
    )
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            connect(settings)
    assert len(caplog.records) == bool(exposed)
    assert exposed in caplog.text


def test_a_configuration_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    file = write_configuration(tmp_path, "https://engine/ovirt-engine/api")
    file.chmod(0o666)
    with pytest.raises(UserError, match="everybody may change the configuration: chmod o-w"):
        config.load(file, {})
    file.chmod(0o664)
    assert config.load(file, {}).engine.username == "admin@internal"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_password_file_of_another_owner_is_refused(tmp_path: Path) -> None:
    file = write_password(tmp_path)
    os.chown(file, 65534, -1)
    with pytest.raises(UserError, match=f"belongs to another user .* or chown 0 {file}$"):
        read_password(EngineSettings(password_file=file), {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_is_not_advised_to_take_a_services_password_away(tmp_path: Path) -> None:
    """As it was of the inventory's user alone, who goes on reading it."""
    file = write_password(tmp_path)
    os.chown(file, 65534, 65534)
    with pytest.raises(UserError, match=f"chown root {file} && chmod 640 {file}, which its group"):
        read_password(EngineSettings(password_file=file), {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_root_lets_the_group_of_the_services_read_the_password_and_nothing_more(tmp_path: Path) -> None:
    file = write_password(tmp_path)
    settings = EngineSettings(password_file=file)
    os.chown(file, 0, 65534)
    file.chmod(0o640)
    assert read_password(settings, {}).text
    for mode in (0o660, 0o650, 0o644):
        file.chmod(mode)
        with pytest.raises(UserError, match="others may read the password"):
            read_password(settings, {})
