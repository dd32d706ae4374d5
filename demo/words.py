"""What the story says around commands' output: why a start fails, the enforcer's steps, and what now."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from demo import cluster
from ovirt_enforcer.gates.admission import GATES

#: Why each waiting VM goes where it goes. The engine's own filter looks at direct peers only.
PURPOSE = {
    cluster.JOINS: "It must join shop-web, which is down and itself must join shop-db: so shop-db's host.",
    cluster.STAYS_AWAY: "A ledger runs on every host but one, and ledgers must run apart.",
    cluster.HAS_NO_HOST: "It must be with audit-log and without audit-rival; both are on one host.",
}

#: How the enforcer's log ends once nothing is left to repair.
SATISFIED = "every rule is satisfied."

WHAT_NOW = """\
Three commands to try:

  make demo KEEP=1                                           # leaves it running, with a page
  .venv/bin/ovirt-simulator generate --hosts 4 --vms 40 --groups 20 --seed 3 > cluster.json
  .venv/bin/ovirt-enforcer plan --state cluster.json         # which migrations repair its rules

The same on a real engine; both commands read, and change nothing:

  export OVIRT_URL=https://engine.example.com/ovirt-engine/api OVIRT_CAFILE=ca.pem
  export OVIRT_USERNAME=admin@internal OVIRT_PASSWORD=...
  .venv/bin/ovirt-placement snapshot > cluster.json
  .venv/bin/ovirt-enforcer plan --state cluster.json

Nothing is migrated on an engine until the configuration says mode = "enforce".

Documentation: README.md (installation), docs/commands.md (all commands), docs/rules.md (what each
rule means), docs/enforcer.md (how to begin with the enforcer), docs/simulator.md (this engine)."""


def refused_start(vm: str) -> str:
    """What the engine's fault means when a VM cannot start."""
    return (
        f"In plain words: the engine's filters and the proxy's refuse every host for {vm}, so it stays"
        " down. The engine's API reports this as HTTP status 400, Operation Failed; the detail is empty,"
        " so the fault gives no reason. ovirt-placement why gives one for each host:"
    )


def steps(log: str, violated: int, groups: int) -> str:
    """The enforcer's steps by its log, and the engine's verdict: `violated` of `groups` affinity groups."""
    lines = [line.partition(" ")[2] for line in log.splitlines()]
    closed = [line for line in lines if ": not now: " in line]
    return "\n".join(
        [
            "Step 1, plan: which VMs to migrate, as few as possible.",
            *_indented(line for line in lines if line.startswith("  ") or _is_plan(line)),
            f"Step 2, gates: each migration passes {len(GATES)} gates (mode, pause, windows, limits, ...).",
            *_indented(closed or ["No gate was closed."]),
            "Step 3, migrations: the engine carries them out, and the enforcer watches each to its end.",
            *_indented(line for line in lines if line.startswith("migration of ")),
            "Step 4, proof: the enforcer reads the cluster again, and the engine judges its groups itself.",
            *_indented(line for line in lines if line.endswith(SATISFIED)),
            *_indented([f"The engine's API: {violated} of {groups} affinity groups are violated."]),
        ]
    )


def approve(plan: str, configuration: Path) -> str:
    """How to let the plan be carried out that waits."""
    return "\n".join(
        [
            f"Plan {plan} waits: both rules remain violated until you approve of it, on the page (cluster",
            f"{cluster.CLUSTER}, Plan, Approve of this plan) or in another shell:",
            "",
            f"  export OVIRT_PLACEMENT_CONFIG={configuration}",
            f"  .venv/bin/ovirt-enforcer approve {plan}",
            "",
        ]
    )


def questions(configuration: Path, before: Path) -> str:
    """What can be asked while the story's processes run; `before` is the state file of its beginning."""
    lines = (
        f"ovirt-placement violations --state {before}",
        f"ovirt-enforcer plan --state {before}",
        f"ovirt-placement why {cluster.HAS_NO_HOST}",
        "ovirt-placement groups list",
        "ovirt-enforcer history",
    )
    return "\n".join(
        [
            "Five questions to ask in another shell, the first two about the cluster before the repair:",
            "",
            f"  export OVIRT_PLACEMENT_CONFIG={configuration}",
            *(f"  .venv/bin/{line}" for line in lines),
        ]
    )


def _is_plan(line: str) -> bool:
    return line.startswith("Cluster ") and " migration" in line


def _indented(lines: Iterable[str]) -> list[str]:
    return [f"  {line}" for line in lines]
