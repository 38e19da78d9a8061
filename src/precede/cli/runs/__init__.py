"""Verbs that run worlds: `demo`, `simulate`, `play`, `swarm`, `repro`, `conform`, `bundle`; `protocols`."""
