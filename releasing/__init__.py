"""Builds and tries a release: `python -m releasing build | check | try`. It needs the standard library only.

`interpreters` finds the Pythons of the machine, `environments` makes virtual environments from pinned packages,
`build` makes the source archive and the wheels, `index` checks what a package index shows and lists the parts
of a release (SBOM), `trial` installs each wheel in a clean environment and uses it.
"""
