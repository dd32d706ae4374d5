"""Migrations that restore an HA reservation: after them, whatever host fails, its VMs find homes."""
