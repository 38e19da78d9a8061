"""How bytes travel."""
