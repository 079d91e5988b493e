"""The everyday things that the questions are about, by category, and how English names them."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.replace("\n", "").split("|"))


THINGS: dict[str, tuple[str, ...]] = {
    "animal": _words(
        """cat dog horse cow rabbit owl frog bee butterfly ant spider lion elephant bear fox wolf
        mouse duck turtle whale dolphin penguin monkey tiger sheep goat chicken snake parrot deer
        squirrel camel crab eagle donkey lizard crocodile kangaroo swan pig zebra giraffe leopard
        panda koala otter beaver hedgehog bat rat hamster seal shark salmon octopus jellyfish
        starfish lobster snail worm beetle ladybug moth fly mosquito grasshopper pigeon crow robin
        hawk peacock flamingo pelican turkey goose ostrich toad gorilla raccoon skunk moose buffalo
        pony puppy kitten lamb"""
    ),
    "food": _words(
        """apple banana pear peach plum grape orange lemon lime melon cherry strawberry blueberry
        mango pineapple coconut olive tomato potato carrot onion cucumber mushroom pumpkin cabbage
        bean pea corn spinach lettuce broccoli garlic bread cheese milk rice soup egg cake cookie
        pizza honey butter chocolate salad sandwich tea coffee pasta pie pancake yogurt cream jam
        sugar salt flour juice lemonade muffin donut waffle burger sausage ham bacon steak noodle
        almond peanut popcorn candy pepper"""
    ),
    "thing": _words(
        """book pencil pen notebook paper eraser ruler chair table desk lamp clock watch telephone
        computer radio television camera car bicycle train boat airplane bus truck door window
        umbrella hat shoe boot sock glove scarf coat jacket shirt dress belt ball kite doll puzzle
        balloon mirror key lock bed pillow blanket sofa carpet curtain shelf drawer box bag backpack
        basket bucket suitcase wallet spoon fork knife plate bowl cup glass bottle pot pan kettle
        oven stove fridge toaster candle flashlight battery broom mop sponge towel soap toothbrush
        comb hammer nail screw screwdriver saw drill wrench axe shovel rake ladder rope needle
        button zipper tape glue stamp envelope letter map compass telescope microscope calculator
        calendar guitar piano violin drum flute trumpet whistle bell tent sled skateboard scooter
        wheel engine helmet anchor magnet thermometer bandage coin ring necklace fan heater hose
        fence bench"""
    ),
    "nature": _words(
        """sun moon rain snow wind river ocean mountain forest tree flower beach desert island lake
        rainbow cloud storm volcano valley waterfall cave field leaf pond hill star planet rock sand
        grass rose sunflower oak"""
    ),
    "job": _words(
        """teacher doctor farmer baker firefighter pilot nurse artist musician scientist gardener
        fisherman chef librarian sailor dentist carpenter painter dancer writer driver judge waiter
        soldier singer tailor engineer plumber actor lawyer photographer mechanic electrician
        builder butcher astronaut programmer journalist coach barber cashier"""
    ),
    "place": _words(
        """school hospital library museum bakery farm garden park zoo market bank church castle
        hotel restaurant airport harbor theater cinema gym stadium office factory kitchen bedroom
        bathroom garage playground city village bridge lighthouse"""
    ),
    "country": _words(
        """France Germany Italy Spain Portugal England Ireland Greece Sweden Norway Finland Denmark
        Poland Austria Switzerland Japan China India Thailand Egypt Kenya Canada Mexico Brazil Peru
        Argentina Chile Australia Russia Turkey Cuba Vietnam Iceland Morocco Belgium Hungary
        Scotland Ukraine Iran Iraq Colombia Indonesia"""
    ),
    "task": _phrases(
        """add two numbers|multiply two numbers|subtract two numbers|divide two numbers|check if a
 number is even|check if a number is odd|find the largest number in a list|find the smallest number
 in a list|sum a list of numbers|count the words in a text|reverse a string|count the letters in a
 word|square a number|sort a list of numbers|remove duplicates from a list|join a list of words
|check if a word is a palindrome|compute the area of a circle|compute the area of a rectangle
|convert Celsius to Fahrenheit|find the average of a list|make a string uppercase|make a string
 lowercase|find the length of a list|double every number in a list|get the last item of a list|get
 the first item of a list|count the vowels in a string|round a number|find the larger of two numbers
|check if a list is empty|reverse a list|split a text into words|repeat a string|cube a number"""
    ),
    "greeting": _phrases(
        """Hello!|Hi!|Hey!|Good morning!|Good evening!|How are you?|Who are you?|What can you do?
|Can you help me?|What is your name?|Thank you!|Goodbye!|Hello, who are you?"""
    ),
}

DRAFT_ONLY: dict[str, tuple[str, ...]] = {
    "animal": _words("cheetah dragonfly seagull rooster bull wasp eel antelope weasel reindeer"),
    "food": _words("apricot raspberry cauliflower cereal omelet toast lasagna cracker pudding fig"),
    "thing": _words(
        "purse vase hanger crayon van ferry printer spade apron cushion tray jar swing"
    ),
    "nature": _words("stream meadow glacier shell tulip canyon jungle"),
    "job": _words("banker poet clown sculptor biologist miner hunter"),
    "place": _words("temple bookstore cafe attic camp laboratory"),
    "country": _words("Nepal Ghana Bolivia Croatia Jamaica"),
}
"""Asked of the target alone: the teacher never answered about them."""

NEVER_TAUGHT: dict[str, tuple[str, ...]] = {
    "animal": _words("hippo falcon walrus caterpillar chipmunk"),
    "food": _words("avocado celery mustard biscuit"),
    "thing": _words("tractor keyboard slipper wheelbarrow jug"),
    "nature": _words("thunder swamp"),
    "job": _words("detective veterinarian shepherd"),
    "place": _words("pharmacy aquarium"),
}
"""In no question of either model's training; an answer about something else may mention one."""

UNCOUNTED = frozenset(
    _words(
        """paper tape glue soap corn spinach lettuce broccoli garlic bread cheese milk rice soup
        honey butter chocolate tea coffee pasta yogurt cream jam sugar salt flour juice lemonade ham
        bacon popcorn candy pepper rain snow sand grass wind toast cereal pudding celery mustard
        thunder cauliflower lasagna"""
    )
)
UNIQUE = frozenset(_words("sun moon ocean wind"))
_LIKE_YOU = ("uni", "use")


def one(noun: str) -> str:
    """Return the noun as a sentence names one of it: `a cat`, `milk`, `the sun`, `France`."""
    if noun in UNIQUE:
        return f"the {noun}"
    if noun in UNCOUNTED or noun[0].isupper():
        return noun
    vowel = noun[0] in "aeiou" and not noun.startswith(_LIKE_YOU)
    return f"an {noun}" if vowel else f"a {noun}"
