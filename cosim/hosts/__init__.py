"""What runs at a host: a Subnet Manager, carried as packets of its adapter."""
