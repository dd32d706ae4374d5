"""What a VM takes of its host's memory by the engine's definition, for tests to reckon with."""

from ovirt_placement.model import Vm


def overhead_mb(vm: Vm) -> int:
    """64 MiB, 1 for each 512 of memory, 8 for each vCPU and each IO thread, and the video memory (on x86)."""
    assert vm.architecture == "x86_64"
    return 64 + vm.memory_mb // 512 + 8 * vm.vcpus + 8 * vm.io_threads + vm.video_mb


def taken_mb(vm: Vm) -> int:
    return vm.memory_mb + overhead_mb(vm)
