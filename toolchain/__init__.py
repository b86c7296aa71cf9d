"""Processes, the build cache and whole files: what rooms above build with."""
