"""Flooding over ad hoc radio, and data that travels on it (drift2006, sections 3, 4.4 and 8)."""
