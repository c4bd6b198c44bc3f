"""Word lists for questions: words that name nothing by themselves."""

QUESTION_WORDS = frozenset(
    """
    a an the this that these those he she it they we i you his her its their our my your him them
    us me who whom whose which what when where why how is are was were be been being am has have
    had do does did will would can could shall should may might must not no nor or and but if then
    than so as of in on at to by for from with without into onto over under after before during
    since until while about against between among through both either neither each every all any
    some many much most more few several other another such same own only also too very just there
    here because although though however one two three first last new s t d ll re ve m o according
    despite following including unlike like along later earlier early late once upon per via name
    named born die died film song album book
    """.split()
)
# Question words that still help to tell namesakes apart.
WORK_KINDS = frozenset(("film", "song", "album", "book"))
# Words at which a name ends in a question without capitals.
NAME_BREAKS = QUESTION_WORDS | frozenset(
    "currently originally initially eventually finally recently today directed written produced "
    "starring released based set shot filmed founded located known name".split()
)
# A single capitalised first word that is one of these is no name. Imperatives are listed only here:
# within a question "list" and "show" may belong to a name.
OPENING_WORDS = NAME_BREAKS | frozenset(
    """
    tell explain list give show describe please kindly find identify define summarise summarize
    outline compare contrast discuss mention provide compute calculate determine estimate translate
    given considering regarding concerning
    """.split()
)
