"""Scenario texts: worked examples as plain sentences, read, played and written.

The papers' figures and our regressions are such pages (`scenarios/`). In reading order: `text`, `player`,
`cell_player`, `from_log`.
"""
