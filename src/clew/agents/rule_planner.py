"""Plans without a model: two things that the table of operators compares, and Chinese chains."""

import re

from clew.agents.answering.write import make_refusal
from clew.agents.citing.support import mentions_name
from clew.agents.core.plan import AGE, ARITHMETIC, Join, Plan
from clew.agents.core.scratchpad import Note, Notebook
from clew.agents.core.types import Answer
from clew.agents.planning.arithmetic import compute
from clew.agents.planning.compare_answers import combine_answers
from clew.agents.rules.arithmetic import find_arithmetic
from clew.agents.rules.chinese import plan_chinese
from clew.agents.rules.operators import Comparison, find_comparison
from clew.agents.rules.question_analysis import find_question_name_spans
from clew.agents.rules.table import table_for
from clew.context import Context
from clew.text.language import is_chinese
from clew.text.options import split_options

_TELLS_AGE = re.compile(r"\bage[ds]?\b|\byears\b", re.IGNORECASE)


async def make_rule_plan(ctx: Context) -> Plan:
    """Plan the context's question without a model; what compares nothing stays whole."""
    async with ctx.step("plan by rules", ctx.question) as step:
        asked, _ = split_options(ctx.question)
        if is_chinese(asked):
            plan = plan_chinese(asked)
        else:
            names = find_question_name_spans(ctx.view, asked)
            # A model adds up by itself, and its sums are checked.
            computed = None if ctx.has("answer") else find_arithmetic(asked, names)
            compared = computed or find_comparison(asked, names)
            if compared is not None and compared.how == "both" and ctx.has("answer"):
                compared = None  # a model can be asked for yes or no, the reader only for a span
            plan = Plan((asked,)) if compared is None else plan_comparison(compared)
        step.output = "no rule splits this question" if plan.simple else str(plan)
        return plan


def plan_comparison(compared: Comparison) -> Plan:
    """Ask for the values of both things."""
    questions, numbers = list[str](), list[tuple[int, ...]]()
    for some in compared.questions:
        numbers.append(tuple(range(len(questions) + 1, len(questions) + len(some) + 1)))
        questions += some
    join = Join(compared.how, tuple(numbers), compared.options, compared.rest, compared.yes_no)
    return Plan(tuple(questions), join)


def keep_stated(ctx: Context, plan: Plan, book: Notebook, answer: Answer) -> Answer:
    """Keep an answer to what code could not compute if one sentence says it of all the things.

    Otherwise it is the value of one of them, and is refused with what is not said.
    """
    join = plan.join
    options = join.options if join is not None else ()
    quotes = [one.quote for one in answer.citations]
    # A number beside a name is no age: "aged 71" and "71 years" are.
    whole = join is None or join.what != AGE or any(map(_TELLS_AGE.search, quotes))
    if whole and any(all(mentions_name(option, quote) for option in options) for quote in quotes):
        return answer
    unsaid = [note.question for note in book.notes if not note.has_answer]
    reason = f"no passage answers: {unsaid[0]}" if unsaid else "no passage says what is compared"
    return make_refusal(ctx, book.evidence(), reason)


def combine_notes(plan: Plan, notes: dict[int, Note]) -> str:
    """Combine the notes of a plan: by its join, or the last question's answer."""
    answers = {
        number: note.name or note.answer for number, note in notes.items() if note.has_answer
    }
    join = plan.join
    if join is not None and join.how in ARITHMETIC:
        return compute(join, notes)
    if join is None:
        return answers.get(len(plan.questions), "")
    if join.how == "both":
        quotes = {number: f"{note.answer} {note.quote}" for number, note in notes.items()}
        answers = {number: quotes[number] for number in answers}
    short = combine_answers(join, answers)
    if not short or not join.yes_no:
        return short
    table = table_for(plan.questions[0])
    return table.yes if short == join.options[0] else table.no
