"""Routing engines: each turns a subnet and its LIDs into linear forwarding tables."""
