"""Searches that are well-formed and fail nevertheless: the engine's SQL names what its views do not have.

Whether it does hangs on odd things: it reads the views with tags only if `tag` stands in the search in small
letters, if free text does, or another object that needs them. Source: `SyntaxChecker` and
`SyntaxContainer.isSearchUsingTags`, run against the engine's database scripts.
"""

from __future__ import annotations

from ovirt_simulator.http.search.errors import SearchFailure
from ovirt_simulator.http.search.expression import Condition, Search, conditions

#: The table of what is searched, with tags and without.
_TABLES = {
    "VM": ("vms_with_tags", "vms"),
    "HOST": ("vds_with_tags", "vds"),
    "USER": ("vdc_users_with_tags", "vdc_users"),
    "TEMPLATE": ("vm_templates_storage_domain_with_tags", "vm_templates_view"),
    "INSTANCETYPE": ("instance_types_storage_domain", "instance_types_view"),
}
#: Columns that the tables of other objects lack.
_LACKING = {
    ("STORAGE", "STATUS"): "storage_domains_with_hosts_view.status",
    ("STORAGE", "EXTERNAL_STATUS"): "storage_domains_with_hosts_view.external_status",
    ("STORAGE", "TOTAL_SIZE"): "storage_domains_with_hosts_view.total_disk_size",
    ("VOLUME", "TRANSPORT_TYPE"): "gluster_volumes_view.transport_type",
    ("VM", "MIGRATION_PROGRESS_PERCENT"): "vms_with_tags.migration_progress_percent",
}
#: Joins that work with tags only, each with what the engine's database says of it otherwise.
_JOINED_WITH_TAGS = {
    ("HOST", "TEMPLATE"): 'missing FROM-clause entry for table "vms"',
    ("TEMPLATE", "EVENT"): 'missing FROM-clause entry for table "vms"',
    ("USER", "HOST"): "column vdc_users.vm_guid does not exist",
    ("USER", "TEMPLATE"): "column vdc_users.vm_guid does not exist",
    ("USER", "VM"): "column vdc_users.vm_guid does not exist",
}
#: Fields that cannot be sorted by, with their columns.
_UNSORTED = {
    (None, "TAG"): "tag_name",
    ("VM", "MIGRATION_PROGRESS_PERCENT"): "migration_progress_percent",
    ("USER", "POOL"): "vm_pool_name",
}


def refuse_malformed_sql(text: str, searched: str, search: Search) -> None:
    """Raise `SearchFailure` with the words of the engine's database if the SQL of this search is violated."""
    named = list(conditions(search.where))
    *before, in_the_end = _with_tags(text, searched, named)
    for one in named:
        _check_join(searched, one, with_tags=in_the_end)
    for one, with_tags in zip(named, before, strict=True):
        _check_condition(searched, one, with_tags=with_tags, in_the_end=in_the_end)
    _check_order(searched, search, named)


def _with_tags(text: str, searched: str, named: list[Condition]) -> list[bool]:
    """Say before each condition and behind the last whether views with tags are read, as for free text."""
    objects = {one.object for one in named} - {searched}
    now = (
        "tag" in text
        or (searched == "USER" and "vm" in text)
        or not objects.isdisjoint({"DATACENTER", "STORAGE"})
        or (searched == "VM" and "cluster" in text.lower() and "HOST" in objects)
        or (searched == "EVENT" and "template" in text.lower())
    )
    found = [now]
    for one in named:
        found.append(found[-1] or one.field is None)
    return found


def _check_join(searched: str, one: Condition, *, with_tags: bool) -> None:
    if (searched, one.object) == ("TEMPLATE", "VNIC"):
        raise _lacks("vm_interface_view.vmt_guid")
    said = _JOINED_WITH_TAGS.get((searched, one.object))
    if said is not None and not with_tags:
        raise SearchFailure(f"ERROR: {said}")


def _check_condition(searched: str, one: Condition, *, with_tags: bool, in_the_end: bool) -> None:
    if one.object != searched:
        _check_other(searched, one)
    elif one.field is None:
        _check_free_text(searched)
    elif one.field.name == "TAG":
        _check_tag(searched, with_tags=in_the_end)
    elif (searched, one.field.name) == ("USER", "POOL") and not with_tags:
        raise _lacks("vdc_users.vm_pool_name")
    elif (searched, one.field.name) == ("VM", "MIGRATION_PROGRESS_PERCENT"):
        raise _lacks(f"{_TABLES['VM'][not with_tags]}.migration_progress_percent")


def _check_other(searched: str, one: Condition) -> None:
    if (searched, one.object) == ("EVENT", "HOST"):
        _check_host_of_event(one)
    column = None if one.field is None else _LACKING.get((one.object, one.field.name))
    if column is not None:
        raise _lacks(column)


def _check_host_of_event(one: Condition) -> None:
    """Refuse all but the name of an event's host: the engine joins nothing more of it."""
    if one.field is None:
        raise SearchFailure('ERROR: missing FROM-clause entry for table "vds_with_tags"')
    if one.field.name != "NAME":
        column = _HOST_COLUMNS.get(one.field.name, one.field.name.lower())
        raise _lacks(f"vds_with_tags_temp.{column}")


def _check_free_text(searched: str) -> None:
    if searched == "INSTANCETYPE":
        raise _lacks("instance_types_storage_domain.tag_name")
    if searched == "JOB":
        raise SearchFailure('ERROR: syntax error at or near ")"')


def _check_tag(searched: str, *, with_tags: bool) -> None:
    table = _TABLES[searched][0]
    if not with_tags:
        raise SearchFailure(f'ERROR: missing FROM-clause entry for table "{table}"')
    if searched == "INSTANCETYPE":
        raise _lacks(f"{table}.tag_name")


def _check_order(searched: str, search: Search, named: list[Condition]) -> None:
    if search.sort is None:
        return
    column = _UNSORTED.get((None, search.sort.name)) or _UNSORTED.get((searched, search.sort.name))
    if column is not None:
        raise SearchFailure(f'ERROR: column "{column}" does not exist')
    joined = any(one.object != searched for one in named)
    if joined and (searched, search.sort.name) == ("TEMPLATE", "NAME"):
        raise SearchFailure("ERROR: for SELECT DISTINCT, ORDER BY expressions must appear in select list")


def _lacks(column: str) -> SearchFailure:
    return SearchFailure(f"ERROR: column {column} does not exist")


#: Where a column of hosts has not the name of its field.
_HOST_COLUMNS = {
    "ACTIVE_VMS": "vm_active",
    "ADDRESS": "host_name",
    "CLUSTER": "cluster_name",
    "COMMENT": "free_text_comment",
    "COMMITTED_MEM": "mem_commited",
    "CPUS": "cpu_cores",
    "CPU_SPEED": "cpu_speed_mh",
    "CPU_USAGE": "usage_cpu_percent",
    "DATACENTER": "storage_pool_name",
    "HW_ID": "vds_unique_id",
    "LOAD": "cpu_load",
    "MEMORY": "physical_mem_mb",
    "MEM_USAGE": "usage_mem_percent",
    "MIGRATING_VMS": "vm_migrating",
    "NETWORK_USAGE": "usage_network_percent",
    "SPM_ID": "vds_spm_id",
    "TAG": "tag_name",
    "TYPE": "vds_type",
    "UPDATE_AVAILABLE": "is_update_available",
    "VERSION": "software_version",
}
