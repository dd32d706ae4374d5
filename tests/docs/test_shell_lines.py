"""What the arguments must be of a command that a page shows and that is not ours: a pattern for each program.

What patterns name is what there is: units, packages, groups, targets, options of the engine.
"""

import configparser
import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from ovirt_placement.config_file import PATH_VARIABLE
from ovirt_placement.rules.placement_keys.hierarchy import NAME, PATTERN
from tests.docs.shown import PAGES, PARSERS, Block, Line, blocks, first_word, inline, simple_commands, typed
from tests.paths import CHECKOUT

_PACKAGING = CHECKOUT / "packaging"
_SETUP = configparser.ConfigParser()
_SETUP.read(CHECKOUT / "setup.cfg")


def _read(name: str, pattern: str) -> list[str]:
    """What a pattern finds in a file of the checkout."""
    return re.findall(pattern, (CHECKOUT / name).read_text(), re.MULTILINE)


def _any(words: Iterable[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, words))})"


def _unit() -> str:
    """One of ours, or of others whom ours work with; several of ours by a pattern."""
    files = [one.name for folder in ("packaging", "docs/recipes") for one in (CHECKOUT / folder).iterdir()]
    services = [one.removesuffix(".service") for one in files if one.endswith(".service")]
    instances = [rf"{re.escape(one)}\w+" for one in services if one.endswith("@")]
    plain = [re.escape(one) for one in (*services, "ovirt-engine", "fapolicyd") if not one.endswith("@")]
    sockets = [re.escape(one) for one in files if one.endswith(".socket")]
    named = rf"(?:{'|'.join((*plain, *instances))})(?:\.service)?"
    return rf"(?:{named}|{'|'.join(sockets)}|ovirt-(?:placement|enforcer)\*\.service)"


_UNIT = _unit()
_FOLDER = "/etc/ovirt-(?:placement|scheduler-proxy)"
_GROUP = _any(_read("packaging/sysusers.d/ovirt-placement.conf", r"^u (\S+)"))
_SPEC = "packaging/rpm/ovirt-placement.spec.in"
_PACKAGE = _any(
    [
        *("ovirt-placement", "ovirt-placement*"),
        *(f"ovirt-placement-{one}" for one in _read(_SPEC, r"^%package (\w+)")),
        *_read(_SPEC, r"^%package -n (\S+)"),
    ]
)
#: What a script of ours reports as missing; a Python of EL comes without pip, and hardened hosts use libpq.
_SYSTEM_PACKAGE = _any(
    [
        *" ".join(_read("packaging/check-system.sh", r'dnf install -y ([^&"]*)')).split(),
        "python3.12-pip",
        "libpq",
    ]
)
_EXTRAS = rf"(?:\[{_any(_SETUP['options.extras_require'])}\])?"
#: That the wheel made of this tree has all that pages name is what tests/test_packaging.py tries. The units
#: look for their commands below /usr; psycopg is what hardened hosts take from PyPI.
_PIP = (
    rf"install(?: --prefix /usr)?(?: --upgrade)? (?:\.{_EXTRAS}|\./simulator|psycopg)"
    "|uninstall ovirt-placement"
)
#: The sources of what is installed are here; an administrator copies a configuration within its folder.
_SOURCE = _any(
    [
        *("/dev/null", "/dev/stdin", "ovirt-placement.toml", "ovirt-scheduler-proxy.toml"),
        *(f"packaging/{one.name}" for one in _PACKAGING.iterdir()),
        *(f"docs/recipes/{one.name}" for one in (CHECKOUT / "docs/recipes").iterdir()),
    ]
)
_VARIABLE = _any(
    [f"OVIRT_{one}" for one in ("URL", "USERNAME", "PASSWORD", "CAFILE", "INSECURE")] + [PATH_VARIABLE]
)
#: What `engine-config` knows of scheduling, in the engine's 0000_config.sql.
_ENGINE_OPTION = (
    "(?:AffinityRulesEnforcementManagerEnabled|AffinityRulesEnforcementManagerRegularInterval"
    "|EnableVdsLoadBalancing|ExternalSchedulerConnectionTimeout|ExternalSchedulerEnabled"
    "|ExternalSchedulerResponseTimeout|ExternalSchedulerServiceURL|MaxSchedulerWeight"
    "|OverUtilizationForHaReservation|VdsHaReservationIntervalInMinutes|VdsLoadBalancingIntervalInMinutes)"
)
_PROPERTIES = rf"UserDefinedVMProperties(?:={re.escape(f'{NAME}={PATTERN}')})?"
_TARGET = _any(["help", *_read("Makefile", r"^([a-z-]+):.*## ")])
_MAKE_VARIABLE = _any({*_read("Makefile", r"\$\(if \$\((\w+)\)"), *_read("Makefile", r"^(\w+) \?=")})
_SHARED = "/usr/" + _any(one for one in _SETUP["options.data_files"] if one.endswith("/plugins"))
_SERVICE = _any(one.stem for one in (_PACKAGING / "firewalld").glob("*.xml"))

#: By program, what all arguments together are.
RULES: dict[str, str] = {
    "cd": rf"{_FOLDER}|ovirt-placement",
    "createrepo_c": "/srv/ovirt-placement",  # of which a page has dnf install
    "curl": rf"-o (?:{_FOLDER}/)?ca\.pem https?://[\w.]+/ovirt-engine/services/pki-resource\?\S+",
    "dnf": rf"(?:upgrade|downgrade)(?: {_PACKAGE})*|remove(?: -y ovirt-scheduler-proxy)?"
    rf"|install -y(?: --repofrompath placement,/srv/ovirt-placement --nogpgcheck(?: {_PACKAGE})+"
    rf"|(?: {_SYSTEM_PACKAGE})+)",
    "echo": rf'plugins = \[\{{directory = "{_SHARED}"\}}\]',
    "editor": rf"{_FOLDER}/[\w-]+|east\.toml",
    "engine-config": rf"(?:(?:^| )-[sg] (?:{_ENGINE_OPTION}(?:=\S+)?|{_PROPERTIES}(?: --cver=4\.7)?))+",
    "export": rf"(?:(?:^| ){_VARIABLE}(?:=\S+)?)+",
    "fagenrules": "--load",
    "fapolicyd-cli": rf"--update|--file add (?:{_SHARED}|/usr/lib(?:64)?/python3\.12/site-packages)/",
    "firewall-cmd": rf"--reload|--permanent --add-(?:service={_SERVICE}"
    rf"|rich-rule=rule.* name={_SERVICE} accept)",
    "git": rf"status|clone https://\S+|tag v{re.escape(_SETUP['metadata']['version'])}",
    "install": rf"(?:-D )?-m \d{{3}}(?: -o root)?(?: -g {_GROUP})? {_SOURCE} (?:/etc/\S+|east\.toml)",
    "journalctl": rf"-u {_UNIT}",
    "ln": r"-s /usr/share/ovirt-placement/ui-plugin/\* /usr/share/ovirt-engine/ui-plugins/",
    "make": rf"{_TARGET}(?: {_MAKE_VARIABLE}=\S+)*",
    "pip": _PIP,
    "python3.12": rf"-m (?:venv \.venv|pip (?:{_PIP}))",
    "read": rf"-rs {_VARIABLE}",
    "systemctl": "daemon-reload|(?:(?:enable|disable) --now|(?:try-re|re)?start|stop|edit|status)"
    rf"(?: {_UNIT})+",
    "systemd-analyze": rf"security(?: {_UNIT})*",
    "systemd-sysusers": "",
    "tar": r"-C / -(?:xzpf|czf) /root/\S+\.tar\.gz"
    r"(?: (?:root/\S+\.backup|etc/ovirt-[\w-]+|usr/share/ovirt-scheduler-proxy/plugins))*",
}


def follows_rule(program: str, words: list[str]) -> bool:
    return re.fullmatch(RULES[program], " ".join(words)) is not None


PROGRAMS = {*PARSERS, *RULES}


def unprefixed(line: str) -> str:
    return line.removeprefix(".venv/bin/")


def lines_of(page: Path) -> Iterator[Line]:
    for block in blocks(page):
        yield from (Line(page, unprefixed(line)) for line in typed(block, PROGRAMS))
    yield from (line for line in inline(page) if first_word(line.text) in RULES and " " in line.text)


def check(line: Line) -> None:
    """Raise `AssertionError` at a command without a rule, or against it."""
    for program, *words in simple_commands(line.text):
        if program not in PARSERS:
            assert program in RULES, f"{line}: {program} has no rule here"
            assert follows_rule(program, words), line


def test_every_command_of_a_page_follows_its_rule() -> None:
    for page in PAGES:
        for line in lines_of(page):
            check(line)


def test_no_block_hides_what_is_typed() -> None:
    """What is not typed begins with no program: a page says of each block whether it is for a shell."""
    for block in (block for page in PAGES for block in blocks(page)):
        if block.language == "console":
            assert typed(block, PROGRAMS), block
        elif block.language == "" and not typed(block, PROGRAMS):
            hidden = [one for one in block.lines if first_word(one) in PROGRAMS or is_a_program(one)]
            assert hidden == [], block


def is_a_program(line: str) -> bool:
    word = first_word(line)
    return word.islower() and " -" in line and shutil.which(word) is not None


def test_every_rule_is_needed() -> None:
    shown = {first_word(one.text) for page in PAGES for one in lines_of(page)}
    later = {program for page in PAGES for one in lines_of(page) for program, *_ in simple_commands(one.text)}
    assert RULES.keys() - shown - later == set()


@pytest.mark.parametrize(
    "wrong",
    [
        "systemctl enable --now ovirt-placement-inventroy",
        "make tset",
        "python3.12 -m pip install '.[postgres]'",
        "engine-config -s ExternalScheduler=true",
        "install -m 600 -g ovirt packaging/ovirt-placement.toml /etc/ovirt-placement/ovirt-placement.toml",
        "true && wget http://example.com",
    ],
)
def test_what_is_wrong_is_noticed(wrong: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        check(Line(tmp_path, wrong))


def test_a_console_block_needs_a_prompt(tmp_path: Path) -> None:
    assert typed(Block(tmp_path, "console", ("# make demo", "out")), PROGRAMS) == ("make demo",)
    assert typed(Block(tmp_path, "", ("make demo", "make test")), PROGRAMS) == ("make demo", "make test")
    assert typed(Block(tmp_path, "", ("cluster blue: 1 migration",)), PROGRAMS) == ()
