"""The protocols: five papers, the baselines they compare with, and the registry that builds nodes by name.

A protocol is a `core.node.Node`: inputs are method calls, each returns a list of effects. A layered protocol is
an ordering joined to a dissemination; the others implement the node directly. In reading order: `registry`,
`options`; layered: `layered`, `guidec2021`, `rules`, `routing`; multicast: `multicast`, `prs1997`; floods:
`floods`, `drift2006`; trees: `vcube2018`; radio cells: `cells`, `was2021`; helpers: `outbox`
(`acknowledgement`), `around`.

May import: core
"""
