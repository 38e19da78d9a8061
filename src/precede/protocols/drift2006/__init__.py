"""Total order by virtual flooding (drift2006)."""
