"""A plugin host for the oVirt engine's external scheduler: knows the contract, knows nothing of placement."""


def command() -> int:
    """Run the installed command; a worker, which imports this too, has the standard library alone."""
    from ovirt_service import process

    return process.start("ovirt_scheduler_proxy.cli")
