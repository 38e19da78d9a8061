"""Verbs that run worlds: `demo`, `simulate`, `swarm`, `repro`, `conform`, `bundle`; and `protocols`, a list."""
