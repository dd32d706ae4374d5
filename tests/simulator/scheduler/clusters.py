"""Draws small states of up to two clusters, with all that the engine's own enforcement looks at."""

from __future__ import annotations

import json
from random import Random

import hypothesis.strategies as st

from ovirt_placement.model import Snapshot
from ovirt_placement.model.files import state_file
from tools.engine_conformance.questions import State, random_state


def states() -> st.SearchStrategy[Snapshot]:
    return st.randoms(use_true_random=False).map(lambda random: _snapshot(_drawn(random)))


def _drawn(random: Random) -> State:
    """Without labels, and what only real engines compare; who migrates has a target among what is pending."""
    state = random_state(random)
    state["affinity_labels"] = []
    for group in state["affinity_groups"]:
        group.update(vm_labels=[], host_labels=[])
    targets = {entry["vm"]: entry["host"] for entry in state["pending"]}
    for vm in state["vms"]:
        for name in ("architecture", "max_memory_mb"):
            vm.pop(name, None)
        vm["hosted_engine"] = False
        vm["status"] = {"powering_up": "wait_for_launch"}.get(vm["status"], vm["status"])
        target = vm.pop("migrating_to", None) or random.choice(state["hosts"])["id"]
        if vm["status"] == "migrating":
            targets.setdefault(vm["id"], target)
    state["pending"] = [{"vm": vm, "host": host} for vm, host in targets.items()]
    return state


def _snapshot(state: State) -> Snapshot:
    return state_file.loads(json.dumps(state).encode())
