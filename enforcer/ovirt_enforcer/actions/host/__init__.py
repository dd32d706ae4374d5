"""Takes hosts out of service and back: deactivate, upgrade, activate."""
