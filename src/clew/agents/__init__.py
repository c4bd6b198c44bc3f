"""Agents: a model decides what to look at and what to answer, by tools over a knowledge base.

`ask` is the way in, `searcher` the default agent; `graphsearch`, `youtu`, `rograg`, `graph_r1` and
`map_reduce` are the papers', `react` and `baselines` what they compare with; `quick` answers
without a model. `tools` is what all of them may call.
"""
