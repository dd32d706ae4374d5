"""Configuration: what a file or a variable says; no secret is printed, or read where others may write."""

import logging
import os
import tomllib
from pathlib import Path

import msgspec
import pytest

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement import config
from ovirt_placement.config import EngineSettings, check_url, exposes
from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.engine.connection.client import EngineConnection
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


def written(path: Path, text: str) -> Path:
    file = path / "placement.toml"
    file.write_text(text)
    return file


def test_what_the_file_says_stands_before_the_variables_of_ansible(tmp_path: Path) -> None:
    engine = config.load(None, ANSIBLE).engine
    assert (engine.url, engine.username) == ("https://engine/ovirt-engine/api", "admin@internal")
    assert (engine.ca_file, engine.insecure) == (Path("/ca.pem"), True)
    file = written(tmp_path, '[engine]\nurl = "https://other/api"\ninsecure = false\n')
    engine = config.load(file, ANSIBLE).engine
    assert (engine.url, engine.insecure, engine.username) == ("https://other/api", False, "admin@internal")


def test_the_variable_names_the_file_where_no_argument_does(tmp_path: Path) -> None:
    file = written(tmp_path, '[inventory]\ndirectory = "/somewhere"\nmax_age_seconds = 2\n')
    read = config.load(None, {PATH_VARIABLE: str(file)}).inventory
    assert (read.directory, read.max_age_seconds) == (Path("/somewhere"), 2.0)


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
        ("[engine]\ntimeout_seconds = inf", "[engine] timeout_seconds: expected a number <= 1000000.0"),
        ("[store]\npatience_seconds = 1e7", "[store] patience_seconds: expected a number <= 1000000.0"),
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


def test_a_file_that_is_absent_and_a_variable_that_is_neither_true_nor_false_are_mistakes(
    tmp_path: Path,
) -> None:
    with pytest.raises(UserError, match=r"absent\.toml: cannot read the configuration: No such file"):
        config.load(tmp_path / "absent.toml", {})
    with pytest.raises(UserError, match='OVIRT_INSECURE: "maybe" is neither true nor false'):
        config.load(None, {"OVIRT_INSECURE": "maybe"})


RUN = "/run/ovirt-placement"


@pytest.mark.parametrize(
    ("name", "more", "directory", "unit"),
    [
        ("", "", RUN, "ovirt-enforcer"),
        ("east-1.x_2", "", f"{RUN}/east-1.x_2", "ovirt-enforcer@east-1.x_2"),
        ("east", f'[inventory]\ndirectory = "{RUN}"\n', RUN, "ovirt-enforcer@east"),
    ],
    ids=["unnamed", "named", "in a directory that is set"],
)
def test_an_engine_with_a_name_has_a_directory_and_units_of_its_own(
    tmp_path: Path, name: str, more: str, directory: str, unit: str
) -> None:
    text = f'[engine]\nname = "{name}"\n{more}' if name else more
    found = config.load(written(tmp_path, text), {})
    assert (found.engine.name, found.inventory.directory) == (name or "default", Path(directory))
    assert found.unit("ovirt-enforcer") == unit


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
            EngineConnection(settings)
    assert len(caplog.records) == bool(exposed)
    assert exposed in caplog.text


def test_a_configuration_that_everybody_may_change_is_refused(tmp_path: Path) -> None:
    file = write_configuration(tmp_path, "https://engine/ovirt-engine/api")
    file.chmod(0o666)
    with pytest.raises(UserError, match="everybody may change the configuration: chmod o-w"):
        config.load(file, {})
    file.chmod(0o664)
    assert config.load(file, {}).engine.username == "admin@internal"


#: Owner and group of a password file, its mode, and what root reads of it; nothing where it is taken.
OWNERS = {
    "another user's": (65534, -1, 0o600, "belongs to another user .* or chown 0 {file}$"),
    # As it was of the inventory's user alone, who goes on reading it.
    "a service's": (65534, 65534, 0o600, "chown root {file} && chmod 640 {file}, which its group"),
    "for a group": (0, 65534, 0o640, ""),
    "its group writes": (0, 65534, 0o660, "others may read the password"),
    "its group executes": (0, 65534, 0o650, "others may read the password"),
    "others read": (0, 65534, 0o644, "others may read the password"),
}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize(("owner", "group", "mode", "complaint"), OWNERS.values(), ids=OWNERS)
def test_root_reads_its_own_password_which_a_group_of_services_may_read_and_nothing_more(
    tmp_path: Path, owner: int, group: int, mode: int, complaint: str
) -> None:
    file = write_password(tmp_path)
    os.chown(file, owner, group)
    file.chmod(mode)
    if not complaint:
        assert read_password(EngineSettings(password_file=file), {}).text
        return
    with pytest.raises(UserError, match=complaint.format(file=file)):
        read_password(EngineSettings(password_file=file), {})
