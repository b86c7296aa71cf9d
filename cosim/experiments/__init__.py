"""Whole experiments: a fabric, traffic and errors, run and compared."""
