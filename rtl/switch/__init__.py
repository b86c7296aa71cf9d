"""The switch: route, buffer, queues, matching, crossbar."""
