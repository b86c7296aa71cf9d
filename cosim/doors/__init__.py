"""Doors by which programs that others wrote reach a simulated fabric."""
