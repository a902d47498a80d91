"""Words and varies the questions in the demo model's data.

A pattern is text with [one|of|these] and {slots}.  say() chooses a pattern,
expands it, sometimes makes it look carelessly typed (lower case, no question
mark, a "please"), and fills the slots.
"""

import hashlib
import re
from dataclasses import dataclass, field

CHOICE = re.compile(r"\[([^\[\]]*)\]")
SLOT = re.compile(r"(\{\w+\})")

OPENINGS = ["Please tell me: ", "Hey, ", "Hi, ", "Hello! ", "Tell me: ",
            "Quick question: ", "I have a question. ", "Ok, ", "Now, ", "So, ",
            "Could you tell me: ", "Please answer: ", "Think step by step: ",
            "Think first: ", "Think: "]
CLOSINGS = [" Please.", " please", " Thanks!", " Thank you."]


@dataclass
class Item:
    """A question and the answer that the model should learn.

    `check`: texts that a right answer contains; None: a right answer is equal
    to `answer`.  `before`: turns before the question; if `ask` is None, the
    last one is a tool's result.
    """
    ask: str
    answer: str
    think: str = ""
    check: list = None
    before: list = field(default_factory=list)
    tools: list = None
    system: str = None


def expand(rng, pattern):
    """The pattern with one alternative chosen for each [a|b]."""
    while True:
        m = CHOICE.search(pattern)
        if m is None:
            return pattern
        pick = rng.choice(m.group(1).split("|"))
        pattern = pattern[:m.start()] + pick + pattern[m.end():]


def fill(text, slots):
    for name, value in slots.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def _recase(text, how):
    """Changes the case of all except the {slots}."""
    return "".join(part if SLOT.fullmatch(part) else how(part)
                   for part in SLOT.split(text))


def roughen(rng, text):
    """The text as a user in a hurry may type it."""
    if rng.random() < 0.10:
        text = rng.choice(OPENINGS) + text
    elif rng.random() < 0.05:
        text += rng.choice(CLOSINGS)
    if rng.random() < 0.18:
        text = text.rstrip("?.!")
    r = rng.random()
    if r < 0.16:
        text = _recase(text, str.lower)
    elif r < 0.19:
        text = _recase(text, str.upper)
    return text


def say(rng, held, known, unseen=None, /, any_case=None, **slots):
    """A question; values of any_case slots may change their case, others do
    not."""
    pattern = rng.choice(unseen if held and unseen else known)
    text = fill(expand(rng, pattern), any_case or {})
    return fill(roughen(rng, text), slots)


def is_held(*key, share=10):
    """Is this key held out?  share: percent of the keys that are."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:4], "big") % 100 < share


def pick(rng, held, values, share=10):
    """One of the values that are held out, or of those that are not."""
    while True:
        value = rng.choice(values)
        if is_held(value, share=share) == held:
            return value


def join_and(words):
    """'a, b and c' from a list of words"""
    if len(words) == 1:
        return words[0]
    return ", ".join(words[:-1]) + " and " + words[-1]
