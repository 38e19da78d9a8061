"""Reproductions of the five papers: their claims, the experiments that answer them, the judgement of each.

A paper's module `points` describes its experiments as points, runs and units of work. Each unit is a simulated
run that is verified and measured; claims are judged by intervals over units. In reading order: `papers`,
`claims`, `estimates`, `shapes`, `judging`, `units`, `request`, `exhibits`, `results`, `storing`,
`choices`, `checking`; the papers `guidec2021`, `was2021`, `drift2006`, `vcube2018`, `prs1997`.

May import: core, protocols, eventlog, traces, sim, witness, measures, experiments, lake
"""
