"""Agents: methods that answer a question from retrieved evidence.

`ask` is the entry point; `rule_planner` is the default agent. `graphsearch`, `graph_r1`, `rograg`,
`youtu` and `map_reduce` hold the papers' agents, `baselines` those they compare with (Reader,
ReAct, IRCoT, closed book). `run_plan` and `run_logic` run the plans that agents make.
"""
