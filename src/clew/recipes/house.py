"""The default recipe, chosen by measurement (docs/decisions/0004)."""

from clew.retrieve.naming.link import LinkNames
from clew.retrieve.step import Chain
from clew.retrieve.walk import Walk

CLEW = Chain(
    "clew",
    (LinkNames(), Walk()),
    about="names in the question, then a walk weighed by the sentences that lead on",
    source="measured here (docs/recipes.md)",
)
