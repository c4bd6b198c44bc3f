"""Table questions in other words than the columns': money, amounts, readings, bosses, places."""

from collections.abc import Iterator

import pytest

import clew
from conftest import one_in_three, open_tables

pytestmark = pytest.mark.usefixtures("rules_only")

TABLES = {
    "sales.csv": "sale_no,buyer_id,product,category,quantity,unit_price,total,sale_date,sent_date\n"
    "S-1,901,Oak Bench,seating,2,100.0,200.0,2024-03-02,2024-03-05\n"
    "S-2,902,Wall Lamp,lighting,5,30.0,150.0,2024-03-20,\n"
    "S-3,901,Wall Lamp,lighting,1,30.0,30.0,2024-04-11,2024-04-12\n",
    "buyers.csv": "buyer_id,name,city\n901,Rae Holm,Lund\n902,Ute Falk,Graz\n903,Jo Pike,Graz\n",
    "staff.csv": "staff_id,name,department,salary,manager_id,remote\n"
    "1,Ana Reyes,Design,71000,,yes\n2,Bo Lind,Design,52000,1,no\n3,Cy Nash,Repair,48000,2,yes\n",
    "probes.csv": "probe_id,location,type,reading,measured_on,battery_pct\n"
    "PX01,Cellar,humidity,80,2025-01-02,15\nPX02,Cellar,humidity,60,2025-01-03,90\n"
    "PX03,Roof,temperature,11.5,2025-01-04,55\nPX04,Roof,temperature,19.5,2025-01-05,18\n",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("shop"), TABLES) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    one_in_three(
        [
            ("How much revenue did we make from lighting?", "180"),
            ("Which category brings in the least money?", "lighting"),
            ("Which product sells best?", "Wall Lamp"),
            ("How many items were sold in total?", "8"),
            ("How many sales came in during March 2024?", "2"),
            ("Which sales are worth more than 100?", "S-1, S-2"),
            ("Who earns more than 50000?", "Ana Reyes, Bo Lind"),
            ("Who is Cy Nash's boss?", "Bo Lind"),
            ("Does Bo Lind work from home?", "No"),
            ("What was the highest temperature measured?", "19.5"),
            ("Average humidity in the cellar?", "70"),
            ("Where is PX03?", "Roof"),
            ("Which probes have less than 20 percent battery?", "PX01, PX04"),
        ]
    ),
)
def test_other_words_than_the_columns_are_understood(
    shop: clew.Kb, question: str, said: str
) -> None:
    answer = shop.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note


@pytest.mark.parametrize(
    "question", ["What does PX01 measure?", "Who owns the Oak Bench?", "How warm is Lund?"]
)
def test_what_the_columns_do_not_hold_is_not_computed(shop: clew.Kb, question: str) -> None:
    assert not shop.ask(question).computed
