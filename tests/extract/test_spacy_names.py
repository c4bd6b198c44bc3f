"""What spaCy adds; runs where extra `nlp` is installed."""

import pytest

from clew.extract.rules import find_installed_model, refine_spans
from clew.text.name_spans import find_name_spans
from clew.text.names import tokenize

pytest.importorskip("spacy")


@pytest.mark.skipif(not find_installed_model(), reason="no spaCy model is installed")
def test_names_get_types_and_none_is_lost() -> None:
    text = "Nicki Minaj was born in Trinidad and lives in New York."
    t = tokenize(text)
    rules = find_name_spans(text, t, {0})
    found = refine_spans(text, t, rules, find_installed_model())
    said = {text[t.starts[s.first] : t.ends[s.last - 1]]: s.type for s in found}
    assert said["Nicki Minaj"] == "person"
    assert said["New York"] == "place"
    assert {(s.first, s.last) for s in rules} <= {(s.first, s.last) for s in found}
