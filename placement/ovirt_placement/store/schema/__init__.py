"""The store's tables.

Every row belongs to an engine, by its configured name. A change of a table here needs a migration that
makes the same of it. SQLite keeps tables by their key, without a rowid: an engine's rows are read in one go.
"""

from __future__ import annotations

from ovirt_placement.store.schema.enforcement import approvals as approvals
from ovirt_placement.store.schema.enforcement import held_steps as held_steps
from ovirt_placement.store.schema.enforcement import intents as intents
from ovirt_placement.store.schema.enforcement import leases as leases
from ovirt_placement.store.schema.enforcement import pauses as pauses
from ovirt_placement.store.schema.enforcement import plans as plans
from ovirt_placement.store.schema.enforcement import resumptions as resumptions
from ovirt_placement.store.schema.enforcement import waiting_plans as waiting_plans
from ovirt_placement.store.schema.maintenance import maintenance_hosts as maintenance_hosts
from ovirt_placement.store.schema.maintenance import maintenance_runs as maintenance_runs
from ovirt_placement.store.schema.metadata import metadata as metadata
from ovirt_placement.store.schema.metadata import schema_version as schema_version
from ovirt_placement.store.schema.observed import cycles as cycles
from ovirt_placement.store.schema.observed import enforcer_settings as enforcer_settings
from ovirt_placement.store.schema.observed import ha_announcements as ha_announcements
from ovirt_placement.store.schema.observed import lost_memberships as lost_memberships
from ovirt_placement.store.schema.observed import memberships as memberships
from ovirt_placement.store.schema.observed import missing_vms as missing_vms
from ovirt_placement.store.schema.observed import samples as samples
from ovirt_placement.store.schema.observed import user_actions as user_actions
from ovirt_placement.store.schema.observed import violated_rules as violated_rules
from ovirt_placement.store.schema.rules import default_keys as default_keys
from ovirt_placement.store.schema.rules import frozen_keys as frozen_keys
from ovirt_placement.store.schema.rules import key_revision as key_revision
from ovirt_placement.store.schema.rules import placement_keys as placement_keys
from ovirt_placement.store.schema.rules import placement_rules as placement_rules
from ovirt_placement.store.schema.rules import sticky_copies as sticky_copies
