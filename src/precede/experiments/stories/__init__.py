"""Scenario texts: worked examples as plain sentences, read, played and written."""
