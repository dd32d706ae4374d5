"""The engine's own enforcement of affinity rules: in which order it tries VMs, and what counts as a gain."""
