"""Verbs for the first hour with Precede: `doctor`, `explain`, `completion`, `new` (from `templates`).

`installation` and `machine` are the checks of `doctor`, `explanations` is the table of error codes.
"""
