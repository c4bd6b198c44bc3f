"""Countries and their demonyms: "Dutch" is of the Netherlands, "Austrian" not of Australia.

Endings alone do not suffice: Niger and Nigeria, Slovak and Slovenian differ by less than Norway
and Norwegian. A word that several countries share ("Congolese", "Korean") stands for each of them.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from clew.text.unicode import split_words

# country=demonym=further names of the same country
_COUNTRIES = """
Afghanistan=Afghan; Albania=Albanian; Algeria=Algerian; Andorra=Andorran; Angola=Angolan;
Antigua and Barbuda=Antigua=Antiguan; Argentina=Argentine=Argentinian=Argentinean;
Armenia=Armenian; Australia=Australian; Austria=Austrian; Azerbaijan=Azerbaijani=Azeri;
Bahamas=Bahamian; Bahrain=Bahraini; Bangladesh=Bangladeshi; Barbados=Barbadian;
Belarus=Belarusian=Belarussian; Belgium=Belgian; Belize=Belizean; Benin=Beninese;
Bhutan=Bhutanese; Bolivia=Bolivian; Bosnia and Herzegovina=Bosnia=Bosnian;
Botswana=Botswanan=Motswana; Brazil=Brazilian; Brunei=Bruneian; Bulgaria=Bulgarian;
Burkina Faso=Burkinabe; Burundi=Burundian; Cambodia=Cambodian; Cameroon=Cameroonian;
Canada=Canadian; Cape Verde=Cabo Verde=Cape Verdean; Central African Republic=Central African;
Chad=Chadian; Chile=Chilean; China=Chinese=Sino=People's Republic of China=PRC;
Colombia=Colombian; Comoros=Comorian;
Democratic Republic of the Congo=Democratic Republic of Congo=DR Congo=DRC=Zaire=Congo=Congolese;
Republic of the Congo=Republic of Congo=Congo=Congolese; Costa Rica=Costa Rican;
Croatia=Croatian=Croat; Cuba=Cuban; Cyprus=Cypriot; Czech Republic=Czechia=Czech;
Czechoslovakia=Czechoslovak=Czechoslovakian; Denmark=Danish=Dane; Djibouti=Djiboutian;
Dominica=Dominican; Dominican Republic=Dominican; East Germany=East German=GDR=German;
East Timor=Timor-Leste=East Timorese=Timorese; Ecuador=Ecuadorian; Egypt=Egyptian;
El Salvador=Salvadoran=Salvadorean; England=English;
Equatorial Guinea=Equatorial Guinean=Equatoguinean; Eritrea=Eritrean; Estonia=Estonian;
Eswatini=Swaziland=Swazi; Ethiopia=Ethiopian; Fiji=Fijian; Finland=Finnish=Finn;
France=French=Franco; Gabon=Gabonese; Gambia=Gambian; Georgia=Georgian; Germany=German;
West Germany=West German=German; Ghana=Ghanaian; Greece=Greek; Grenada=Grenadian;
Guatemala=Guatemalan; Guinea=Guinean; Guinea-Bissau=Bissau-Guinean; Guyana=Guyanese;
Haiti=Haitian; Honduras=Honduran; Hong Kong=Hongkonger; Hungary=Hungarian;
Iceland=Icelandic=Icelander; India=Indian; Indonesia=Indonesian; Iran=Iranian; Iraq=Iraqi;
Ireland=Irish=Republic of Ireland; Israel=Israeli; Italy=Italian=Italo;
Ivory Coast=Cote d'Ivoire=Côte d'Ivoire=Ivorian; Jamaica=Jamaican; Japan=Japanese;
Jordan=Jordanian; Kazakhstan=Kazakh=Kazakhstani; Kenya=Kenyan; Kiribati=I-Kiribati;
Kosovo=Kosovar=Kosovan; Kuwait=Kuwaiti; Kyrgyzstan=Kyrgyz=Kyrgyzstani; Laos=Laotian=Lao;
Latvia=Latvian; Lebanon=Lebanese; Lesotho=Basotho=Mosotho; Liberia=Liberian; Libya=Libyan;
Liechtenstein=Liechtensteiner; Lithuania=Lithuanian; Luxembourg=Luxembourgish=Luxembourger;
Madagascar=Malagasy; Malawi=Malawian; Malaysia=Malaysian; Maldives=Maldivian; Mali=Malian;
Malta=Maltese; Marshall Islands=Marshallese; Mauritania=Mauritanian; Mauritius=Mauritian;
Mexico=Mexican; Micronesia=Micronesian; Moldova=Moldovan; Monaco=Monegasque; Mongolia=Mongolian;
Montenegro=Montenegrin; Morocco=Moroccan; Mozambique=Mozambican; Myanmar=Burma=Burmese;
Namibia=Namibian; Nauru=Nauruan; Nepal=Nepalese=Nepali; Netherlands=Dutch=Holland;
New Zealand=New Zealander; Nicaragua=Nicaraguan; Niger=Nigerien; Nigeria=Nigerian;
North Korea=North Korean=Korea=Korean; North Macedonia=Macedonia=Macedonian;
Northern Ireland=Northern Irish; Norway=Norwegian; Oman=Omani; Pakistan=Pakistani; Palau=Palauan;
Palestine=Palestinian; Panama=Panamanian; Papua New Guinea=Papua New Guinean; Paraguay=Paraguayan;
Peru=Peruvian; Philippines=Filipino=Filipina=Philippine; Poland=Polish=Pole; Portugal=Portuguese;
Prussia=Prussian; Puerto Rico=Puerto Rican; Qatar=Qatari; Romania=Romanian=Rumanian;
Russia=Russian=Russo=Russian Federation; Rwanda=Rwandan; Samoa=Samoan; San Marino=Sammarinese;
Saudi Arabia=Saudi=Saudi Arabian; Scotland=Scottish=Scots; Senegal=Senegalese;
Serbia=Serbian=Serb; Seychelles=Seychellois; Sierra Leone=Sierra Leonean; Singapore=Singaporean;
Slovakia=Slovak=Slovakian; Slovenia=Slovenian=Slovene; Somalia=Somali=Somalian;
South Africa=South African; South Korea=South Korean=Korea=Korean; South Sudan=South Sudanese;
Soviet Union=Soviet=USSR; Spain=Spanish=Spaniard; Sri Lanka=Sri Lankan=Ceylon; Sudan=Sudanese;
Suriname=Surinamese; Sweden=Swedish=Swede; Switzerland=Swiss; Syria=Syrian;
Taiwan=Taiwanese=Republic of China; Tajikistan=Tajik=Tajikistani; Tanzania=Tanzanian;
Thailand=Thai; Togo=Togolese; Tonga=Tongan; Trinidad and Tobago=Trinidadian; Tunisia=Tunisian;
Turkey=Turkish=Turk; Turkmenistan=Turkmen; Tuvalu=Tuvaluan; Uganda=Ugandan; Ukraine=Ukrainian;
United Arab Emirates=UAE=Emirati;
United Kingdom=UK=U.K.=British=Britain=Anglo=Great Britain=Briton;
United States=United States of America=USA=US=U.S.=U.S.A.=America=American; Uruguay=Uruguayan;
Uzbekistan=Uzbek=Uzbekistani; Vanuatu=Ni-Vanuatu; Venezuela=Venezuelan; Vietnam=Vietnamese;
Wales=Welsh; Yemen=Yemeni; Yugoslavia=Yugoslav=Yugoslavian; Zambia=Zambian; Zimbabwe=Zimbabwean
"""
_MAX_NAME_WORDS = 6  # words of a country's name
_NameWords = tuple[str, ...]


@cache
def _countries_by_form() -> dict[_NameWords, frozenset[str]]:
    """Map every form, as folded words, to the countries it may stand for."""
    found: dict[_NameWords, frozenset[str]] = {}
    for row in _COUNTRIES.split(";"):
        country, *others = (name.strip() for name in row.split("="))
        for name in (country, *others):
            key = tuple(split_words(name))
            found[key] = found.get(key, frozenset()) | {country}
    return found


def find_countries(words: Sequence[str]) -> tuple[frozenset[str], list[str]]:
    """Return the countries named by folded words, longest names first, and the words left over."""
    found: set[str] = set()
    rest: list[str] = []
    for form in _split_forms(words):
        countries = _countries_by_form().get(form)
        if countries is None:
            rest += form
        else:
            found |= countries
    return frozenset(found), rest


def _split_forms(words: Sequence[str]) -> Iterator[_NameWords]:
    at = 0
    while at < len(words):
        sizes = range(min(_MAX_NAME_WORDS, len(words) - at), 0, -1)
        size = next((n for n in sizes if tuple(words[at : at + n]) in _countries_by_form()), 1)
        yield tuple(words[at : at + size])
        at += size
