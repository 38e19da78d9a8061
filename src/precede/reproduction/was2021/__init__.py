"""The experiments of was2021: sections 5.2 and 5.3 in `points`, 5.1 (WAS against CK) in `comparison`, and
`units`.
"""
