"""Word lists of the rule-based extractor, mainly English; missing words cost little precision."""

# Words that begin sentences far more often than names.
SENTENCE_OPENERS = frozenset(
    """
    the a an this that these those he she it they we i you his her its their our my your who what
    when where why how in on at to by for from with into after before during since until while
    although though however as if and but or nor so because there here both either neither each
    every all some many most more few several other another such then thus also despite following
    according including unlike like along later earlier early late once upon per via one two is
    are was were do does did has have had will would can could which whose whom not no between
    among through under over about against currently originally initially eventually finally
    recently today directed written produced starring released based set shot filmed founded
    located known
    """.split()
)
# Stripped from the front of a longer capitalised run ("In Paris", "Later Lindqvist").
STRIPPED_OPENERS = frozenset(
    """
    in on at by from with after before during since until while although though however as if and
    but or so because when where for to under despite following according both then thus also
    later earlier currently originally initially eventually finally recently today directed
    written produced starring released
    """.split()
)
MONTHS = frozenset(
    """
    january february march april may june july august september october november december
    jan feb mar apr jun jul aug sep sept oct nov dec
    """.split()
)
# Never a name on their own, whatever their case.
COMMON_WORDS = SENTENCE_OPENERS | frozenset(
    """
    be been being am shall should may might must than of s t d ll re ve m o them us me him only
    same own too very just first last new name named born die died film song album book
    """.split()
)
# A document that begins with one of these does not name its subject there.
NON_SUBJECT_OPENERS = frozenset(
    """
    he she it they this these there in on at a an his her its their after when during as by for
    from
    """.split()
)
UNITS = frozenset(
    """
    km kilometres kilometers miles mi m metres meters ft feet cm mm kg kilograms tons tonnes g lb
    percent million billion thousand years year days months hours minutes seconds acres hectares
    people inhabitants dollars euros pounds yen gb mb mph hz watts volts
    """.split()
)
# Chinese and Japanese text is split into candidate names at these.
HAN_PARTICLES = frozenset(
    "的了在是和与與及或被把从從到由于於以为為这這那他她它们們之而也都就不有其将將对對等者所"
)
KANA_PARTICLES = frozenset("はがをにでとのもへやかられるたてですまし")
