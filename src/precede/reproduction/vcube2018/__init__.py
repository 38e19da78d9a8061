"""The experiments of vcube2018 as `points`, and their `measures`."""
