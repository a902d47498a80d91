"""Spelling, repeating and JSON, for the demo model's data."""

import json
from pathlib import Path

from facts import CITIES, NAMES
from phrasing import Item, expand, is_held, join_and, pick, say

WORDS = (Path(__file__).parent / "data" / "words.txt").read_text().split()
ONSETS = ("b br c ch cl d dr f fl g gr h j k l m n p ph pl qu r s sh sl st t "
          "th tr v w y z").split() + [""]
VOWELS = "a a e e i i o o u ai ea ee ie oo ou y".split()
CODAS = "b ck d g k l ll m n nd ng nt p r rd rn s ss st t x".split() + [""] * 8


def made_up(rng, syllables=None):
    """A made-up word."""
    count = syllables or rng.choice([1, 2, 2, 3])
    return "".join(rng.choice(ONSETS) + rng.choice(VOWELS) + rng.choice(CODAS)
                   for _ in range(count)) or "za"


def any_name(rng, held):
    """A first name: a real or a made-up one."""
    if rng.random() < 0.45:
        return pick(rng, held, NAMES)
    while True:
        name = made_up(rng, rng.choice([1, 2, 2, 3])).capitalize()
        if 2 < len(name) < 11 and is_held(name) == held:
            return name


SPELL = ["[Spell|Please spell] {w}.", "[Spell|Please spell] the word {w}.",
         "How do you spell {w}?", "How is {w} spelled?", 'Spell "{w}".',
         'Spell the word "{w}".', "Can you spell {w}[| for me]?",
         "How do I [spell|write] {w}?", "Spell {w}[| for me][|, please].",
         'How do you spell "{w}"?', "What is the spelling of {w}?",
         "Could you spell the word {w}?", "How is the word {w} spelled?",
         "Spell: {w}", "Spell {w} letter by letter.", "spelling of {w}?",
         "Spell out {w}.", "Spell out the word {w}[|, please]."]
SPELL_UNSEEN = ["Would you spell the word {w}?", "Tell me how to spell {w}.",
                'Please spell out "{w}" for me.']
LETTERS = ["How many letters [are in|does|has] {w}[| have]?",
           "How many letters are in [|the word ]{w}?",
           'How many letters does "{w}" have?', "Count the letters in {w}."]
FIRST = ["What is the first letter of {w}?", "Which letter does {w} [start|"
         "begin] with?", 'What letter does "{w}" begin with?']
LAST = ["What is the last letter of {w}?", "Which letter does {w} end with?"]
BACK = ["Spell {w} backwards.", "Spell the word {w} backwards.",
        "[Reverse|Write] the letters of {w}[| backwards]."]


def _a_word(rng, held):
    r = rng.random()
    if r < 0.7:
        return pick(rng, held, WORDS)
    if r < 0.8:
        return any_name(rng, held)
    while True:
        w = made_up(rng)
        if 2 < len(w) < 12 and is_held(w) == held:
            return w


def joined(rng, held):
    """The beginning of one word and the end of another, so that the letters of
    all tokens occur."""
    while True:
        a, b = rng.choice(WORDS + NAMES), rng.choice(WORDS)
        a = a[:rng.choice([len(a), len(a), rng.randint(1, len(a))])]
        b = b[rng.randint(0, len(b)):] if rng.random() < 0.5 else \
            b[:rng.randint(0, len(b))]
        w = a + b
        if 1 < len(w) < 13 and w.isalpha() and is_held(w) == held:
            return w


def spelling_of_joined(rng, held):
    """Spelling of made-up words; not asked by eval.py."""
    w = joined(rng, held)
    if rng.random() < 0.04:
        w = w.upper()
    if rng.random() < 0.25:
        return spelling(rng, held, w)
    return Item(say(rng, held, SPELL + SPELL_MORE, w=w), "-".join(w),
                f"I say the letters of {w} one by one.")


SPELL_MORE = ["Tell me the letters of {w}.", "Write {w} letter by letter.",
              "Please spell out {w}.", "Would you please spell {w}?",
              "I want to know how to spell {w}.",
              "Give me the spelling of {w}.", "Which letters make up {w}?",
              "Show me how {w} is spelled."]


def spelling(rng, held, word=None):
    w = word or _a_word(rng, held)
    spelt = "-".join(w)
    kind = rng.randrange(12)
    if kind < 8:
        return Item(say(rng, held, SPELL, SPELL_UNSEEN, w=w), spelt,
                    f"I say the letters of {w} one by one.")
    if kind == 8:
        return Item(say(rng, held, LETTERS, w=w),
                    f"{spelt}: {len(w)} letters.",
                    f"The letters of {w} are {spelt}. I count {len(w)}.")
    if kind == 9:
        return Item(say(rng, held, FIRST, w=w), f"{w} starts with {w[0]}.",
                    f"{w} is {spelt}.")
    if kind == 10:
        return Item(say(rng, held, LAST, w=w), f"{w} ends with {w[-1]}.",
                    f"{w} is {spelt}.")
    return Item(say(rng, held, BACK, w=w), "-".join(reversed(w)),
                f"{w} is {spelt}; I turn it round.")


SUBJECTS = ("the cat|the old man|my sister|a small dog|the teacher|our friend|"
            "the quick brown fox|the king|a young girl|the robot|the server|"
            "everybody|nobody|the red car|an owl|the baker|she|he|we|they|"
            "the moon|a tiny model|the river|the wind|the big black bird|"
            "the doctor|the boy next door|my neighbour").split("|")
VERBS = ("likes|sees|finds|buys|wants|eats|knows|forgets|remembers|paints|"
         "builds|carries|opens|jumps over|looks at|runs after|waits for|"
         "sings about|dreams of|walks past|sits on|writes about").split("|")
OBJECTS = ("the mat|a green apple|the lazy dog|an old book|the blue house|"
           "warm bread|the long road|a letter|two birds|the open window|"
           "a cup of tea|the stars|the garden|his hat|her bag|the river|"
           "a strange song|the last train|ten coins|the empty box|nginx|"
           "a secret|the key to the door|nothing at all").split("|")
TAILS = ("|||| every day| at night| in the morning| with a smile| again| "
         "on Monday| in the rain| by the sea| for a while| after lunch| "
         "very slowly| and goes home| because it is late").split("|")


def plain_sentence(rng):
    text = (rng.choice(SUBJECTS) + " " + rng.choice(VERBS) + " "
            + rng.choice(OBJECTS) + rng.choice(TAILS))
    return text[0].upper() + text[1:] + rng.choice("...!?")


def _any_token(rng):
    r = rng.random()
    if r < 0.55:
        return rng.choice(WORDS)
    if r < 0.7:
        return made_up(rng)
    if r < 0.8:
        return str(rng.randint(0, 10 ** rng.randint(1, 6)))
    if r < 0.86:
        return rng.choice(NAMES + CITIES)
    if r < 0.92:
        return rng.choice(WORDS).upper()
    return rng.choice(["é", "ü", "Grüße", "señor", "naïve", "你好", "世界",
                       "привет", "мир", "🙂", "🎉", "👍", "ok?", "(yes)",
                       "a-b", "x_1", "1.5", "50%", "$5", "C++", "#1", "a/b",
                       "foo@bar.com", "καλημέρα", "ça", "¿qué?", "→", "…"])


def random_words(rng):
    return " ".join(_any_token(rng) for _ in range(rng.randint(1, 9)))


REPEAT = ["Repeat: {s}", "Repeat after me: {s}", "Repeat this: {s}",
          "Repeat this sentence: {s}", "Repeat the sentence: {s}",
          "Please repeat: {s}", "Say: {s}", 'Say "{s}"', 'Repeat "{s}"',
          'Repeat the sentence "{s}"', "Echo: {s}", "Can you repeat this? {s}",
          'Can you say "{s}"?', "Repeat exactly: {s}",
          "[Reply|Answer|Respond] with exactly: {s}",
          '[Reply|Answer|Respond] with exactly "{s}"',
          "Repeat the following[| sentence| text]: {s}",
          "Write this[| again]: {s}", "Copy this[| text| sentence]: {s}",
          'Say "{s}" and nothing else.', "Repeat what I say: {s}",
          "Please repeat the following sentence: {s}", "Say exactly: {s}",
          'Please say "{s}".', "Repeat the words: {s}",
          'Repeat this sentence: "{s}"', "Repeat after me:\n{s}",
          "Repeat the following text:\n\n{s}"]
REPEAT_UNSEEN = ["Please repeat after me: {s}", "Would you repeat this: {s}",
                 'Repeat the following words: "{s}"',
                 "Say the following: {s}"]
TWICE = ['Say "{s}" twice.', 'Repeat "{s}" two times.', 'Repeat "{s}" twice.']
THRICE = ['Say "{s}" three times.', 'Repeat "{s}" three times.',
          "Repeat the word {s} three times."]


def repeating(rng, held):
    r = rng.random()
    if r < 0.12:
        w, many = _a_word(rng, held), rng.choice([2, 3])
        ask = say(rng, held, TWICE if many == 2 else THRICE, s=w)
        return Item(ask, " ".join([w] * many), f"I say {w} {many} times.")
    while True:
        text = plain_sentence(rng) if r < 0.6 else random_words(rng)
        if is_held(text) == held:
            break
    if rng.random() < 0.2:
        text = text.rstrip(".?!")
    if rng.random() < 0.1:
        text = text.lower()
    return Item(say(rng, held, REPEAT, REPEAT_UNSEEN, s=text), text,
                "I say the same words again.")


# -- JSON ---------------------------------------------------------------------

STRING_KEYS = {"name": NAMES, "city": CITIES, "country": CITIES,
               "color": ["red", "green", "blue", "yellow", "black", "white"],
               "colour": ["red", "green", "blue", "yellow", "pink"],
               "job": ["teacher", "doctor", "baker", "pilot", "nurse"],
               "animal": ["dog", "cat", "horse", "owl", "fox"],
               "fruit": ["apple", "pear", "plum", "cherry"],
               "title": WORDS[:400], "status": ["ok", "error", "ready"],
               "language": ["English", "French", "German", "Spanish"]}
NUMBER_KEYS = ["age", "id", "count", "price", "year", "size", "score",
               "temperature", "x", "y", "port", "total"]
BOOL_KEYS = ["active", "ready", "ok", "enabled", "open", "done"]


def _json_value(rng, held, key):
    if key in STRING_KEYS:
        if rng.random() < 0.3:
            return any_name(rng, held) if key == "name" else _a_word(rng, held)
        return rng.choice(STRING_KEYS[key])
    if key in BOOL_KEYS:
        return rng.random() < 0.5
    if key in NUMBER_KEYS:
        return rng.randint(1, 99) if rng.random() < 0.8 else rng.randint(0, 9999)
    return _a_word(rng, held)


def _json_pairs(rng, held):
    while True:
        keys = ["name", "age"]
        if rng.random() > 0.3:
            pool = list(STRING_KEYS) * 2 + NUMBER_KEYS + BOOL_KEYS
            pool += [rng.choice(WORDS) for _ in range(6)]
            keys = list(dict.fromkeys(
                rng.choice(pool) for _ in range(rng.choice([1, 2, 2, 2, 3]))))
        pairs = {k: _json_value(rng, held, k) for k in keys}
        if is_held(str(pairs)) == held:
            return pairs


LINK = [" ", " ", " = ", ": ", " is ", " set to "]
ASK_JSON = ["[Give me|Write|Return|Make|Create|Output|Produce|Show me|"
            "Generate|I need] a [|small ]JSON object with {p}.",
            "[Write|Give me|Return] JSON with {p}.", "JSON with {p}",
            "[Answer|Reply|Respond] with a JSON object with {p}.",
            "[Put|Write] this [into|as|in] JSON: {p}", "As JSON: {p}",
            "[Turn|Convert|Make] this [to|into] [JSON|a JSON object]: {p}",
            "A JSON object with {p}, please.",
            "Can you [write|make|give me] a JSON object with {p}?",
            "[Give me|Return|Write] a JSON object with the [keys|fields] {p}.",
            "[Give me|Return|Write] a JSON object[:| where] {p}"]
ONLY_JSON = [" Only JSON.", " [Answer|Reply] with [only|just] JSON.",
             " No other text.", " Only [the |]JSON, no other text.",
             " Return only JSON."]
ASK_JSON_UNSEEN = ["Build a JSON object that has {p}.",
                   "Please give me a JSON object with {p}."]
KEYS = ["[Give me|Return|Write] a JSON object with the [keys|fields] name and "
        "age for {n}[,| who is] {a}[| years old].",
        "[Give me|Return|Write] JSON with name and age: {n}, {a}.",
        "[Give me|Return|Write] {n}'s name and age ({a}) as JSON."]
PERSON = KEYS + ["[Give me|Write|Return] a JSON object for a person [named|called] "
          "{n} who is {a}[| years old].",
          "[Describe|Give me] {n}, {a}[| years old], as [JSON|a JSON object].",
          "{n} is {a} years old. [Write|Give me|Return] that as JSON.",
          "JSON for a person: {n}, aged {a}.", "A JSON object for {n}, age {a}"]
PERSON_UNSEEN = ["Write {n}, who is {a} years old, as a JSON object."]
ARRAY = ["[Give me|Write|Return] a JSON [array|list] [of|with] {p}.",
         "[Turn|Put] this [in|into] a JSON [array|list]: {p}"]
FREE = ["[Give me|Write|Return|Show me] [a|an example of a|a small] JSON "
        "object[| describing a person| for a person| with a name and an age].",
        "Describe a person [as|in] JSON.", "[Example|Sample] JSON[| object]"]


def _pairs_text(rng, pairs):
    """Keys and values as a user writes them."""
    link, style = rng.choice(LINK), rng.random()
    parts = []
    for key, value in pairs.items():
        if style < 0.12:
            key = f'"{key}"'
        if isinstance(value, bool) or (style < 0.2 and isinstance(value, str)):
            value = json.dumps(value)
        parts.append(f"{key} ({value})" if style > 0.93
                     else f"{key}{link}{value}")
    return join_and(parts) if rng.random() < 0.75 else ", ".join(parts)


def json_object(rng, held):
    kind = rng.randrange(12)
    if kind < 7:
        pairs = _json_pairs(rng, held)
        text = _pairs_text(rng, pairs)
        ask = say(rng, held, ASK_JSON, ASK_JSON_UNSEEN, p=text)
        value = pairs
    elif kind < 9:
        value = {"name": any_name(rng, held), "age": rng.randint(1, 99)}
        ask = say(rng, held, PERSON, PERSON_UNSEEN, n=value["name"],
                  a=value["age"])
    elif kind < 11:
        value = [_a_word(rng, held) for _ in range(rng.randint(2, 4))]
        if rng.random() < 0.3:
            value = [rng.randint(0, 99) for _ in value]
        ask = say(rng, held, ARRAY, p=join_and([str(v) for v in value]))
    else:
        value = {"name": "Ada", "age": 36}
        ask = say(rng, held, FREE)
    if rng.random() < 0.1:
        ask += expand(rng, rng.choice(ONLY_JSON))
    return Item(ask, json.dumps(value, ensure_ascii=False),
                "The user wants JSON, so I write only JSON.")
