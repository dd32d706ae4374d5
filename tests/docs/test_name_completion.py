"""Shells complete the names that the inventory lists, typed at a terminal."""

import os
import pty
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace

from ovirt_placement.inventory.service.publisher import NameList
from ovirt_placement.model import Snapshot
from tests.paths import CHECKOUT
from tests.placement.model.full_state import full_state, loaded

pytestmark = pytest.mark.system

COMPLETIONS = CHECKOUT / "packaging" / "completions"
NAMES = (
    *("web1", 'odd vm\'s "$(touch it)" `x`', "colon:1=2@h"),
    *("back\\slash", "günther *", "bang!1", "&;|<>(){}"),
)
HOSTS = ("north", "south-1")
#: Nobody waits for so long: a shell that does not answer fails the test.
_SECONDS = 60.0
_SOME_USER = 54321
_READY, _END = "<READY>", "<END>"
_PLAIN = {"bash": ["--noprofile", "--norc", "-i"], "zsh": ["-f", "-i"]}
_SET_UP = {
    "bash": """
        for each in "$COMPLETIONS"/bash/*; do source "$each"; done
        bind 'set enable-bracketed-paste off'
    """,
    "zsh": 'fpath=("$COMPLETIONS/zsh" $fpath); autoload -U compinit; compinit -u -D',
}
_SHOWING = f"""
shown() {{ printf '[%s]' "$@"; echo '{_END}'; }}
ovirt-placement() {{ shown "$@"; }}
ovirt-enforcer() {{ shown "$@"; }}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where an inventory has published these names."""
    state: Snapshot = loaded(full_state())
    some_vm, some_host = state.vms[0], state.hosts[0]
    vms = tuple(replace(some_vm, id=f"v{at}", name=name) for at, name in enumerate(NAMES))
    hosts = tuple(replace(some_host, id=f"h{at}", name=name) for at, name in enumerate(HOSTS))
    clusters = (replace(state.clusters[0], name="blue sky"),)
    snapshot = replace(state, clusters=clusters, vms=vms, hosts=hosts, affinity_groups=())
    (tmp_path / "run").mkdir()
    NameList(tmp_path / "run").publish(snapshot)
    return tmp_path


def configured(directory: Path) -> Path:
    file = directory / "east.toml"
    names = directory / "run"
    file.write_text(f'[engine]\nname = "east"\n[inventory]  # one\ndirectory = "{names}"  # here\n')
    return file


def asked(folder: Path, shell: str, *lines: str, config: Path | None) -> list[list[str]]:
    """The arguments that the command gets when these lines are typed at the shell, each with Enter."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    (folder / "rc").write_text(f"{_SET_UP[shell]}\n{_SHOWING}\nPS1='{_READY}'\n")
    environment = os.environ | {
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "PS1": "",
        "COMPLETIONS": str(COMPLETIONS),
        "OVIRT_PLACEMENT_CONFIG": str(config or folder / "absent.toml"),
    }
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [shell, *_PLAIN[shell]], stdin=theirs, stdout=theirs, stderr=theirs, env=environment, cwd=folder,
        start_new_session=True,
    ) as process:  # fmt: skip
        os.close(theirs)
        try:
            _typed(ours, f". '{folder}/rc'\n", _READY)
            return [_arguments(_typed(ours, line + "\n", _END + "\r")) for line in lines]
        finally:
            process.kill()
            os.close(ours)


def _arguments(shown: str) -> list[str]:
    return shown[shown.rindex("\n[") + 2 : shown.rindex(f"]{_END}")].split("][")


def _typed(terminal: int, text: str, until: str) -> str:
    os.write(terminal, text.encode())
    shown = b""
    while until.encode() not in shown:
        ready, _, _ = select.select([terminal], [], [], _SECONDS)
        assert ready, shown.decode(errors="replace")
        shown += os.read(terminal, 65536)
    return shown.decode()


SHELLS = pytest.mark.parametrize("shell", ["bash", "zsh"])


@SHELLS
def test_each_name_arrives_as_it_is(directory: Path, shell: str) -> None:
    starts = ["\\&" if name.startswith("&") else name[:3] for name in NAMES]
    lines = [f"ovirt-placement where {start}\t" for start in starts]
    found = asked(directory, shell, *lines, config=configured(directory))
    assert found == [["where", name] for name in NAMES]
    assert not (directory / "it").exists()


@SHELLS
def test_where_names_are_taken(directory: Path, shell: str) -> None:
    meant = {
        "ovirt-placement where 'od\t": ["where", NAMES[1]],
        'ovirt-placement where "gü\t': ["where", NAMES[4]],
        "ovirt-placement why web1 so\t": ["why", "web1", "south-1"],
        "ovirt-placement violations --host so\t": ["violations", "--host", "south-1"],
        "ovirt-placement what-if --maintenance north,so\t": ["what-if", "--maintenance", "north,south-1"],
        "ovirt-placement ha-check --cluster bl\t": ["ha-check", "--cluster", "blue sky"],
        "ovirt-enforcer maintenance plan north so\t": ["maintenance", "plan", "north", "south-1"],
        "ovirt-enforcer history bac\t": ["history", NAMES[3]],
    }
    found = asked(directory, shell, *meant, config=configured(directory))
    assert dict(zip(meant, found, strict=True)) == meant


@SHELLS
def test_the_configuration_of_the_line_counts(directory: Path, shell: str) -> None:
    file = configured(directory)
    (found,) = asked(directory, shell, f"ovirt-placement where --config {file} we\t", config=None)
    assert found == ["where", "--config", str(file), "web1"]


@SHELLS
@pytest.mark.parametrize("happens", ["no configuration", "no directory", "no file", "a folder"])
def test_without_names_nothing_is_completed(directory: Path, shell: str, happens: str) -> None:
    names = directory / "run" / "names"
    if happens == "no directory":
        shutil.rmtree(directory / "run")
    elif happens != "no configuration":
        names.unlink()
        if happens == "a folder":
            names.mkdir()
    config = None if happens == "no configuration" else configured(directory)
    assert asked(directory, shell, "ovirt-placement where we\t", config=config) == [["where", "we"]]


@SHELLS
@pytest.mark.parametrize("linked", [False, True], ids=["as it is", "a link to what is root's"])
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may read what others may not")
def test_root_reads_names_as_whose_the_folder_is(directory: Path, shell: str, linked: bool) -> None:
    with tempfile.TemporaryDirectory() as others:
        run = shutil.copytree(directory / "run", Path(others, "run"))
        os.chmod(others, 0o755)
        for one in (run, run / "names"):
            os.chown(one, _SOME_USER, _SOME_USER)
        if linked:
            secret = Path(shutil.move(run / "names", Path(others, "secret")))
            os.chown(secret, 0, 0)
            secret.chmod(0o600)
            (run / "names").symlink_to(secret)
        file = directory / "theirs.toml"
        file.write_text(f'[inventory]\ndirectory = "{run}"\n')
        (found,) = asked(directory, shell, "ovirt-placement where we\t", config=file)
    assert found == ["where", "we" if linked else "web1"]


def test_ten_thousand_names_in_bash(directory: Path) -> None:
    lines = "".join(f"vm\tvm number {at}\n" for at in range(10_000))
    (directory / "run" / "names").write_text(lines)
    script = """
      source "$1"; COMP_WORDS=(ovirt-placement where vm); COMP_CWORD=2
      _shtab_ovirt_placement; echo "${#COMPREPLY[@]} ${COMPREPLY[9999]}"
    """
    done = subprocess.run(
        ["bash", "-c", script, "bash", str(COMPLETIONS / "bash" / "ovirt-placement")],
        env={**os.environ, "OVIRT_PLACEMENT_CONFIG": str(configured(directory))},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("10000 vm\\ number\\ 9999\n", "")
