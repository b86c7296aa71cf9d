"""Doors by which programs that others wrote reach a simulated fabric."""

# Before anything of transports is imported: it says in which form they are found.
import cosim  # noqa: F401
