"""The experiments of drift2006 as `points`, their `measures`, and the `backbones` of section 8."""
