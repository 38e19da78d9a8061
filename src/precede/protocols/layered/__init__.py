"""Orderings joined to disseminations: any ordering of this package runs over any dissemination."""
