"""The experiments of prs1997 as `points`, with their measures."""
