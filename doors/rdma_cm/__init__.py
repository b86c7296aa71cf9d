"""Connections of programs by IP address: the kernel's rdma_cm commands, and communication managers at hosts."""
