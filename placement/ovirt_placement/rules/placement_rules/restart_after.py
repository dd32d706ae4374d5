"""Restart order: after a failure, VMs restart after others. It says nothing of where they run."""

from __future__ import annotations

from ovirt_placement.rules.placement_rules.kind import RuleKind

KIND = RuleKind(
    name="restart_after",
    summary="after a failure, each of the VMs restarts after all of the other VMs",
    needs=("vms", "other_vms"),
    weaker=False,
)
