"""Queue pairs of programs: the kernel's verbs commands, over the transport of a host's adapter."""
