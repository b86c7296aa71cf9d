"""Traces: compared record by record, described for people, kept in files."""
