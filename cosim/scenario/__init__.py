"""Scenarios: what a user writes in a TOML file to say which fabric runs which traffic."""
