"""The engines that can run a scenario, and how each is built."""
