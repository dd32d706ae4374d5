"""Calls without end, while workers are killed and the engine restarts: what grows, what slows down?"""
