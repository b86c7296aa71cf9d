"""Traces: compared record by record, and described for people."""
