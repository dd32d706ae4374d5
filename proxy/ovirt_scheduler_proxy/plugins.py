"""The units of all plugin folders, what is wrong with them, and their pools, which follow the files."""

import asyncio
import logging
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ovirt_scheduler_proxy.pool import Pool, start_zygote
from ovirt_scheduler_proxy.settings import PluginFolder, Settings
from ovirt_scheduler_proxy.worker import kernel
from ovirt_scheduler_proxy.worker.contract import UnitKind, escaped, one_line
from ovirt_service.errors import UserError

log = logging.getLogger(__name__)


class ProblemFound(msgspec.Struct, frozen=True):
    """What is wrong with a plugin, or with what the configuration says of units."""

    #: Empty: it is in the configuration.
    file: str
    #: Empty: it is not of one unit.
    unit: str
    #: As a sentence.
    problem: str

    def __str__(self) -> str:
        if not self.file:
            return self.problem
        subject = f"{one_line(self.unit)}: " if self.unit else ""
        return f"{self.file}: {subject}{self.problem}"


class CheckedUnit(msgspec.Struct, frozen=True):
    """A policy unit that a plugin offers."""

    unit: str
    #: `filter`, `score` or `balance`.
    kind: str
    file: str
    #: Its parameters with the patterns of their values, as the engine gets them.
    parameters: str
    description: str

    @property
    def folder(self) -> str:
        return os.path.dirname(self.file)

    @property
    def module(self) -> str:
        return Path(self.file).stem


class ProxyCheck(msgspec.Struct, frozen=True):
    """The policy units of all plugin folders, and what is wrong."""

    units: tuple[CheckedUnit, ...]
    problems: tuple[ProblemFound, ...]
    #: What only the engine can judge.
    unchecked: tuple[ProblemFound, ...]


_ESCAPE = r"\\(?:[^0-9A-Za-z]|[tnrf]|x[0-9A-Fa-f]{2}|u(?![dD][89a-fA-F])[0-9A-Fa-f]{4})"
_MEMBER = rf"(?:[^\\\[\]&~|^-]|\|(?!\|)|{_ESCAPE})"
_MEMBERS = rf"(?:{_MEMBER}(?:-{_MEMBER})?|\\[dDsSwW](?!-[^\]]))+"
_CLASS = rf"\[\^?(?:-?{_MEMBERS}-?|-)\]"

#: What Java and Python have in common: what can be repeated, where nothing is yet, places, and repetitions.
_TOKEN = re.compile(
    rf"(?P<atom>[^\\^$|?*+()\[{{]|{_ESCAPE}|\\[dDsSwW]|{_CLASS}|\))"
    r"|(?P<start>\||\((?:\?[:=!]|(?!\?)))"
    r"|(?P<place>[\^$]|\\[bB])"
    r"|(?P<repeat>(?:[?*+]|\{[0-9]{1,4}(?:,[0-9]{0,4})?\})[?+]?)"
)
_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")

#: Deeper nesting is not judged: Python's parser recurses.
_MOST_GROUPS = 100
#: Of what is not judged, this much is shown.
_SHOWN = 12

_NO_COUNT = "a { that begins no repetition, as {2,3} does; a plain one is \\{"


def regex_problem(regex: str) -> str:
    """Why Java surely does not compile the expression; empty if it does, or that is not known."""
    if rest := unchecked_rest(regex):
        return _NO_COUNT if rest[0] == "{" and _COUNT.match(rest) is None else ""
    try:
        re.compile(regex)
    except re.error as error:
        return str(error)
    return ""


def unchecked_rest(regex: str) -> str:
    """From where what is not judged begins; empty if the expression is judged whole."""
    if regex.count("(") > _MOST_GROUPS:
        return regex
    at, before = 0, "start"
    while at < len(regex):
        found = _TOKEN.match(regex, at)
        if found is None:
            return regex[at:]
        # Java also repeats places, and repetitions by a count.
        if found.lastgroup == "repeat" and (before == "place" or (before != "atom" and found[0][0] == "{")):
            return regex[at:]
        at, before = found.end(), str(found.lastgroup)
    return ""


#: Of what is wrong, this much is reported.
_LONGEST = 200

_KEY = re.compile(r"[a-z_A-Z0-9]+")


def property_problems(properties: str) -> list[str]:
    """What the engine would refuse, as sentences; none if there are no errors, or no properties."""
    found = []
    seen: set[str] = set()
    for part in properties.removesuffix(";").split(";") if properties else ():
        key, equals, regex = part.partition("=")
        if not equals:
            found.append(f"{_shown(part)} is not of the form key=regex (no regex may hold a ';')")
        elif not _KEY.fullmatch(key):
            found.append(f"the key {_shown(key)} may hold letters, digits and _ only, and no spaces")
        elif key in seen:
            found.append(f"the key {_shown(key)} stands there twice")
        elif refused := regex_problem(regex):
            found.append(f"Java does not compile {_shown(regex)} of {one_line(key, 100)}: {refused}")
        seen.add(key)
    if escaped(properties) != properties:
        found.append(f"{_shown(properties)} holds characters that cannot be shown")
    return [f"properties_validation: {one}" for one in found]


def unchecked_properties(properties: str) -> Iterator[str]:
    """Expressions of which Java alone knows whether it compiles them, as sentences."""
    for key, _, regex in (part.partition("=") for part in properties.split(";")):
        if rest := unchecked_rest(regex):
            of = f"properties_validation: {_shown(regex)} of {one_line(key, 100)}"
            yield f"{of}: not checked whether Java compiles it, from {_shown(rest[:_SHOWN])} on"


def _shown(text: str) -> str:
    return one_line(repr(text), _LONGEST)


@dataclass(frozen=True)
class Plugins:
    """What can be asked at one moment, what is wrong with it, and the pool of each folder: replaced whole."""

    units: tuple[CheckedUnit, ...]
    problems: tuple[ProblemFound, ...]
    #: By the folder.
    pools: Mapping[str, Pool]

    def of_kind(self, kind: UnitKind) -> Mapping[str, CheckedUnit]:
        """The units of a kind by name."""
        return {unit.unit: unit for unit in self.units if unit.kind == kind.value}


#: The engine's table of policy units holds no longer names.
_LONGEST_NAME = 128


def combine(pools: Sequence[Pool]) -> Plugins:
    """What the pools offer together, the first unit of a name winning; what is wrong goes to the log too."""
    units: list[CheckedUnit] = []
    problems: list[ProblemFound] = []
    taken: dict[str, tuple[str, str]] = {}
    for pool in pools:
        for module in pool.modules:
            file = f"{pool.folder}/{module['module']}.py"
            if module["error"] is not None:
                problems.append(ProblemFound(file, "", f"cannot be loaded: {module['error']}"))
            for described in module["units"]:
                name = described["name"]
                if len(name) > _LONGEST_NAME or not name.isprintable() or not name.strip():
                    rule = f"{_LONGEST_NAME} characters, all of them printable and not all of them spaces"
                    text = f"the engine keeps no unit of this name: it may have {rule}"
                    problems.append(ProblemFound(file, name, text))
                    continue
                origin, first = taken.setdefault(name, (described["origin"], file))
                if first == file:
                    refused = property_problems(described["properties"])
                    # The engine drops a unit with such parameters, or ends its discovery.
                    offered = "" if refused else described["properties"]
                    units += [
                        CheckedUnit(name, kind, file, offered, description)
                        for kind, description in described["kinds"].items()
                    ]
                    found = (*described["problems"], *refused)
                    problems.extend(ProblemFound(file, name, sentence) for sentence in found)
                elif origin != described["origin"]:
                    taken_by = f"its name is taken by the unit in {first}, which is used"
                    problems.append(ProblemFound(file, name, taken_by))
    for problem in problems:
        log.error("%s", problem)
    return Plugins(tuple(units), tuple(problems), {pool.folder: pool for pool in pools})


async def start_pool(settings: Settings, folder: PluginFolder) -> Pool:
    """Load one folder and warm its workers up. Raises `UserError` when its interpreter cannot be run."""
    workers = settings.workers
    # Also when its processes are started again, where a link leads elsewhere by then.
    folder = msgspec.structs.replace(folder, directory=os.path.realpath(folder.directory))
    pool = Pool(folder, workers, await asyncio.to_thread(start_zygote, folder, workers))
    try:
        await asyncio.wait_for(pool.warm.wait(), workers.load_seconds)
    except TimeoutError:
        log.warning("the workers of %s are not ready yet; calls will wait for them", folder.directory)
    return pool


async def load_all(settings: Settings) -> Plugins:
    """Start every folder's pool. Raises `UserError`, after ending those that were started."""
    kernel.adopt_orphans()
    started = await asyncio.gather(
        *(start_pool(settings, folder) for folder in settings.plugins), return_exceptions=True
    )
    pools = [pool for pool in started if isinstance(pool, Pool)]
    failures = [failure for failure in started if isinstance(failure, BaseException)]
    if failures:
        for pool in pools:
            await pool.close()
        raise failures[0]
    return combine(pools)


#: What distinguishes one version of a folder's files from another.
Stamp = frozenset[tuple[str, int, int]]

#: Seconds that a replaced pool lives on beyond the deadline of the calls that may still use it.
_GRACE = 1.0


class Reloader:
    """Owns the plugins, which are replaced whole. Reloads happen one after the other."""

    def __init__(self, settings: Settings, plugins: Plugins) -> None:
        self._settings = settings
        self.plugins = plugins
        self._lock = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loaded = {folder.directory: stamp(folder.directory) for folder in settings.plugins}

    async def watch(self) -> None:
        """Reload the folders whose files have changed and are quiet: an editor may still be writing."""
        interval = self._settings.reload.watch_seconds
        seen = dict(self._loaded)
        while interval:
            await asyncio.sleep(interval)
            for folder in self._settings.plugins:
                name = folder.directory
                now = await asyncio.to_thread(stamp, name)
                if now != self._loaded[name] and now == seen[name]:
                    self._start(folder, now)
                seen[name] = now

    def reload_all(self) -> None:
        for folder in self._settings.plugins:
            self._start(folder, stamp(folder.directory))

    async def close(self) -> None:
        """End all pools, the replaced ones too."""
        for task in self._tasks:
            task.cancel()
        pools = [pool.close() for pool in self.plugins.pools.values()]
        await asyncio.gather(*self._tasks, *pools, return_exceptions=True)

    def _start(self, folder: PluginFolder, now: Stamp) -> None:
        self._loaded[folder.directory] = now
        task = asyncio.get_running_loop().create_task(self._reload(folder))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reload(self, folder: PluginFolder) -> None:
        async with self._lock:
            before = self.plugins
            # By its place: a link may lead elsewhere by now.
            old = [*before.pools.values()][self._settings.plugins.index(folder)]
            try:
                fresh = await start_pool(self._settings, folder)
            except UserError as error:
                log.error("%s; its plugins stay as they were", error)
                return
            if trouble := _trouble(old, fresh, before.pools):
                log.error("the plugins of %s stay as they were, for %s", old.folder, trouble)
                await fresh.close()
                return
            after = combine([fresh if pool is old else pool for pool in before.pools.values()])
            self.plugins = after
        log.info("reloaded the plugins of %s", fresh.folder)
        for sentence in engine_will_miss(before, after):
            log.warning("%s", sentence)
        try:  # the calls that began before may use the old workers until their deadline
            await asyncio.sleep(self._settings.calls.deadline_seconds + _GRACE)
        finally:
            await old.close()


def _trouble(old: Pool, fresh: Pool, folders: Collection[str]) -> str:
    """Why the fresh pool cannot take the old one's place in these folders; empty when it can."""
    if fresh.folder != old.folder and fresh.folder in folders:
        return f"a link leads to {fresh.folder} by now, which is another folder of plugins"
    worked = {module["module"] for module in old.modules if module["error"] is None}
    failed = [
        f"{module['module']}.py cannot be loaded: {module['error']}"
        for module in fresh.modules
        if module["error"] is not None and module["module"] in worked
    ]
    if failed:  # a half-written file must not cost a unit
        return "; ".join(failed)
    if any(module["units"] for module in old.modules) and not any(m["units"] for m in fresh.modules):
        return "the folder has no unit any more; a restart of the proxy would take that for its will"
    return "" if fresh.workers else "no worker of the new ones becomes ready"


def stamp(directory: str) -> Stamp:
    """The names, times and sizes of all Python files below a folder."""
    found = set()
    for place, folders, files in os.walk(directory):
        folders[:] = [folder for folder in folders if folder != "__pycache__" and not folder.startswith(".")]
        for path in (os.path.join(place, file) for file in files if file.endswith(".py")):
            with suppress(OSError):  # it was removed in this moment; the next look will agree
                status = os.stat(path)
                found.add((path, status.st_mtime_ns, status.st_size))
    return frozenset(found)


def engine_will_miss(before: Plugins, after: Plugins) -> list[str]:
    """What changed for the engine, which asks only when it starts: sentences for the log."""
    old, new = (
        {(unit.kind, unit.unit): (unit.description, unit.parameters) for unit in plugins.units}
        for plugins in (before, after)
    )
    what = {
        "is new: the engine will not offer it before it is restarted": new.keys() - old.keys(),
        "is gone: the engine will go on asking for it until it is restarted": old.keys() - new.keys(),
        "has another description or other properties: the engine will not notice before it is restarted": {
            unit for unit in old.keys() & new.keys() if old[unit] != new[unit]
        },
    }
    return [f"{kind} {name} {change}" for change, units in what.items() for kind, name in sorted(units)]
