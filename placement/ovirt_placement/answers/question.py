"""What a question is: one function, from whose parameters commands, API, schema and Ansible modules are made.

A file of this package that has functions with `@question` is found by itself: nothing else names them. So is
one of another package that is handed to `questions`, as the enforcer's and the page's.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, auto
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, get_type_hints

from ovirt_placement import answers
from ovirt_placement.answers import summaries
from ovirt_placement.answers.document import Document, Shown, Table, find
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Snapshot
from ovirt_placement.model.record import Record

if TYPE_CHECKING:
    from ovirt_placement.config import Config
    from ovirt_placement.forecast import Condition
    from ovirt_placement.planning.problem.build_problem import Repair

_Function = TypeVar("_Function", bound=Callable[..., Record])


class Reads(Enum):
    """What the first parameter of a question is."""

    #: A `Snapshot`, as it is known.
    STATE = auto()
    #: One with the affinity groups of this moment.
    GROUPS = auto()
    #: An `AuthoredState`, with the placement keys that the store has at this moment.
    KEYS = auto()
    #: An `AuthoredState`, with the placement rules that the store has at this moment.
    RULES = auto()
    #: A `ConfiguredState`.
    CONFIGURED = auto()
    #: A `HealthState`: also what configuration, store and proxy of this machine say.
    HEALTH = auto()
    #: The configuration alone: it looks by itself.
    CONFIGURATION = auto()
    #: What the distribution that declares the question gives it.
    OWN = auto()


class ConfiguredState(NamedTuple):
    """A state, and the configuration, which is read where it is asked for."""

    snapshot: Snapshot
    config: Callable[[], Config]
    #: Whether it is an engine's, which has events; else a state file's.
    live: bool = True


class AuthoredState(NamedTuple):
    """A state with its placement keys or rules."""

    snapshot: Snapshot
    #: Who set each key by its place, or changed each rule by its name, where the store knows.
    authors: Mapping[Any, Any]


class Names(NamedTuple):
    """What a word may name."""

    kind: str
    #: What there is, in a state and for the parameters before this one.
    known: Callable[[Snapshot, Mapping[str, Any]], Iterable[Any]]
    #: Whether an error says where those are that share a name.
    placed: bool = False
    #: Whether a word has several names, with commas between them: then it is a tuple, each once.
    many: bool = False

    def find(self, word: str, snapshot: Snapshot, found: Mapping[str, Any]) -> Any:
        """What a word names. Raises `UserError` as `find`."""
        known, where = tuple(self.known(snapshot, found)), snapshot if self.placed else None
        if not self.many:
            return find(word, self.kind, known, where)
        named = (find(one.strip(), self.kind, known, where) for one in word.split(","))
        return tuple({one.id: one for one in named}.values())


@dataclass(frozen=True)
class Parameter:
    """How people give a parameter of a question; its type and default stand with the function.

    A parameter of type `bool` is a flag, `int` a whole number from 1 on, a tuple takes several words.
    """

    help: str | None = None
    metavar: str | tuple[str, ...] | None = None
    #: What a word of it names; else the word itself is meant.
    names: Names | None = None
    _: KW_ONLY
    #: Whether all that could be named are meant where nothing is, and else a tuple of the one.
    every: bool = False
    #: Whether it stands without an option.
    positional: bool = False
    option: str | None = None
    #: Options with the same word here exclude each other.
    one_of: str | None = None
    #: The option of all questions that gives it, where it has none of its own.
    common: str | None = None
    #: What a flag stands for.
    given: Any = None
    #: Of the argument of a command: how a word is read (`ValueError` says what is wrong), how many there are,
    #: and how often.
    argument: Mapping[str, Any] = field(default_factory=dict)

    def value(self, word: Any, hint: Any, snapshot: Snapshot | None, found: Mapping[str, Any]) -> Any:
        """What is meant. Raises `UserError`."""
        if self.given is not None:
            return self.given if word else None
        if self.names is None or snapshot is None:
            return word
        if word is None:
            return tuple(self.names.known(snapshot, found)) if self.every else None
        one = self.names.find(word, snapshot, found)
        if self.names.many:
            return one
        return (one,) if self.every else one.id if str in getattr(hint, "__args__", ()) else one


Text = Callable[[Any, Shown], Iterable["str | Table"]]


class Route(NamedTuple):
    """An address of the API, whose `{name}` names what is asked about."""

    path: str
    #: Its line in lists, if not the question's.
    summary: str = ""
    names: Names | None = None
    #: The kind of its answer, where the question has several.
    answer: type[Document] | None = None
    #: Parameters that its query has; else those that name something.
    keys: tuple[str, ...] | None = None
    #: Those of them without which there is no answer.
    required: tuple[str, ...] = ()
    #: What other parameters are there.
    fixed: Mapping[str, Any] = {}
    #: Whether it takes seconds of the process that answers.
    dear: bool = False


@dataclass
class Question:
    """All that is known of a question; as a decorator, it makes a function one that is asked."""

    #: Its command.
    name: str
    #: Its line in lists.
    summary: str
    description: str = ""
    _: KW_ONLY
    text: Text = lambda _, __: ()
    examples: str = ""
    #: The exit status of a command.
    status: Callable[[Any, Shown], int] = lambda _, __: 0
    #: Those with which it is answered.
    statuses: tuple[int, ...] = (0, 1)
    #: Options of its command alone: what is read, and the exit status.
    options: Mapping[str, Parameter] = field(default_factory=dict)
    reads: Reads = Reads.STATE
    #: What of the hosts' and VMs' load it needs, or how that follows from the words of the command.
    measured: Measured | Callable[[Mapping[str, Any]], Measured] = Measured.FOR_RESERVATION
    routes: tuple[Route, ...] = ()
    #: What a task of Ansible asks by it; None where there is no module for it.
    ansible: str | None = None
    #: The command, if it is not one of `ovirt-placement`.
    command: str = "ovirt-placement"
    ask: Callable[..., Record] = field(init=False)

    def __call__(self, function: _Function) -> _Function:
        self.ask = function
        _KNOWN[self.name] = self
        return function

    def needs(self, words: Mapping[str, Any]) -> Measured:
        """What of the hosts' and VMs' load it needs for these words."""
        return self.measured if isinstance(self.measured, Measured) else self.measured(words)

    @property
    def parameters(self) -> dict[str, tuple[Parameter, Any, Any]]:
        """Each with its type and its default."""
        hints = get_type_hints(self.ask, include_extras=True)
        defaults = inspect.signature(self.ask).parameters
        found = {name: getattr(hint, "__metadata__", ()) for name, hint in hints.items()}
        return {
            name: (extras[0], hints[name].__origin__, defaults[name].default)
            for name, extras in found.items()
            if extras and isinstance(extras[0], Parameter)
        }

    def arguments(self, words: Mapping[str, Any], snapshot: Snapshot | None) -> dict[str, Any]:
        """The arguments of the function, by words that people gave. Raises `UserError`."""
        found: dict[str, Any] = {}
        for name, (parameter, hint, _) in self.parameters.items():
            found[name] = parameter.value(words.get(parameter.common or name), hint, snapshot, found)
        return {name: value for name, value in found.items() if value is not None}


_KNOWN: dict[str, Question] = {}


#: Stands above the function of each question.
question = Question


def question_named(name: str, package: ModuleType = answers) -> Question:
    import_module(summaries(package)[name][1])
    return _KNOWN[name]


def questions(*packages: ModuleType) -> tuple[Question, ...]:
    """All of this package, and of others that declare some, by their names."""
    return tuple(
        question_named(name, package)
        for package in (answers, *packages)
        for name in sorted(summaries(package))
    )


CLUSTERS = Names("cluster", lambda snapshot, _: snapshot.clusters)
VMS = Names("VM", lambda snapshot, _: snapshot.vms, placed=True)
HOSTS = Names("host", lambda snapshot, _: snapshot.hosts)
SOME_HOSTS = HOSTS._replace(many=True)
GROUPS = Names("affinity group", lambda snapshot, _: snapshot.affinity_groups, placed=True)

#: The clusters that are asked about.
SOME_CLUSTERS = Parameter(
    "only this cluster, by name or id; else all", "CLUSTER", CLUSTERS, every=True, option="--cluster"
)
THE_VM = Parameter("by name or id", "VM", VMS, positional=True)


# -- What a preview of a change is asked with; what reads it takes long to load: not for `--help`.
def conditions_parameter(what: str) -> Parameter:
    """Of conditions by which a preview fails; `what` says what comes of that."""
    return Parameter(
        f"{what}: violated, conflicts, unplaced, moves, staying, failures",
        "violated,moves>5,failures<1",
        argument={"type": _conditions, "default": ()},
    )


def _conditions(text: str) -> tuple[Condition, ...]:
    from ovirt_placement.forecast import conditions_of

    return conditions_of(text)


def _repair(text: str) -> frozenset[Repair]:
    from ovirt_placement.planning.problem.build_problem import Repair

    try:
        return frozenset(Repair(word.strip()) for word in text.split(","))
    except ValueError:
        raise ValueError(f'"{text}" is neither hard nor soft nor hard,soft') from None


REPAIR = Parameter(
    "the rules whose repair is counted; else hard", "hard,soft", argument={"type": _repair, "default": "hard"}
)
