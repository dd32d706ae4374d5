"""The levels of a VM from the weakest to the strongest, and what becomes of the keys that stand on each."""

from __future__ import annotations

from enum import StrEnum

from ovirt_placement.answers.keys.key import KeyRecord, key_record
from ovirt_placement.answers.keys.sentences import code_sentence
from ovirt_placement.model import PlacementKey, Snapshot, Vm
from ovirt_placement.model.key_levels import strength
from ovirt_placement.model.key_resources import resource_name
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record
from ovirt_placement.rules.placement_keys.hierarchy import keys_by_resource, keys_of, resources
from ovirt_placement.rules.placement_keys.placing import compiled_keys


class KeyState(StrEnum):
    IN_FORCE = "in force"
    OVERRIDDEN = "overridden"
    IGNORED = "ignored"


class KeyOfLevel(Record, frozen=True, omit_defaults=False):
    """A key, and what becomes of it; `by` is the key that overrides it, `because` why it is ignored."""

    key: KeyRecord
    state: KeyState
    by: KeyRecord | None
    because: str
    #: Whether somebody has set it; else a property of the VM has it, or it is the copy of a sticky key.
    is_set: bool


class KeyLevel(Record, frozen=True, omit_defaults=False):
    """What stands on a level for a VM, and the keys that are set there."""

    level: str
    resource: Named
    keys: tuple[KeyOfLevel, ...]


def key_levels(snapshot: Snapshot, vm: Vm) -> tuple[KeyLevel, ...]:
    """All levels on which something stands for this VM, the weakest first; a later one wins."""
    states = _states(snapshot, vm)
    # Copies of sticky keys stand where nobody sets keys.
    every = [*resources(snapshot, vm), *((key.level, key.resource) for key in keys_of(snapshot, vm))]
    places = sorted(dict.fromkeys(every), key=lambda place: strength(place[0]) or 0)
    return tuple(
        KeyLevel(
            level,
            Named(resource, resource_name(level, resource, snapshot)),
            tuple(of for key, of in states if (key.level, key.resource) == (level, resource)),
        )
        for level, resource in places
    )


def _states(snapshot: Snapshot, vm: Vm) -> list[tuple[PlacementKey, KeyOfLevel]]:
    compiled, stored = compiled_keys(snapshot, vm.id), keys_by_resource(snapshot)

    def of(
        key: PlacementKey, state: KeyState, by: KeyRecord | None = None, because: str = ""
    ) -> tuple[PlacementKey, KeyOfLevel]:
        is_set = key in stored.get((key.level, key.resource), ())
        return key, KeyOfLevel(key_record(key, snapshot), state, by, because, is_set)

    found = []
    for one in (*compiled.system.values(), *compiled.customer.values()):
        wins = key_record(one.source, snapshot)
        found.append(of(one.source, KeyState.IN_FORCE))
        found += [of(key, KeyState.OVERRIDDEN, wins) for key in one.hidden]
    for mistaken in compiled.ignored:
        found.append(
            of(mistaken.key, KeyState.IGNORED, because="; ".join(map(code_sentence, mistaken.codes)))
        )
    return found
