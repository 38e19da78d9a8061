"""Real processes under a plan."""
