"""Capitals, colours, small facts and the module itself, as questions."""

from pathlib import Path

import facts
import module_facts as module
from phrasing import Item, say

DATA = Path(__file__).parent / "data"
CAPITALS = [line.split("|") for line in
            (DATA / "capitals.txt").read_text(encoding="utf-8").splitlines()]
COLOURS = [line.split("|") for line in
           (DATA / "colours.txt").read_text(encoding="utf-8").splitlines()]
UNKNOWN = "I am a very small demo model; I do not know that."

CAPITAL = ["What is the capital of {c}?", "What is the capital of {c}?",
           "What's the capital of {c}?", "Capital of {c}?",
           "What is the capital city of {c}?", "What is {c}'s capital?",
           "Which city is the capital of {c}?", "Name the capital of {c}.",
           "Tell me the capital of {c}.", "The capital of {c}?",
           "[Do you know|Can you tell me] the capital of {c}?",
           "What city is the capital of {c}?", "{c}: what is its capital?",
           "Can you name the capital of {c}?", "What capital does {c} have?",
           "I need the capital of {c}.", "Which city is {c}'s capital?",
           "Give me the capital of {c}."]
CAPITAL_UNSEEN = ["Please name the capital city of {c}.",
                  "I would like to know the capital of {c}.",
                  "Do you know what the capital of {c} is?",
                  "Which is the capital city of {c}?"]
COUNTRY = ["{t} is the capital of [which|what] country?",
           "Which country has the capital {t}?",
           "Of which country is {t} the capital?",
           "What country is {t} the capital of?"]
COUNTRY_UNSEEN = ["{t} is the capital of what?"]
ONE_WORD = ["{q} [Answer|Reply] [in|with] one word.",
            "{q} [Answer|Reply] with [just|only] the name.",
            "{q} [Just|Only] the name[|, please]."]
NEXT = ["And {c}?", "And [of|the capital of] {c}?", "What about {c}?",
        "And what about {c}?", "And for {c}?", "Now {c}.", "{c}?"]
NEXT_UNSEEN = ["And how about {c}?", "Then what about {c}?"]
IS_IT_UNSEEN = ["Is it true that {t} is the capital of {c}?"]
IS_IT = ["Is {t} the capital of {c}?", "Is the capital of {c} {t}?"]


def _capital(country, town):
    return f"The capital of {country} is {town}."


def capital(rng, held):
    country, town = rng.choice(CAPITALS)
    think = f"The user asks about {country}. Its capital is {town}."
    kind = rng.randrange(20)
    if kind < 12:
        ask = say(rng, held, CAPITAL, CAPITAL_UNSEEN, any_case={"c": country})
        if rng.random() < 0.12:
            return Item(say(rng, False, ONE_WORD, q=ask), town, think)
        return Item(ask, _capital(country, town), think)
    if kind < 14:
        ask = say(rng, held, COUNTRY, COUNTRY_UNSEEN, any_case={"t": town})
        country = next(c for c, t in CAPITALS if t == town)
        return Item(ask, f"{town} is the capital of {country}.",
                    f"{town} is in {country}.")
    if kind < 18:
        other = rng.choice(CAPITALS)
        first = say(rng, False, CAPITAL, any_case={"c": other[0]})
        return Item(say(rng, held, NEXT, NEXT_UNSEEN, any_case={"c": country}),
                    _capital(country, town), think,
                    before=[("user", first), ("assistant", _capital(*other))])
    guess = town if rng.random() < 0.5 else rng.choice(CAPITALS)[1]
    word = "Yes" if guess == town else "No"
    return Item(say(rng, held, IS_IT, IS_IT_UNSEEN, any_case={"c": country, "t": guess}),
                f"{word}, the capital of {country} is {town}.", think)


SPELLINGS = "[colour|color]"
COLOUR = [f"What {SPELLINGS} is {{t}}?", f"What {SPELLINGS} is {{t}}?",
          f"What is the {SPELLINGS} of {{t}}?", f"Which {SPELLINGS} is {{t}}?",
          f"What {SPELLINGS} does {{t}} have?", f"{SPELLINGS} of {{t}}?",
          f"What's the {SPELLINGS} of {{t}}?", f"The {SPELLINGS} of {{t}}?",
          f"Tell me the {SPELLINGS} of {{t}}.",
          f"Which {SPELLINGS} does {{t}} have?",
          f"[Do you know|Can you tell me] the {SPELLINGS} of {{t}}?"]
COLOUR_UNSEEN = [f"Name the {SPELLINGS} of {{t}}.",
                 f"Do you know what {SPELLINGS} {{t}} is?",
                 f"{{t}} has what {SPELLINGS}?"]
MIX = [f"What {SPELLINGS} [do you get|results|comes out] when you mix {{a}} "
       "and {b}?", "What do you get [when you mix|by mixing|if you mix] {a} "
       "and {b}?", "Mix {a} and {b}[.|?]", "What is {a} and {b} mixed?",
       "What [do|does] {a} and {b} make?", "What is {a} plus {b}?",
       f"Which {SPELLINGS} do {{a}} and {{b}} make?"]
MIX_UNSEEN = [f"If I mix {{a}} and {{b}}, what {SPELLINGS} do I get?"]


def colour(rng, held):
    if rng.random() < 0.2:
        a, b, result = rng.choice(facts.MIXES)
        if rng.random() < 0.5:
            a, b = b, a
        return Item(say(rng, held, MIX, MIX_UNSEEN, any_case={"a": a, "b": b}),
                    f"{a.capitalize()} and {b} make {result}.",
                    f"I mix {a} with {b}. That gives {result}.",
                    [f"make {result}"])
    thing, value = rng.choice(COLOURS)
    if rng.random() < 0.2:
        thing, value = rng.choice(COLOURS[:4])
    name = _one_of(rng, thing)
    ask = say(rng, held, COLOUR, COLOUR_UNSEEN, any_case={"t": name})
    answer = f"{thing[0].upper()}{thing[1:]} is {value}."
    if rng.random() < 0.08:
        return Item(say(rng, False, ONE_WORD[:1], q=ask), value,
                    f"{answer}")
    return Item(ask, answer, f"I think of {thing}. It is {value}.",
                [f" {value}"])


def _one_of(rng, thing):
    """'a banana', or also 'the banana' and 'bananas'."""
    article, _, noun = thing.partition(" ")
    if article in ("a", "an") and rng.random() < 0.2:
        return "the " + noun
    return thing


def fact(rng, held):
    """A question of facts.py; the last of three wordings is held out."""
    asks, answer = rng.choice(facts.FACTS)
    known, unseen = asks, [f"My next question is: {q}" for q in asks]
    if len(asks) > 2:
        known, unseen = asks[:-1], asks[-1:]
    return Item(say(rng, held, known, unseen), answer,
                "This is a small fact that I know.")


OPPOSITE = ["What is the opposite of {a}?", "Opposite of {a}?",
            "Tell me the opposite of {a}.", "Give me the opposite of {a}."]
OPPOSITE_UNSEEN = ["Which word is the opposite of {a}?"]
PLURAL_UNSEEN = ["Tell me the plural of {a}."]
SOUND_UNSEEN = ["Which sound does a {a} make?"]
AFTER_UNSEEN = ["Which [day|month] comes right after {a}?"]
BEFORE_UNSEEN = ["Which [day|month] comes right before {a}?"]
PLURAL = ["What is the plural of {a}?", "Plural of {a}?",
          "Give me the plural of {a}."]
SOUND = ["What [sound|noise] does a {a} make?", "What does a {a} say?",
         "How does a {a} sound?"]
AFTER = ["What [day|month] [comes|is] after {a}?", "Which [day|month] follows "
         "{a}?", "What comes after {a}?"]
BEFORE = ["What [day|month] [comes|is] before {a}?",
          "What comes before {a}?"]


def small_table(rng, held):
    """Opposites, plurals, animals' sounds, days and months."""
    kind = rng.randrange(5)
    if kind == 0:
        pair = list(rng.choice(facts.OPPOSITES))
        rng.shuffle(pair)
        a, b = pair
        return Item(say(rng, held, OPPOSITE, OPPOSITE_UNSEEN, any_case={"a": a}),
                    f"The opposite of {a} is {b}.", f"{a} against {b}.")
    if kind == 1:
        a, b = rng.choice(facts.PLURALS)
        return Item(say(rng, held, PLURAL, PLURAL_UNSEEN, any_case={"a": a}),
                    f"The plural of {a} is {b}.", f"One {a}, two {b}.")
    if kind == 2:
        a, b = rng.choice(facts.SOUNDS)
        return Item(say(rng, held, SOUND, SOUND_UNSEEN, any_case={"a": a}),
                    f"A {a} says {b}.", f"I think of a {a}: {b}.")
    ring = rng.choice([facts.DAYS, facts.MONTHS])
    i = rng.randrange(len(ring))
    step = 1 if kind == 3 else -1
    word = "after" if kind == 3 else "before"
    a, b = ring[i], ring[(i + step) % len(ring)]
    known, unseen = ((AFTER, AFTER_UNSEEN) if kind == 3
                     else (BEFORE, BEFORE_UNSEEN))
    return Item(say(rng, held, known, unseen, any_case={"a": a}),
                f"{b} comes {word} {a}.",
                f"I go through the list: {b} is {word} {a}.")


# -- the module ---------------------------------------------------------------

WHAT = ["What does {n} do?", "What does {n} do?", "What does the {k} {n} do?",
        "What is {n}?", "What is {n} for?", "Explain {n}.", "{n}",
        "What is the {k} {n} for?", "Tell me about {n}.", "{n}?",
        "Explain the {k} {n}[|, please].", "Describe {n}.",
        "What [can|do] I use {n} for?", "What is the purpose of {n}?",
        "Can you explain {n}?", "What's {n}?", "How does {n} work?",
        "What does {n} mean?", "What is {n} [good|used] for?",
        "Explain what {n} does.", "Why [would|do] I use {n}?",
        "Can you tell me what {n} does?", "What happens with {n}?",
        "What does the {n} {k} do?", "What is the {n} {k}?",
        "What is the {n} {k} for?", "Explain the {n} {k}.",
        "Tell me about the {n} {k}."]
WHAT_UNSEEN = ["Please explain what {n} does.", "What is the {k} {n} used for?",
               "Could you describe the {k} {n}?",
               "Can you explain the {n} {k}?", "What would I use {n} for?",
               "Tell me what {n} does."]
WHERE = ["Where [can|may|do] I use {n}?", "In which context is {n} allowed?",
         "Where is {n} allowed?", "What is the context of {n}?",
         "Where does {n} go?", "In [which|what] contexts can I use {n}?"]
WHERE_UNSEEN = ["Where may {n} stand?", "In what context may I use {n}?"]
EXAMPLE = ["Give me an example of {n}.", "How do I use {n}?",
           "Show me an example of {n}.", "How do I write {n}?",
           "Example of {n}[|, please]", "How is {n} used?",
           "What is the syntax of {n}?", "How do I configure {n}?"]
EXAMPLE_UNSEEN = ["Can you show an example of {n}?"]
DEFAULT = ["What is the default of {n}?", "What is {n} by default?",
           "What is the default value of {n}?", "Default of {n}?"]
DEFAULT_UNSEEN = ["Which default does {n} have?"]
HOW = ["How [do|can|would] I {h}?", "How to {h}?", "How can one {h}?",
       "I want to {h}.", "What must I do to {h}?", "Can I {h}?",
       "Tell me how to {h}.", "How do you {h}?",
       "What [directive|do I use] to {h}?"]
HOW_UNSEEN = ["How would one {h}?", "Please tell me how I can {h}.",
              "I would like to {h}."]
LIST = ["[Which|What] directives [are there|does the module have|exist]?",
        "List the directives.", "Name the directives of the module."]
LIST_VARS = ["[Which|What] variables [are there|does the module have|exist]?",
             "List the variables.", "Name the variables of the module."]


PARAMETER = ["What does {n} do?", "What is {n}?", "What is {n} for?",
             "Explain {n}.", "What does {n} mean?", "What does {n} set?"]
PARAMETER_UNSEEN = ["Tell me what {n} does."]


def _ask(rng, held, known, unseen, name, kind=""):
    return say(rng, held, known, unseen, n=name, k=kind)


def directive(rng, held):
    name, does, where, example, default = rng.choice(module.DIRECTIVES)
    kind = rng.randrange(20)
    if kind < 11:
        return Item(_ask(rng, held, WHAT, WHAT_UNSEEN, name, "directive"),
                    f"{name} {does}.", f"{name} is a directive of the module.")
    if kind < 14:
        return Item(_ask(rng, held, WHERE, WHERE_UNSEEN, name),
                    f"{name} is allowed in: {where}.",
                    f"I think of the contexts of {name}.")
    if kind < 18:
        return Item(_ask(rng, held, EXAMPLE, EXAMPLE_UNSEEN, name),
                    f"For example: {example}",
                    f"I write a line with {name}.")
    answer = (f"The default of {name} is {default}." if default
              else f"{name} has no default.")
    return Item(_ask(rng, held, DEFAULT, DEFAULT_UNSEEN, name), answer,
                f"I think of the default of {name}.")


def parameter(rng, held):
    name, does = rng.choice(module.PARAMETERS)
    shown = rng.choice([f"{name}= of llm_model", f"the parameter {name}",
                        f"{name} of llm_model", f"{name}=",
                        f"the parameter {name} of llm_model",
                        f"the option {name} of llm_model"])
    ask = say(rng, held, PARAMETER, PARAMETER_UNSEEN, n=shown)
    return Item(ask, f"{name} {does}.",
                f"{name} is a parameter of llm_model.")


def variable(rng, held):
    name, holds = rng.choice(module.VARIABLES)
    ask = say(rng, held, WHAT + ["What does {n} [hold|contain|give]?",
                                 "What is in {n}?"],
              WHAT_UNSEEN, n=name, k="variable")
    return Item(ask, f"{name} is {holds}.",
                f"{name} is a variable of the module.")


def command(rng, held):
    if rng.random() < 0.3:
        name, does = rng.choice(module.ENDPOINTS)
        return Item(_ask(rng, held, WHAT, WHAT_UNSEEN, name, "endpoint"),
                    f"{name} {does}.", f"{name} is an endpoint.")
    name, does = rng.choice(module.COMMANDS)
    shown = name
    if name.startswith("llm ") and rng.random() < 0.4:
        shown = "objs/" + name
    return Item(_ask(rng, held, WHAT, WHAT_UNSEEN, shown, "command"),
                f"{name} {does}.", f"{name} is a command.")


def how_to(rng, held):
    if rng.random() < 0.06:
        names = (module.DIRECTIVES, LIST)
        if rng.random() < 0.5:
            names = (module.VARIABLES, LIST_VARS)
        return Item(say(rng, held, names[1]),
                    ", ".join(row[0] for row in names[0]),
                    "I list them all.")
    what, answer = rng.choice(module.HOW_TO)
    return Item(say(rng, held, HOW, HOW_UNSEEN, any_case={"h": what}), answer,
                f"The user wants to {what}.")


TERM = ["What is {n}?", "What's {n}?", "Explain {n}.", "What does {n} mean?",
        "Tell me about {n}.", "What do you know about {n}?",
        "Can you explain {n}?", "Do you know what {n} is?",
        "Tell me what {n} is.", "Define {n}."]
TERM_UNSEEN = ["Please explain what {n} is.", "Could you explain {n}?"]


def term(rng, held):
    name, what = rng.choice(module.TERMS)
    return Item(say(rng, held, TERM, TERM_UNSEEN, any_case={"n": name}), what,
                f"The user asks what {name} is.")
