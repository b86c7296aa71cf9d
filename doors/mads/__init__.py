"""MADs of programs: what a kernel does between umad devices and a host's QP0 and QP1."""
