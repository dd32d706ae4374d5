"""Watch whole readings of the engine: HA reservations, what VMs start with, what a person has to see."""
