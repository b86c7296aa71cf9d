"""The Subnet Manager: discovery, LIDs, routing, activation. It knows no simulator."""
