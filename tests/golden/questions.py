"""Questions about state files, on an engine and to the page; commands answer them in this process.

Each state is asked what it costs little to ask; every fourth question is asked for
JSON, so that the records hold each command's document with many kinds of answers.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from contextlib import chdir, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

from ovirt_enforcer.cli.main import main as enforcer
from ovirt_placement.cli.main import main as placement
from ovirt_placement.model import Snapshot, state_file
from ovirt_simulator.core.backend import PROMPT
from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.server import serve
from tests.builders import APART, SOFT_TOGETHER, cluster, group, host, snapshot, vm
from tests.configuration import write_configuration
from tests.golden.recorded import Answer
from tests.paths import CHECKOUT, DATA
from tests.plugins.proxy_process import proxy_url
from tests.web.running import paged

MAIN = {"ovirt-enforcer": enforcer, "ovirt-placement": placement}
#: States by the names that questions give them.
STATES: dict[str, Path] = {
    "first-look": CHECKOUT / "docs" / "first-look.json",
    **{file.stem: file for file in sorted((DATA / "cases").glob("*.json"))},
    **{file.parent.name: file for file in sorted((CHECKOUT / "tests" / "scenarios").glob("*/state.json"))},
}
#: Asked of every state.
_EACH = (
    "ovirt-placement violations",
    "ovirt-placement why VM",
    "ovirt-placement where VM",
    "ovirt-placement ha-check",
    "ovirt-enforcer plan",
)
#: Asked of every second state.
_IN_TURN = (
    "ovirt-placement status",
    "ovirt-placement conflicts",
    "ovirt-placement groups list",
    "ovirt-placement what-if --maintenance HOST",
    "ovirt-placement what-if --down HOST",
    "ovirt-placement why VM HOST",
    "ovirt-placement rules list",
    "ovirt-placement keys list",
    "ovirt-placement keys explain VM",
    "ovirt-placement keys show VM",
    "ovirt-placement ha-check --steps 2",
    "ovirt-enforcer status",
    "ovirt-enforcer make-room VM",
    "ovirt-enforcer maintenance plan HOST",
    "ovirt-enforcer simulate-policy",
    "ovirt-enforcer plan --repair soft",
)
#: All of them, with VM and HOST in place of names.
QUESTIONS = (*_EACH, *_IN_TURN)


def lines(name: str) -> Iterator[str]:
    """The questions asked of a state: command lines, but for the state."""
    number = crc32(name.encode())  # of a new state nothing hangs on where it stands in the list
    state = state_file.loads(STATES[name].read_bytes())
    for place, line in enumerate(QUESTIONS):
        if place < len(_EACH) or (place + number) % 2 == 0:
            yield _named(line, state, number) + (" --json" if (place + number // 2) % 4 == 0 else "")


def _named(line: str, state: Snapshot, number: int) -> str:
    """A question with names of the state in it."""
    names = {"VM": [vm.name for vm in state.vms], "HOST": [host.name for host in state.hosts]}
    return " ".join(names[one][number % len(names[one])] if one in names else one for one in line.split())


def ask(line: str, *more: str) -> Answer:
    """Run a command line in this process."""
    command, *words = line.split()
    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            status = MAIN[command]([*words, *more])
        except SystemExit as end:  # argparse ends the process
            status = int(end.code or 0)
    return Answer(line, status, printed.buffer.getvalue().decode())  # type: ignore[attr-defined]


def ask_about(line: str, name: str) -> Answer:
    """The same about a state."""
    return ask(line, "--state", str(STATES[name]))


def answers(name: str) -> Iterator[tuple[str, Answer]]:
    """The answers about a state, each with the name of the file that it stands in."""
    for line in lines(name):
        found = ask_about(line, name)
        command, action = line.split()[:2]
        yield (
            action if command == "ovirt-placement" else f"enforcer-{action}",
            found._replace(question=f"{line} --state {name}"),
        )


# -- A story on a simulated engine: commands that change something, and that need an engine or a store.
STATE = snapshot(
    cluster("c1", name="blue", ha_reservation=True),
    cluster("c2", name="red"),
    *(host(f"h{number}", cluster="c1", name=f"node{number}", tags=("rack-1",)) for number in (1, 2)),
    host("h3", cluster="c1", name="node3", tags=("rack-2",)),
    host("h4", cluster="c2", name="node4"),
    vm("a", "h1", cluster="c1", name="db-1", ha=True, tags=("db",)),
    vm("b", "h1", cluster="c1", name="db-2", ha=True, tags=("db",)),
    vm("w", "h2", cluster="c1", name="web-1"),
    vm("x", cluster="c1", name="web-2"),
    vm("big", cluster="c1", name="large", needs_mb=60000),
    vm("r", "h4", cluster="c2", name="red-1"),
    group("g1", APART, "a b", cluster="c1", name="databases"),
    group("g2", SOFT_TOGETHER, "w x", cluster="c1", name="webs"),
)
#: What files hold that lines name.
FILES = {
    "groups.yaml": "groups:\n- {name: more, cluster: blue, vms: [web-1, large], vms_rule: negative}\n",
    "rules.yaml": (
        "rules:\n- {name: spread, kind: spread, cluster: blue, vms: [db-1, db-2], max_skew: 1,"
        " domain_tags: [rack-]}\n"
    ),
    "keys.yaml": "keys:\n- {level: server, resource: db-1, class: system, name: A, value: 1, weight: 3}\n",
}
#: The story; `+` asks for JSON as well.
LINES = """
+ovirt-placement doctor
+ovirt-placement status
+ovirt-placement violations
+ovirt-placement groups list
ovirt-placement groups list --violated
ovirt-placement groups add apart --cluster blue --vms-rule negative --vm web-1 --vm large --what-if
ovirt-placement groups add apart --cluster blue --vms-rule negative --vm web-1 --vm large --dry-run
+ovirt-placement groups add apart --cluster blue --vms-rule negative --vm web-1 --vm large
ovirt-placement groups add apart --cluster blue --vms-rule negative --vm web-1 --vm db-1
ovirt-placement groups add clash --cluster blue --vms-rule negative --vm web-1 --vm web-2
ovirt-placement groups add unknown --cluster blue --vm nobody
+ovirt-placement groups edit apart --add-vm db-1 --hosts-rule positive --add-host node2
ovirt-placement groups edit apart --name parted --remove-vm db-1 --what-if
+ovirt-placement groups remove apart
ovirt-placement groups export
ovirt-placement groups import groups.yaml --dry-run
ovirt-placement groups apply groups.yaml --dry-run
+ovirt-placement groups lost
+ovirt-placement rules list
ovirt-placement rules check rules.yaml
ovirt-placement rules add pair --kind separate --cluster blue --vms db-1 --other-vms web-1 --what-if
+ovirt-placement rules add racks --kind spread --cluster blue --vms db-1 db-2 --domain-tags rack- --max-skew 1
ovirt-placement rules add racks --kind spread --cluster blue --vms db-1 db-2
ovirt-placement rules add bad --kind unheard-of --cluster blue --vms db-1
+ovirt-placement rules show racks
ovirt-placement rules edit racks --hard
ovirt-placement rules export
ovirt-placement rules remove racks
ovirt-placement rules apply rules.yaml --dry-run
+ovirt-placement keys list
+ovirt-placement keys define RACK --cluster blue --values node1=1 node2=2 --default 0
ovirt-placement keys set RACK 1 10 --on vm db-1 --dry-run
+ovirt-placement keys set RACK 1 10 --on vm db-1
ovirt-placement keys set RACK 1 1000 --on vm db-1
ovirt-placement keys set RACK 2 3 --on customer acme
ovirt-placement keys check
+ovirt-placement keys show db-1
+ovirt-placement keys explain db-1
ovirt-placement keys export
ovirt-placement keys import keys.yaml --dry-run
ovirt-placement keys unset RACK --on vm db-1
ovirt-placement keys prune
ovirt-placement setup --dry-run
+ovirt-placement setup
+ovirt-placement setup --cluster blue
ovirt-placement setup --all-policies --dry-run
ovirt-placement setup --undo --dry-run
ovirt-placement setup --undo
ovirt-placement why db-1
ovirt-placement why db-1 --last
ovirt-placement why nobody
ovirt-placement where web-2
+ovirt-placement conflicts
+ovirt-placement ha-check
ovirt-placement ha-check --failures 2
ovirt-placement ha-check --hosts node1,node2
ovirt-placement what-if --add-host node1 --down node2
ovirt-placement what-if --vm db-1 3
+ovirt-placement snapshot
+ovirt-enforcer status
+ovirt-enforcer plan
ovirt-enforcer plan --cluster red
ovirt-enforcer make-room large
ovirt-enforcer maintenance plan --cluster blue
ovirt-enforcer maintenance plan node1 --return
ovirt-enforcer maintenance run node1 --work nothing --dry-run
+ovirt-enforcer maintenance status
ovirt-enforcer maintenance pause
+ovirt-enforcer simulate-policy
+ovirt-enforcer pause --cluster blue --reason tests
ovirt-enforcer pause --cluster red --hours 1.5
ovirt-enforcer pause --reason storage
ovirt-enforcer pause --cluster rde
+ovirt-enforcer pause --list
ovirt-enforcer status --cluster blue
ovirt-enforcer resume --cluster blue --dry-run
ovirt-enforcer resume --cluster blue
+ovirt-enforcer resume
ovirt-enforcer resume --cluster c2
ovirt-enforcer resume --cluster red --dry-run
+ovirt-enforcer approve --list
ovirt-enforcer approve 3f2a
ovirt-enforcer refuse 3f2a
ovirt-enforcer undo 3f2a
ovirt-enforcer apply groups.yaml --yes
+ovirt-enforcer history
ovirt-enforcer history --who
ovirt-enforcer history --plans
ovirt-enforcer history --trend
+ovirt-enforcer why-not db-1
ovirt-placement store backup copy
ovirt-placement store restore copy --dry-run
ovirt-placement store init --dry-run
ovirt-placement groups
ovirt-placement nonsense
ovirt-enforcer plan --strategy wrong
"""


def answers_on_engine(folder: Path) -> Iterator[tuple[str, Answer]]:
    """The story's answers, each with the name of the file that it stands in."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    with _engine(folder) as config:
        for line in LINES.split("\n")[1:-1]:
            command, action = line.lstrip("+").split()[:2]
            words = line.lstrip("+")
            name = f"engine-{action}" if command == "ovirt-placement" else f"engine-enforcer-{action}"
            yield name, ask(words, "--config", config)
            if line.startswith("+"):
                yield name, ask(f"{words} --json", "--config", config)


@contextmanager
def _engine(folder: Path) -> Iterator[str]:
    """An engine with the story's state, in the folder of the story's files."""
    with proxy_url(os.environ) as proxy:
        engine = Engine.from_snapshot(STATE, clock=datetime.now(UTC), seed=1, settings=PROMPT, proxy=proxy)
        with closing(serve(engine)) as server, chdir(folder):
            yield str(write_configuration(folder, server.api_url))


# -- The page's views and the answers of its API, of the state that most tests of the page ask.
#: Views, and below `/api/v1` documents, with what is wrong in them too.
VIEWS = (
    *("/", "/summary", "/cluster/c1", "/cluster/c2", "/cluster/none", "/map/c1", "/map/c1/table", "/ha"),
    *("/ha/c1", "/ha/c1?host=h1", "/vm/db-1", "/vm/too-large", "/vm/nobody", "/vm/too-large/room"),
    *("/host/alpha", "/vm/db-1/keys", "/plan/c1", "/plan/c1/now", "/plan/c1/undo", "/maintenance/c1"),
    *("/maintenance/c1?hosts=alpha", "/group/g1", "/group/g1/edit", "/cluster/c1/new-group"),
    *("/cluster/c1/rule", "/history", "/keys", "/keys/set", "/keys/hosts", "/doctor", "/search?q=db"),
    *("/search?q=%20", "/portal", "/history?unknown=1", "/unheard-of", "/api/v1/status"),
    *("/api/v1/violations", "/api/v1/violations?cluster=c2", "/api/v1/conflicts", "/api/v1/groups"),
    *("/api/v1/ha-check", "/api/v1/ha-check?cluster=c1", "/api/v1/vms/db-1/why"),
    *("/api/v1/ha-check?cluster=c1&hosts=alpha,beta", "/api/v1/vms/too-large/why"),
    *("/api/v1/vms/db-1/where", "/api/v1/vms/db-1/keys", "/api/v1/hosts/alpha/keys"),
    *("/api/v1/clusters/c1/map", "/api/v1/keys", "/api/v1/clusters/c1/map/changes", "/api/v1/doctor"),
    *("/api/v1/vms/nobody/why", "/api/v1/openapi.json"),
)
_CSRF = re.compile(r'(name="(?:csrf|was)" value=")[^"]*')


def answers_of_page(folder: Path, state: Snapshot) -> Iterator[tuple[str, Answer]]:
    """What each view answers, with the name of the file that it stands in."""
    with paged(folder, state) as page:
        cookie = page.session()
        for path in VIEWS:
            found = page.ask(path, cookie=cookie)
            name = "page-api" if path.startswith("/api/") else "page"
            yield name, Answer(path, found.status, _CSRF.sub(r"\1SECRET", found.text))
        for path in ("/", "/api/v1/status", "/log-in"):
            found = page.ask(path)
            yield "page", Answer(f"{path} without a session", found.status, found.text)
