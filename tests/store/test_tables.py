"""Tables: default values of the optional columns."""

import numpy as np

from clew.store.protocol import Tables


def test_merge_decisions_and_pins_are_empty_by_default() -> None:
    widths = {"chunks": 4, "entities": 8, "facts": 6, "mentions": 5, "participants": 3}
    widths |= {"supports": 3, "forms": 4}
    given = {name: np.zeros((0, width), np.int64) for name, width in widths.items()}
    tables = Tables(**given)
    assert tables.merge_decisions.shape == (0, 4)
    assert tables.sense_pins.shape == (0, 3)
    assert tables.entity_vectors is None
    assert not tables.texts and not tables.previous
