"""HA admission control: what starts would leave of the room that restarts need."""
