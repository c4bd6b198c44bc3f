"""Named recipes: retrieval chains and agents, with the source of every number.

`default` holds the default recipe, `papers` and `lego` the retrievers of the papers, `agents` the
agents; `registry` finds all of them by name.
"""
