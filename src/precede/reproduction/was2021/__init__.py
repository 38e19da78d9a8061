"""The experiments of was2021: `points`, and those of sections 5.2 and 5.3 in `buffers`."""
