"""Random worlds for the swarm: one module per family of protocols, each with a `DRAWER`."""
