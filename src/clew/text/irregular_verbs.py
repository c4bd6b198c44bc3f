"""English verbs whose past is no "-ed": each line of the table is a verb and its other forms."""

_TABLE = """
arise arose arisen|awake awoke awoken|bear bore borne|beat beaten|become became|begin began begun
bend bent|bind bound|bite bit bitten|bleed bled|blow blew blown|break broke broken
breed bred|bring brought|build built|burn burnt|buy bought|catch caught|choose chose chosen
cling clung|come came|creep crept|deal dealt|dig dug|draw drew drawn|dream dreamt
drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen|feed fed|feel felt
fight fought|find found|flee fled|fly flew flown|forbid forbade forbidden
forget forgot forgotten|forgive forgave forgiven|freeze froze frozen|get got gotten
give gave given|go went gone|grow grew grown|hang hung|hear heard|hide hid hidden
hold held|keep kept|kneel knelt|know knew known|lay laid|lead led|lean leant|learn learnt
leave left|lend lent|lie lain|light lit|lose lost|make made|mean meant|meet met|pay paid
ride rode ridden|ring rang rung|rise rose risen|run ran|say said|see saw seen|seek sought
sell sold|send sent|sew sewn|shake shook shaken|shine shone|shoot shot|show shown
shrink shrank shrunk|sing sang sung|sink sank sunk|sit sat|sleep slept|slide slid
speak spoke spoken|spend spent|spin spun|spoil spoilt|spring sprang sprung|stand stood
steal stole stolen|stick stuck|strike struck|swear swore sworn|sweep swept|swell swollen
swim swam swum|swing swung|take took taken|teach taught|tear tore torn|tell told
think thought|throw threw thrown|understand understood|wake woke woken|wear wore worn
weave wove woven|weep wept|win won|withdraw withdrew withdrawn|write wrote written
undertake undertook undertaken|overcome overcame|rebuild rebuilt|withhold withheld
"""

BASE_OF_FORM = {
    form: verb.split()[0]
    for line in _TABLE.strip().splitlines()
    for verb in line.split("|")
    for form in verb.split()[1:]
}
"""The verb that each irregular form is of: "bought" of "buy"."""
