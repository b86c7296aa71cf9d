"""What acts on a fabric: packets, control operations, and the record of both for one run."""
