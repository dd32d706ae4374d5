"""Calls without end, while workers are killed and VMs move: what grows, what slows down?"""
