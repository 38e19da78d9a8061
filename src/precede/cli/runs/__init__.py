"""Verbs that run worlds: `demo`, `simulate`, `swarm`, `conform`, `bundle`; `protocols` lists what can run."""
