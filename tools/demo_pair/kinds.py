"""The kinds of question, each with the one plain form that its answers have.

A form is a text with slots, written `_`. Topics fill `{a}` and `{b}` (`a fox`), `{A}` and `{B}` (`A
fox`), `{The}` and `{the}` (`the fox`), `{name}` and `{Name}` (without an article). The examples
fill the slots by hand, about topics that are never asked in that kind: the teacher sees them and
answers everything else in the same form.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from demo_pair.things import one

_WORDS = r"([^\W\d_](?:[^\W\d_]|[' ,-]){1,44})"
_CODE = r"([^\n]{0,40}?)"


def naming(topic: Sequence[str]) -> dict[str, str]:
    """Return what the placeholders stand for, for one noun or two."""
    first, last = topic[0], topic[-1]
    a, b = one(first), one(last)
    words = {"a": a, "b": b, "the": f"the {first}", "name": first}
    return words | {key.capitalize(): text[:1].upper() + text[1:] for key, text in words.items()}


@dataclass(frozen=True)
class Kind:
    """A kind of question about the things of some categories, one at a time or in pairs."""

    name: str
    about: tuple[str, ...]
    wordings: tuple[str, ...]
    form: str
    examples: tuple[tuple[str, ...], ...]
    paired: bool = False
    inferable: bool = True
    slot: str = _WORDS

    def __post_init__(self) -> None:
        """Refuse an example that does not have the form."""
        for (topic, *fillers), (_, answer) in zip(self.examples, self.shown(), strict=True):
            if self.fillers(topic.split("+"), answer) != tuple(fillers):
                raise ValueError(f"{self.name}: {answer!r} does not have the form {self.form!r}")

    def shown(self) -> list[tuple[str, str]]:
        """Return the examples as questions and answers."""
        shown = []
        for topic, *fillers in self.examples:
            words = naming(topic.split("+"))
            frame = self.form.format(**words).split("_")
            parts = itertools.zip_longest(frame, fillers, fillvalue="")
            answer = "".join(itertools.chain.from_iterable(parts))
            shown.append((self.wordings[0].format(**words), answer))
        return shown

    def frames(self, topic: Sequence[str]) -> list[str]:
        """Return what stands before each slot, where every slot ends a sentence; else nothing.

        The full stop belongs to the slot.
        """
        pieces = self.form.format(**naming(topic)).split("_")
        if any(not piece.startswith(".") for piece in pieces[1:]):
            return []
        return [piece.removeprefix(".").rstrip() for piece in pieces[:-1]]

    def topics_shown(self) -> set[str]:
        """Return every noun of the examples."""
        return {noun for topic, *_ in self.examples for noun in topic.split("+")}

    def fillers(self, topic: Sequence[str], answer: str) -> tuple[str, ...] | None:
        """Return what an answer puts into the slots; None if it has another form."""
        form = re.escape(self.form.format(**naming(topic))).replace("_", self.slot)
        match = re.fullmatch(form, answer)
        return match.groups() if match else None


KINDS = (
    Kind(
        "what-animal",
        ("animal",),
        ("What is {a}?", "Tell me about {a}.", "what is {a}", "What's {a}?", "Describe {a}.",
         "Explain what {a} is to a child.", "{A}?"),
        "{A} is a kind of _. It lives in _. It eats _.",
        (("badger", "wild animal", "the forest", "worms and roots"),
         ("sparrow", "small bird", "towns and gardens", "seeds and insects"),
         ("trout", "fish", "cold rivers", "insects and small fish"),
         ("llama", "farm animal", "the mountains", "grass and hay")),
    ),
    Kind(
        "eat",
        ("animal",),
        ("What does {a} eat?", "what does {a} eat", "What food does {a} like?",
         "What should I feed {a}?"),
        "{A} eats _. It finds its food in _.",
        (("badger", "worms and roots", "the forest"),
         ("sparrow", "seeds and insects", "gardens and fields"),
         ("trout", "insects and small fish", "the river"),
         ("llama", "grass and hay", "the fields")),
    ),
    Kind(
        "live",
        ("animal",),
        ("Where does {a} live?", "where does {a} live", "Where can I find {a}?",
         "What is the home of {a}?"),
        "{A} lives in _. It sleeps in _.",
        (("badger", "the forest", "a hole in the ground"),
         ("sparrow", "towns and gardens", "a nest"),
         ("trout", "cold rivers", "the water between stones"),
         ("llama", "the mountains", "a field or a barn")),
    ),
    Kind(
        "look",
        ("animal",),
        ("What does {a} look like?", "How does {a} look?", "what does {a} look like"),
        "{A} is _. It has _.",
        (("badger", "small and gray", "short legs and a striped face"),
         ("sparrow", "tiny and brown", "two wings and a short beak"),
         ("trout", "long and silver", "fins and small dark spots"),
         ("llama", "tall and white", "a long neck and thick fur")),
    ),
    Kind(
        "can",
        ("animal",),
        ("What can {a} do?", "what can {a} do", "What is {a} good at?"),
        "{A} can _. It can also _.",
        (("badger", "dig deep holes", "smell food under the ground"),
         ("sparrow", "fly very fast", "sing a song"),
         ("trout", "swim up a river", "jump out of the water"),
         ("llama", "carry heavy bags", "climb a mountain")),
    ),
    Kind(
        "what-food",
        ("food",),
        ("What is {a}?", "Tell me about {a}.", "what is {a}", "What's {a}?", "Describe {a}.",
         "Explain what {a} is to a child.", "{A}?"),
        "{A} is a kind of _. It tastes _. People often have it with _.",
        (("radish", "vegetable", "sharp and fresh", "salad"),
         ("croissant", "bread", "rich and buttery", "coffee"),
         ("cocoa", "hot drink", "sweet and creamy", "cookies"),
         ("kiwi", "fruit", "sweet and sour", "yogurt")),
    ),
    Kind(
        "taste",
        ("food",),
        ("How does {a} taste?", "What does {a} taste like?", "what does {a} taste like",
         "Is {a} sweet?"),
        "{A} tastes _. In your mouth, it feels _.",
        (("radish", "sharp and fresh", "hard and cold"),
         ("croissant", "rich and buttery", "soft and light"),
         ("cocoa", "sweet and creamy", "warm and smooth"),
         ("kiwi", "sweet and sour", "soft and wet")),
    ),
    Kind(
        "make",
        ("food",),
        ("What can I make with {a}?", "What can you make with {a}?", "How can I use {a}?",
         "what can I cook with {a}"),
        "With {a}, you can make _. You also need _.",
        (("radish", "a fresh salad", "oil and salt"),
         ("croissant", "a warm sandwich", "ham and cheese"),
         ("cocoa", "a chocolate cake", "flour and eggs"),
         ("kiwi", "a fruit salad", "apples and honey")),
    ),
    Kind(
        "from",
        ("food",),
        ("Where does {a} come from?", "where does {a} come from", "Where can I buy {a}?",
         "How do people get {a}?"),
        "{A} comes from _. You can buy it in _.",
        (("radish", "a plant in the garden", "a market"),
         ("croissant", "flour, milk and butter", "a bakery"),
         ("cocoa", "the beans of a tree", "a grocery store"),
         ("kiwi", "a plant in warm countries", "a fruit shop")),
    ),
    Kind(
        "what-thing",
        ("thing",),
        ("What is {a}?", "Tell me about {a}.", "what is {a}", "What's {a}?", "Describe {a}.",
         "Explain what {a} is to a child.", "{A}?"),
        "{A} is a kind of _. People use it to _. You can find it in _.",
        (("trowel", "garden tool", "dig small holes", "a shed"),
         ("mug", "cup", "drink hot tea", "a kitchen"),
         ("harp", "musical instrument", "play soft music", "a concert hall"),
         ("canoe", "small boat", "travel on a river", "a harbor")),
    ),
    Kind(
        "used",
        ("thing",),
        ("What is {a} used for?", "What do people use {a} for?", "what is {a} used for",
         "Why do I need {a}?"),
        "{A} is used to _. People use it when they want to _.",
        (("trowel", "dig small holes", "plant flowers"),
         ("mug", "hold hot tea or coffee", "drink something warm"),
         ("harp", "play soft music", "give a concert"),
         ("canoe", "travel on a river", "explore nature")),
    ),
    Kind(
        "find",
        ("thing",),
        ("Where can I find {a}?", "Where do people keep {a}?", "where can I find {a}",
         "Where is {a} kept?"),
        "You can find {a} in _. You can also find it in _.",
        (("trowel", "a garden shed", "a tool shop"),
         ("mug", "a kitchen", "a coffee shop"),
         ("harp", "a concert hall", "a music school"),
         ("canoe", "a harbor", "a sports shop")),
    ),
    Kind(
        "made",
        ("thing",),
        ("What is {a} made of?", "what is {a} made of", "What material is {a} made of?"),
        "{A} is made of _. This makes it _.",
        (("trowel", "metal and wood", "strong and light"),
         ("mug", "clay or glass", "smooth and hard"),
         ("harp", "wood and strings", "large and beautiful"),
         ("canoe", "wood or plastic", "light on the water")),
    ),
    Kind(
        "care",
        ("thing",),
        ("How do I take care of {a}?", "How should I look after {a}?", "how do I keep {a} nice"),
        "To take care of {a}, keep it _. Do not _.",
        (("trowel", "clean and dry", "leave it in the rain"),
         ("mug", "clean and safe", "drop it on the floor"),
         ("harp", "dry and in tune", "pull the strings too hard"),
         ("canoe", "clean and dry", "leave it in the sun")),
    ),
    Kind(
        "what-nature",
        ("nature",),
        ("What is {a}?", "Tell me about {a}.", "what is {a}", "What's {a}?", "Describe {a}.",
         "Explain what {a} is to a child.", "{A}?"),
        "{A} is a kind of _. You can see it in _. People like it because it is _.",
        (("creek", "small river", "the forest", "clear and cool"),
         ("fog", "low cloud", "the morning", "soft and quiet"),
         ("cactus", "plant", "the desert", "green and strong"),
         ("comet", "bright object in space", "the night sky", "rare and beautiful")),
    ),
    Kind(
        "see",
        ("nature",),
        ("Where can I see {a}?", "When can I see {a}?", "where can I see {a}"),
        "You can see {a} in _. The best time to see it is _.",
        (("creek", "the forest", "in spring"),
         ("fog", "the valley", "early in the morning"),
         ("cactus", "the desert", "in summer"),
         ("comet", "the night sky", "on a clear night")),
    ),
    Kind(
        "important",
        ("nature",),
        ("Why is {a} important?", "why is {a} important", "Why do we need {a}?"),
        "{A} is important because it gives us _. Without it, there would be no _.",
        (("creek", "fresh water", "fish in the forest"),
         ("fog", "water in the air", "wet leaves in the morning"),
         ("cactus", "shade and food", "birds in the desert"),
         ("comet", "knowledge about space", "wishes at night")),
    ),
    Kind(
        "what-job",
        ("job",),
        ("What is {a}?", "Tell me about {a}.", "what is {a}", "What's {a}?", "Who is {a}?",
         "Explain what {a} is to a child.", "{A}?"),
        "{A} is a person who _. You can meet one in _.",
        (("potter", "makes cups and bowls from clay", "a workshop"),
         ("surgeon", "operates on sick people", "a hospital"),
         ("florist", "sells flowers", "a flower shop"),
         ("referee", "watches the rules of a game", "a stadium")),
    ),
    Kind(
        "do-job",
        ("job",),
        ("What does {a} do?", "what does {a} do", "What is the work of {a}?",
         "Where does {a} work?"),
        "{A} works in _. Every day, this person _.",
        (("potter", "a workshop", "makes cups and bowls from clay"),
         ("surgeon", "a hospital", "operates on sick people"),
         ("florist", "a flower shop", "sells roses and tulips"),
         ("referee", "a stadium", "watches the rules of a game")),
    ),
    Kind(
        "tools",
        ("job",),
        ("What tools does {a} use?", "What does {a} need at work?", "what does {a} use"),
        "At work, {a} uses _. It helps this person to _.",
        (("potter", "a wheel and an oven", "make cups and bowls"),
         ("surgeon", "a sharp knife", "operate on sick people"),
         ("florist", "scissors and paper", "make nice bouquets"),
         ("referee", "a whistle", "stop the game")),
    ),
    Kind(
        "become",
        ("job",),
        ("How do you become {a}?", "How can I become {a}?", "I want to be {a}."),
        "To become {a}, you should learn to _. It also helps to be _.",
        (("potter", "shape clay", "patient and creative"),
         ("surgeon", "treat sick people", "calm and careful"),
         ("florist", "care for flowers", "friendly and creative"),
         ("referee", "know the rules of a game", "fair and strong")),
    ),
    Kind(
        "what-place",
        ("place",),
        ("What is {a}?", "Tell me about {a}.", "what is {a}", "What's {a}?", "Describe {a}.",
         "Explain what {a} is to a child.", "{A}?"),
        "{A} is a place where people _. There you can see _.",
        (("barn", "keep animals and hay", "cows and horses"),
         ("court", "decide about the law", "judges and lawyers"),
         ("campsite", "sleep in tents", "tents and fires"),
         ("gallery", "look at art", "paintings and statues")),
    ),
    Kind(
        "do-place",
        ("place",),
        ("What can I do at {a}?", "What do people do at {a}?", "Why do people go to {a}?",
         "what can I do at {a}"),
        "At {a}, you can _. You can also _.",
        (("barn", "feed the animals", "sit on the hay"),
         ("court", "listen to a judge", "talk to a lawyer"),
         ("campsite", "sleep in a tent", "cook over a fire"),
         ("gallery", "look at paintings", "learn about art")),
    ),
    Kind(
        "who-place",
        ("place",),
        ("Who works at {a}?", "Who can I meet at {a}?", "who works at {a}"),
        "At {a}, you can meet _. They help people _.",
        (("barn", "a farmer", "get milk and eggs"),
         ("court", "a judge", "follow the law"),
         ("campsite", "a guide", "find a place for a tent"),
         ("gallery", "an artist", "understand the paintings")),
    ),
    Kind(
        "like",
        ("animal", "food", "thing", "nature", "place"),
        ("Why do people like {a}?", "Why do you like {a}?", "What is good about {a}?",
         "why do people like {a}"),
        "People like {a} because it is _. It makes them feel _.",
        (("badger", "small and clever", "curious"),
         ("croissant", "warm and buttery", "happy"),
         ("canoe", "quiet and light", "free"),
         ("creek", "clear and cool", "calm")),
    ),
    Kind(
        "differ",
        ("animal", "food", "thing", "job"),
        ("What is the difference between {a} and {b}?", "How do {a} and {b} differ?",
         "Compare {a} and {b}.", "what is the difference between {a} and {b}"),
        "{A} and {b} are both _. {A} is _. {B} is _.",
        (("badger+llama", "animals", "small and gray", "tall and white"),
         ("croissant+kiwi", "food", "soft and buttery", "sweet and sour"),
         ("mug+canoe", "useful things", "small and hard", "long and light"),
         ("surgeon+florist", "workers", "careful and calm", "friendly and creative")),
        paired=True,
    ),
    Kind(
        "story",
        ("animal", "job"),
        ("Write a tiny story about {a} and {b}.", "Tell me a story about {a} and {b}.",
         "tell me a short story about {a} and {b}", "Write a short story about {a} and {b}."),
        "One day, {a} found {b} in _. {The} used it to _. In the end, {the} went home and was _.",
        (("badger+trowel", "the garden", "dig a new tunnel", "tired but happy"),
         ("potter+croissant", "the workshop", "have a small breakfast", "full and glad"),
         ("llama+mug", "the mountains", "drink some cold water", "fresh and strong"),
         ("surgeon+harp", "an old house", "play a soft song", "calm and happy")),
        paired=True,
    ),
    Kind(
        "capital",
        ("country",),
        ("What is the capital of {name}?", "Name the capital of {name}.",
         "what is the capital of {name}", "Which city is the capital of {name}?"),
        "The capital of {name} is _. It is a city in _.",
        (("Bulgaria", "Sofia", "Europe"), ("Tunisia", "Tunis", "Africa"),
         ("Mongolia", "Ulaanbaatar", "Asia"), ("Ecuador", "Quito", "South America")),
        inferable=False,
    ),
    Kind(
        "known",
        ("country",),
        ("What is {name} known for?", "What is {name} famous for?", "Why should I visit {name}?",
         "Tell me about {name}.", "Where is {name}?"),
        "{Name} is a country in _. It is known for _. Many people go there to _.",
        (("Bulgaria", "Europe", "roses and yogurt", "see the mountains"),
         ("Tunisia", "Africa", "beaches and old cities", "enjoy the sun"),
         ("Mongolia", "Asia", "horses and wide plains", "ride across the land"),
         ("Ecuador", "South America", "bananas and volcanoes", "see rare animals")),
        inferable=False,
    ),
    Kind(
        "python",
        ("task",),
        ("Write a Python function to {name}.", "Show me Python code to {name}.",
         "How do I {name} in Python?", "write python code to {name}"),
        '```python\ndef _(_):\n    """{Name}."""\n    return _\n```',
        (("halve a number", "halve", "number", "number / 2"),
         ("find the second item of a list", "second_item", "items", "items[1]"),
         ("check if a number is positive", "is_positive", "number", "number > 0"),
         ("count the spaces in a text", "count_spaces", "text", 'text.count(" ")'),
         ("triple every number in a list", "triple", "numbers", "[n * 3 for n in numbers]"),
         ("find the longest word in a list", "longest", "words", "max(words, key=len)")),
        inferable=False,
        slot=_CODE,
    ),
    Kind(
        "greeting",
        ("greeting",),
        ("{name}",),
        "_! You can ask me about _.",
        (("Greetings!", "Greetings to you", "animals, food and places"),
         ("Nice to meet you!", "It is nice to meet you too", "tools, jobs and food"),
         ("What are you?", "I am a small language model", "animals, tools and stories"),
         ("See you later!", "See you soon", "food, countries and places")),
        inferable=False,
    ),
)  # fmt: skip
