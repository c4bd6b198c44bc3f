"""Questions that name kinds, states and times of rows in words that are not the columns' own."""

from collections.abc import Iterator

import pytest

import clew
from conftest import one_in_three, open_tables

pytestmark = pytest.mark.usefixtures("rules_only")

TABLES = {
    "permits.csv": "permit,state,issued,priority,minutes\n"
    "P-1,issue,2023-01-05,low,40\n"
    "P-2,closed,2023-01-20,high,15\n"
    "P-3,issue,2023-02-11,high,25\n",
    "crew.csv": "crew_id,name,trade,pay,start_date,certified\n"
    '401,Ada Brook,Carpentry,"$41,200",2018-05-01,yes\n'
    '402,Ivo Marsh,Masonry,"$39,150",2021-07-12,no\n'
    '403,Mei Tan,Carpentry,"$44,301",2020-02-02,yes\n',
    "tools.csv": "tool,type,lent_to,cost_eur\n"
    'D-9,drill,402,"1.250,00"\nD-4,drill,401,"310,50"\nS-2,saw,402,"85,00"\nL-1,ladder,403,"99,00"\n',
    "films.csv": "film,genre,year,length (min)\nLow Tide,drama,1962,98\nSalt,drama,1988,101\n"
    "Kites,comedy,1971,88\n",
    "towns.csv": "town,county,population\nRook,Eastmoor,1200\nFell,Eastmoor,800\n"
    "Tarn,Westmoor,90\n",
    "clients.csv": "client_id,name,county\n7001,Ana Brix,Eastmoor\n7002,Per Sund,Westmoor\n"
    "7003,Ida Moll,Westmoor\n",
    "orders.csv": "order_no,client_id,item\n1,7001,lamp\n2,7001,desk\n3,7003,lamp\n",
    "depot.csv": "part,class,quantity\nA4,bolt,300\nA5,bolt,120\nB2,nut,80\n",
}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clew.Kb]:
    with open_tables(tmp_path_factory.mktemp("yard"), TABLES) as base:
        yield base


@pytest.mark.parametrize(
    ("question", "said"),
    one_in_three(
        [
            # A cell says just this; the name of a column only begins alike.
            ("How many permits are in issue?", "2"),
            ("Which permits are closed?", "P-2"),
            # What stands before the noun that is counted says which.
            ("How many closed permits are there?", "1"),
            ("How many high priority permits are there?", "2"),
            ("How many low priority permits were issued in January 2023?", "1"),
            ("Which high priority permits are closed?", "P-2"),
            # A measure that is counted is added up, and grouped.
            ("How many minutes did high priority permits take?", "40"),
            ("How many minutes were spent on high priority permits?", "40"),
            ("How many minutes per priority?", "low: 40, high: 40"),
            # Values that rows share are kinds of rows.
            ("How many drills are there?", "2"),
            ("How many dramas are there?", "2"),
            ("How many bolts are there?", "420"),
            ("What is the average pay of carpenters?", "$42,750.50"),
            # Verbs that the only time, or a column of yes and no, can be of.
            ("How many films were shot before 1980?", "2"),
            ("Who was hired first?", "Ada Brook"),
            ("Who was hired last?", "Ivo Marsh"),
            ("Who joined most recently?", "Ivo Marsh"),
            ("How many crew were hired in 2020?", "1"),
            ("Which film is the oldest?", "Low Tide"),
            ("Does Ada Brook work certified?", "Yes"),
            ("Is permit P-2 closed?", "Yes"),
            # Links that only the values show.
            ("How many tools are lent to Ivo Marsh?", "2"),
            ("Who has the drill D-4?", "Ada Brook"),
            ("Which crew have a saw?", "Ivo Marsh"),
            # Rows that none of another table refers to.
            ("Which crew have no saw?", "Ada Brook, Mei Tan"),
            ("How many crew have no drill?", "1"),
            ("Which clients have no orders?", "Per Sund"),
            ("Which clients in Westmoor have no orders?", "Per Sund"),
            ("How many clients never ordered?", "1"),
            ("Which clients never ordered a desk?", "Per Sund, Ida Moll"),
            # A population counts people.
            ("How many people live in Eastmoor?", "2000"),
            ("How many inhabitants does Tarn have?", "90"),
            # Money as its column writes it, with the unit of its header.
            ("What is the total pay?", "$124,651"),
            ("What is the total cost of the drills?", "1560.50 EUR"),
            ("What is the average cost of the tools?", "436.12 EUR"),
            ("What is the highest cost?", "1.250,00 EUR"),
            ("How many tools are of each type?", "drill: 2, saw: 1, ladder: 1"),
        ]
    ),
)
def test_rows_are_meant_by_kind_state_and_time(yard: clew.Kb, question: str, said: str) -> None:
    answer = yard.ask(question)
    assert (answer.candidate, answer.computed) == (said, True), answer.note


@pytest.mark.parametrize(
    "question",
    one_in_three(
        [
            "Who was dismissed first?",
            "How many crew were dismissed before 2020?",
            "How many people live in Houston?",
            "Who trained Ivo Marsh?",
            "How many sinks are there?",
        ]
    ),
)
def test_what_only_seems_to_be_meant_is_not_computed(yard: clew.Kb, question: str) -> None:
    assert not yard.ask(question).computed
