"""HA reservation: the check, what failed VMs need, the weight and the balance."""
