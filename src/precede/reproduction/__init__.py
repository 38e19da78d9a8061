"""Reproductions of the five papers: their claims, the experiments that answer them, the judgement of each.

A paper's package describes its experiments as units of work. Each unit is a simulated run that is verified and
measured; claims are judged by the means over units.

papers      where the papers' claims and experiments are
claims      claims files as typed values
units       the experiments of all papers in one form
judging     compares claims with measures and gives each a status
request     a request to reproduce a paper, and its result
exhibits    what the tables and figures of a result show
guidec2021/ was2021/ drift2006/ vcube2018/ prs1997/
            each with points (experiments as points and runs), measures (of its own) and units

May import: core, protocols, eventlog, traces, sim, witness, measures, experiments, lake
"""
