"""What roles are made of: the permits, which the engine calls action groups.

Source: the engine's ActionGroup.
"""

from __future__ import annotations

from .entities import Record


class Permit(Record, frozen=True):
    #: A number.
    id: str
    name: str
    #: Whether only roles of administrators may have it.
    administrative: bool


_USER = (
    "1:create_vm 2:delete_vm 3:edit_vm_properties 17:reboot_vm 23:reset_vm 18:stop_vm "
    "19:shut_down_vm 21:hibernate_vm 22:run_vm 5:change_vm_cd 6:migrate_vm "
    "1664:connect_to_serial_console 7:connect_to_vm 9:configure_vm_network "
    "10:configure_vm_storage 11:move_vm 12:manipulate_vm_snapshots 13:reconnect_to_vm "
    "16:create_instance 200:create_template 201:edit_template_properties 202:delete_template "
    "203:copy_template 204:configure_template_network 300:create_vm_pool "
    "301:edit_vm_pool_configuration 302:delete_vm_pool 303:vm_pool_basic_operations "
    "502:manipulate_permissions 503:add_users_and_groups_from_directory 504:edit_profile "
    "901:consume_quota 1100:create_disk 1101:attach_disk 1102:edit_disk_properties "
    "1103:configure_disk_storage 1104:delete_disk 1106:access_image_storage "
    "1107:disk_live_storage_migration 1108:sparsify_disk 1300:login 1563:attach_disk_profile "
)
_ADMIN = (
    "8:import_export_vm 14:change_vm_custom_properties 15:edit_admin_vm_properties "
    "100:create_host 101:edit_host_configuration 102:delete_host 103:manipulate_host "
    "104:configure_host_network 205:edit_admin_template_properties 400:create_cluster "
    "401:edit_cluster_configuration 402:delete_cluster 403:configure_cluster_network "
    "404:assign_cluster_network 500:manipulate_users 501:manipulate_roles "
    "600:create_storage_domain 601:edit_storage_domain_configuration 602:delete_storage_domain "
    "603:manipulate_storage_domain 700:create_storage_pool 701:delete_storage_pool "
    "702:edit_storage_pool_configuration 703:configure_storage_pool_network "
    "704:create_storage_pool_network 705:delete_storage_pool_network 800:configure_engine "
    "900:configure_quota 1000:create_gluster_volume 1001:manipulate_gluster_volume "
    "1002:delete_gluster_volume 1003:manipulate_gluster_hook 1004:manipulate_gluster_service "
    "1105:configure_scsi_generic_io 1109:reduce_disk 1110:backup_disk "
    "1203:configure_network_vnic_profile 1204:create_network_vnic_profile "
    "1205:delete_network_vnic_profile 1400:inject_external_events 1500:inject_external_tasks "
    "1301:tag_management 1302:bookmark_management 1303:event_notification_management "
    "1304:audit_log_management 1550:manipulate_affinity_groups "
    "1560:configure_storage_disk_profile 1561:create_storage_disk_profile "
    "1562:delete_storage_disk_profile 1660:create_mac_pool 1661:edit_mac_pool "
    "1662:delete_mac_pool 1663:configure_mac_pool 1665:delete_cpu_profile "
    "1666:update_cpu_profile 1667:create_cpu_profile 1668:assign_cpu_profile "
)


def _permits(table: str, *, administrative: bool) -> dict[str, Permit]:
    pairs = (entry.partition(":") for entry in table.split())
    return {number: Permit(id=number, name=name, administrative=administrative) for number, _, name in pairs}


#: All permits by id.
PERMITS = _permits(_USER, administrative=False) | _permits(_ADMIN, administrative=True)
BY_NAME = {permit.name: permit for permit in PERMITS.values()}
