"""HA reservation: the weight and the balance."""
