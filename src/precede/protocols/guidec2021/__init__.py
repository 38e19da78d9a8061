"""Causal and Δ-causal broadcast in opportunistic networks (Guidec, Launay, Mahéo 2021).

A message names its immediate predecessors (its causal barrier) and waits until they are delivered; with
lifetimes, until they are delivered or have expired. Nobody needs to know the group. Both protocols are
orderings for a layered node; the paper's opportunistic layer is the dissemination `layered.epidemic`. Our
departures from the printed codes are in papers/guidec2021/reading.md. In reading order: `options`,
`cut`, `causal_barrier`; `past`, `waiting`, `delta_causal`.
"""
