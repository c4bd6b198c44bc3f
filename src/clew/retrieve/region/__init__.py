"""The part of the graph that a question needs: cut out, pruned, grown around hits."""
