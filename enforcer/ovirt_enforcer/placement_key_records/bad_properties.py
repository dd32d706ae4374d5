"""Says once of each VM's own placement keys what of them is ignored: a bad property must stop no start."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from ovirt_placement.answers.keys.sentences import code_sentence
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import vm_name
from ovirt_placement.rules.placement_keys.keys import Code, ignored_because
from ovirt_placement.rules.placement_keys.property import NAME, is_readable, property_keys

_log = logging.getLogger(__name__)


class BadProperties:
    """Remembers what it has looked at."""

    def __init__(self) -> None:
        self._seen: frozenset[tuple[str, str]] = frozenset()

    def look(self, snapshot: Snapshot) -> None:
        """Log what is new since the last look."""
        texts = ((vm.id, vm.custom_properties.get(NAME, "")) for vm in snapshot.vms)
        present = frozenset((vm, text) for vm, text in texts if text)
        for vm, _ in sorted(present - self._seen):
            for complaint in _complaints(snapshot.vm_by_id[vm]):
                _log.warning("VM %s: custom property %s%s", vm_name(vm, snapshot), NAME, complaint)
        self._seen = present


def _complaints(vm: Vm) -> Iterator[str]:
    text = vm.custom_properties[NAME]
    if not is_readable(text):
        yield f" is ignored: {text!r} is not of the form NAME:VALUE:WEIGHT,..."
    for key in property_keys(vm):
        # One without a weight is no placement key, which is no mistake.
        codes = [code for code in ignored_because(key) if code is not Code.WEIGHT_ZERO]
        if codes:
            yield f": key {key.name} is ignored: {'; '.join(map(code_sentence, codes))}"
