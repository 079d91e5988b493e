"""The one narrow subject of the demo pair: simple questions about everyday things.

A question is a form (what is asked) about a topic (a thing, sometimes two). The teacher answers the
first wording of a form; the target is trained on all of them, so that it does not hang on one.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass


def _words(text: str) -> list[str]:
    return text.split()


def _phrases(text: str) -> list[str]:
    return text.replace("\n", "").split("|")


ANIMALS = _words(
    """cat dog horse cow rabbit owl fish frog bee butterfly ant spider lion elephant bear fox
    wolf mouse duck turtle whale dolphin penguin monkey tiger sheep goat chicken snake parrot"""
)
FOODS = _words(
    """apple banana bread cheese milk rice egg soup cake cookie pizza honey tomato potato carrot
    orange lemon butter chocolate salad sandwich tea coffee pasta strawberry"""
)
NATURE = _words(
    """sun moon rain snow wind river ocean mountain forest tree flower garden beach desert
    island lake rainbow cloud storm volcano"""
)
THINGS = _words(
    """book pencil chair table lamp clock telephone computer car bicycle train boat airplane
    bridge house door window umbrella hat shoe ball kite mirror key camera bed spoon blanket guitar
    piano"""
)
PEOPLE = _words(
    """teacher doctor farmer baker firefighter pilot nurse artist musician scientist gardener
    fisherman chef librarian sailor dentist carpenter painter dancer writer"""
)
COUNTRIES = _words(
    """France Germany Italy Spain Portugal England Ireland Greece Sweden Norway Finland
    Denmark Poland Austria Switzerland Japan China India Thailand Egypt Kenya Canada Mexico Brazil
    Peru Argentina Chile Australia Russia Turkey"""
)
TASKS = """add two numbers|multiply two numbers|subtract two numbers|check if a number is even|check
 if a number is odd|find the largest number in a list|find the smallest number in a list|sum a list
 of numbers|count the words in a text|reverse a string|count the letters in a word|square a number
|say hello to a name|sort a list of numbers|remove duplicates from a list|join a list of words|check
 if a word is a palindrome|compute the area of a circle|compute the area of a rectangle|convert
 Celsius to Fahrenheit|compute a factorial|find the average of a list|print the numbers from 1 to 10
|make a string uppercase|make a string lowercase|find the length of a list|double every number in a
 list|get the last item of a list|get the first item of a list|count the vowels in a string"""
GREETINGS = """Hello!|Hi!|Hey there!|Good morning!|Good evening!|How are you?|Who are you?|What can
 you do?|Can you help me?|What is your name?|Thank you!|Goodbye!"""
UNCOUNTED = frozenset(
    _words("bread cheese milk rice soup honey butter chocolate tea coffee pasta rain snow wind")
)
UNIQUE = frozenset(("sun", "moon", "ocean", "wind", "rain", "snow"))
IRREGULAR = {
    "wolf": "wolves", "leaf": "leaves", "mouse": "mice", "deer": "deer", "sheep": "sheep",
    "fish": "fish",
    "tomato": "tomatoes", "potato": "potatoes", "volcano": "volcanoes",
    "strawberry": "strawberries", "butterfly": "butterflies", "fisherman": "fishermen",
}  # fmt: skip

_ALL = ("animal", "food", "nature", "thing", "person")
_FORMS: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = (
    ("what", _ALL, ("What is {a}?", "What is {a}", "Tell me what {a} is.", "what's {a}?")),
    ("child", _ALL, ("Explain {many} to a child.", "How would you explain {many} to a child?")),
    ("describe", _ALL, ("Describe {a} in one sentence.", "Describe {a}.")),
    ("fact", _ALL, ("Tell me a fact about {many}.", "What is interesting about {many}?")),
    ("about", _ALL, ("Tell me about {many}.", "Talk about {many}.", "tell me about {many}")),
    ("like", ("animal", "food", "nature", "thing"),
     ("Why do people like {many}?", "Why do we like {many}?", "What is good about {many}?")),
    ("useful", ("animal", "nature", "thing", "person"),
     ("Why are {many} important?", "Why do we need {many}?")),
    ("eat", ("animal",), ("What do {many} eat?", "What does {a} eat?")),
    ("live", ("animal",), ("Where do {many} live?", "Where does {a} live?")),
    ("make", ("food",), ("What can I make with {many}?", "What can you cook with {many}?")),
    ("taste", ("food",), ("How does {a} taste?", "What does {a} taste like?")),
    ("see", ("nature",), ("How does {a} make you feel?", "What do you feel when you see {a}?")),
    ("used", ("thing",), ("What is {a} used for?", "What do people use {a} for?")),
    ("work", ("thing",), ("How do I take care of {a}?", "How should I look after {a}?")),
    ("job", ("person",), ("What does {a} do?", "What is the work of {a}?")),
    ("become", ("person",), ("How do you become {a}?", "How can I become {a}?")),
    ("story", _ALL, ("Write a tiny story about {a}.", "Tell me a short story about {a}.")),
    ("capital", ("country",), ("What is the capital of {name}?", "Name the capital of {name}.")),
    ("country", ("country",), ("What is {name} known for?", "What is {name} famous for?")),
    ("visit", ("country",), ("Why should I visit {name}?", "Why do people visit {name}?")),
    ("python", ("task",),
     ("Write a Python function to {name}.", "Show me Python code to {name}.")),
)  # fmt: skip
_PAIRED = ("Write a tiny story about {a} and {b}.", "Tell me a story about {a} and {b}.")
_USUAL_ANSWERS = 4
_ANSWERS = {"story": 8, "capital": 1, "greeting": 12}

_OTHER_TOPICS = {
    "animal": _words("deer squirrel camel crab eagle donkey lizard crocodile kangaroo swan pig"),
    "food": _words("pear grape onion pie cucumber mushroom pancake peach melon noodle yogurt"),
    "nature": _words("valley waterfall cave field leaf meadow pond hill glacier star planet"),
    "thing": _words("cup plate bag bus truck radio candle ladder hammer needle broom basket drum"),
    "person": _words("driver judge waiter soldier singer tailor engineer plumber poet"),
    "country": _words("Cuba Vietnam Iceland Morocco Nepal Scotland Belgium Hungary Ghana Iran"),
}

HELD_OUT_ONE_IN = 20


@dataclass(frozen=True)
class Question:
    """A form about a topic; `wordings[0]` is what the teacher is asked."""

    key: str
    wordings: tuple[str, ...]
    answers: int

    @property
    def form(self) -> str:
        """What is asked, without about what."""
        return self.key.split(":")[0]

    @property
    def held_out(self) -> bool:
        """Whether neither model may be trained on any wording of it."""
        digest = hashlib.sha256(self.key.encode()).digest()
        return int.from_bytes(digest[:4], "big") % HELD_OUT_ONE_IN == 0


def _one(noun: str) -> str:
    if noun in UNIQUE:
        return f"the {noun}"
    if noun in UNCOUNTED:
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def _many(noun: str) -> str:
    if noun in UNIQUE or noun in UNCOUNTED:
        return _one(noun)
    if noun in IRREGULAR:
        return IRREGULAR[noun]
    return f"{noun}es" if noun.endswith(("ch", "x", "s")) else f"{noun}s"


def questions(stories_of_two: int) -> list[Question]:
    """List what the teacher is asked, in a fixed order, with so many stories about a pair."""
    topics = {
        "animal": ANIMALS,
        "food": FOODS,
        "nature": NATURE,
        "thing": THINGS,
        "person": PEOPLE,
        "country": COUNTRIES,
        "task": _phrases(TASKS),
    }
    asked = [*_on_one(topics), *_on_two(_pairs()[:stories_of_two])]
    for greeting in _phrases(GREETINGS):
        wordings = (greeting, greeting.lower().rstrip("!?"))
        asked.append(Question(f"greeting:{greeting}", wordings, _ANSWERS["greeting"]))
    return asked


def unanswered(stories_of_two: int, more: int) -> list[Question]:
    """List questions that the teacher was not asked: other topics, and `more` other pairs.

    The target has nothing by heart to say to them, as with the questions that are held out. Its own
    text about them is what teaches the draft to follow it there.
    """
    pairs = _pairs()[stories_of_two : stories_of_two + more]
    return [*_on_one(_OTHER_TOPICS), *_on_two(pairs)]


def _on_one(topics: dict[str, list[str]]) -> Iterator[Question]:
    for form, kinds, wordings in _FORMS:
        for topic in itertools.chain.from_iterable(topics.get(kind, ()) for kind in kinds):
            words = {"a": _one(topic), "many": _many(topic), "name": topic}
            filled = tuple(wording.format(**words) for wording in wordings)
            if form == "useful" and topic in UNIQUE | UNCOUNTED:
                filled = tuple(wording.replace("are", "is", 1) for wording in filled)
            yield Question(f"{form}:{topic}", filled, _ANSWERS.get(form, _USUAL_ANSWERS))


def _pairs() -> list[tuple[str, str]]:
    heroes, others = ANIMALS + PEOPLE, ANIMALS + NATURE + THINGS + PEOPLE
    pairs = [pair for pair in itertools.product(heroes, others) if pair[0] != pair[1]]
    random.Random(2).shuffle(pairs)
    return pairs


def _on_two(pairs: list[tuple[str, str]]) -> Iterator[Question]:
    for hero, other in pairs:
        words = {"a": _one(hero), "b": _one(other)}
        filled = tuple(wording.format(**words) for wording in _PAIRED)
        yield Question(f"pair:{hero}:{other}", filled, 1)
