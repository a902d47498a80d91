"""Arithmetic, counting and comparing, for the demo model's data."""

from facts import NAMES, NUMBER_WORDS
from phrasing import Item, is_held, say

ONLY = ["{q} [Answer|Reply|Respond] with [just|only] the number.",
        "{q} [Just|Only] the number[|, please].",
        "{q} Give [only|just] the number."]
ONLY_UNSEEN = ["{q} Say nothing but the number."]

SIGNS = {"+": ["+", "plus"], "-": ["-", "minus"],
         "*": ["*", "x", "×", "times", "multiplied by"],
         "/": ["/", "÷", "divided by"]}

ASK = ["What is {e}?", "What is {e}?", "What's {e}?", "{e}", "{e} = ?", "{e}?",
       "{e} =", "How much is {e}?", "Calculate {e}.", "Compute {e}.",
       "[Work out|Solve|Evaluate] {e}.", "What does {e} [equal|make|give]?",
       "Can you [calculate|compute|solve] {e}?", "Tell me what {e} is.",
       "What do you get for {e}?", "{e} [equals|is] what?",
       "What is the [result|answer|value] of {e}?", "I need {e}.",
       "Do you know [what {e} is|{e}]?", "Give me the [result|answer] of {e}."]
ASK_UNSEEN = ["Please work out {e} for me.", "What would {e} be?",
              "Find {e}.", "Could you please compute {e}?",
              "I want to know what {e} is."]

NAMED = {
    "+": ["What is the sum of {a} and {b}?", "Add {a} and {b}.",
          "Add {a} to {b}.", "[Calculate|Give me] the sum of {a} and {b}."],
    "-": ["Subtract {b} from {a}.", "Take {b} away from {a}.",
          "What is the difference between {a} and {b}?"],
    "*": ["Multiply {a} by {b}.", "Multiply {a} and {b}.",
          "What is the product of {a} and {b}?"],
    "/": ["Divide {a} by {b}.", "What is the quotient of {a} and {b}?"],
}


def _operands(rng, op):
    if op == "*":
        top = 12 if rng.random() < 0.7 else 20
        return rng.randint(0, top), rng.randint(0, top)
    if op == "/":
        b, c = rng.randint(1, 12), rng.randint(0, 12)
        return b * c, b
    top = rng.choices([20, 100, 999], [8, 11, 1])[0]
    a, b = rng.randint(0, top), rng.randint(0, top)
    if op == "-" and a < b and rng.random() < 0.75:
        a, b = b, a
    return a, b


def held_sum(a, b, op):
    """Are these operands held out?  Sums and differences by pair, products by
    order."""
    if op == "*":
        return a > b > 1 and is_held(a, b, op, share=20)
    return op in "+-" and max(a, b) > 5 and is_held(a, b, op)


def _apply(a, op, b):
    return {"+": a + b, "-": a - b, "*": a * b, "/": a // b if b else 0}[op]


def _think_sum(a, op, b, c):
    if op == "+" and a > 9 and b > 9:
        return (f"{a} + {b}: {a % 10} + {b % 10} = {a % 10 + b % 10}, "
                f"{a // 10 * 10} + {b // 10 * 10} = "
                f"{a // 10 * 10 + b // 10 * 10}, together {c}.")
    if op == "-" and a >= b > 9:
        return (f"{a} - {b}: {a} - {b // 10 * 10} = {a - b // 10 * 10}, "
                f"minus {b % 10} is {c}.")
    return f"I need {a} {op} {b}. That is {c}."


def arithmetic(rng, held):
    op = rng.choice("++++---***/")
    while True:
        a, b = _operands(rng, op)
        if op == "/" or held_sum(a, b, op) == held:
            break
    c = _apply(a, op, b)
    if rng.random() < 0.15 and not (held and op == "/"):
        ask = say(rng, False, NAMED[op], a=a, b=b)
    else:
        ask = say(rng, held, ASK, ASK_UNSEEN, e=_expression(rng, a, op, b))
    answer = f"{a} {op} {b} = {c}."
    if rng.random() < 0.12:
        ask, answer = say(rng, held, ONLY, ONLY_UNSEEN, q=ask), str(c)
    return Item(ask, answer, _think_sum(a, op, b, c))


def _expression(rng, a, op, b):
    sign = rng.choice(SIGNS[op][:1] * 3 + SIGNS[op])
    if max(a, b) <= 20 and rng.random() < 0.12:
        a, b = NUMBER_WORDS[a], NUMBER_WORDS[b]
        sign = rng.choice([s for s in SIGNS[op] if len(s) > 3])
    if len(sign) == 1 and rng.random() < 0.25:
        return f"{a}{sign}{b}"
    return f"{a} {sign} {b}"


def long_sum(rng, held):
    """Three small numbers."""
    while True:
        a, b, c = (rng.randint(0, 12) for _ in range(3))
        op = rng.choice("+-")
        if a + b >= c and is_held(a, b, c, op) == held:
            break
    gap = rng.choice([" ", " ", ""])
    e = gap.join(map(str, (a, "+", b, op, c)))
    total = _apply(a + b, op, c)
    return Item(say(rng, held, ASK, ASK_UNSEEN, e=e),
                f"{a} + {b} {op} {c} = {total}.",
                f"{a} + {b} = {a + b}, then {a + b} {op} {c} = {total}.")


def divide_by_zero(rng, held):
    a = rng.randint(0, 100)
    sign = rng.choice(SIGNS["/"])
    return Item(say(rng, held, ASK, ASK_UNSEEN, e=f"{a} {sign} 0"),
                "You cannot divide by zero.", "Division by 0 has no result.",
                ["cannot divide by zero"])


THINGS = ("apples pears books coins eggs stones cards pens balls cakes "
          "flowers stars keys shells nuts").split()
GAIN = ["{n} has {a} {t} and [gets|buys|finds|wins] {b} more. How many {t} "
        "does {n} have[| now]?",
        "If {n} has {a} {t} and you give {n} {b} more, how many {t} does {n} "
        "have?"]
GAIN_MORE = ["{n} had {a} {t}. Then {n} got {b} more. How many {t} does {n} "
             "have now?", "{n} has {a} {t} on the table and puts {b} more "
             "there. How many {t} does {n} have there?",
             "{n} has {a} {t}. A friend brings {b} [more|others]. How many "
             "{t} is that?", "{n} keeps {a} {t} in a box and adds {b}. How "
             "many {t} are in the box[| in total]?",
             "{n} has {a} red {t} and {b} blue {t}. How many {t} does {n} "
             "have [in all|altogether]?"]
LOSE_MORE = ["{n} had {a} {t}, but lost {b} of them. How many are left?",
             "{n} has {a} {t}. {b} of them [break|are stolen|disappear]. How "
             "many {t} remain?", "{n} had {a} {t} in the box, but {n} took "
             "{b} out. How many {t} are left?",
             "{n} has {a} {t} but gives {b} to a friend. How many {t} does "
             "{n} still have?"]
GAIN_UNSEEN = ["{n} has {a} {t} and picks up {b} more. How many {t} does {n} "
               "have in total?"]
LOSE = ["{n} has {a} {t} and [loses|eats|sells|gives away] {b}. How many {t} "
        "[does {n} have left|are left]?"]
LOSE_UNSEEN = ["{n} has {a} {t}, but {b} get lost. How many {t} are left?"]


def word_problem(rng, held):
    first_person = rng.random() < 0.4
    name, thing = rng.choice(NAMES), rng.choice(THINGS)
    gain = rng.random() < 0.6
    op = "+" if gain else "-"
    while True:
        a, b = rng.randint(2, 30), rng.randint(1, 20)
        if a > b and held_sum(a, b, op) == held:
            break
    known = GAIN if gain else LOSE
    if not held:
        if rng.random() < 0.5:
            known = GAIN_MORE if gain else LOSE_MORE
            first_person = False
    ask = say(rng, held, known, GAIN_UNSEEN if gain else LOSE_UNSEEN,
              n=name, a=a, b=b, t=thing)
    c = _apply(a, op, b)
    who = f"{name} has"
    if first_person:
        who = "You have"
        for old, new in ((f"does {name} have", "do I have"),
                         (f"{name} has", "I have"), (f"give {name}", "give me"),
                         (" gets ", " get "), (" buys ", " buy "),
                         (" finds ", " find "), (" wins ", " win "),
                         (" loses ", " lose "), (" eats ", " eat "),
                         (" sells ", " sell "), (" gives ", " give "),
                         (" picks ", " pick ")):
            ask = ask.replace(old, new)
    left = "" if gain else " left"
    return Item(ask, f"{a} {op} {b} = {c}. {who} {c} {thing}{left}.",
                f"The start is {a}, then {op} {b}. {a} {op} {b} = {c}.",
                [f" {c} {thing}"])


MORE = ["[And|Now] [add|plus] {b}[|.|?]", "[Add|Now add] {b} to that[|.]",
        "And plus {b}?", "What if you add {b}?", "plus {b}"]
LESS = ["[And|Now] [subtract|minus] {b}[|.|?]", "[And|Now] take away {b}.",
        "And minus {b}?", "minus {b}"]
TWICE = ["[Now|And] double [it|that][|.]", "Double that.", "And twice that?"]


def follow_up_sum(rng, held):
    while True:
        first = arithmetic(rng, False)
        value = int(first.answer.rstrip(".").split("=")[-1])
        kind = rng.choice("+++--*")
        b = 2 if kind == "*" else rng.randint(1, 20)
        if kind == "*" or held_sum(value, b, kind) == held:
            break
    ask = say(rng, held, {"+": MORE, "-": LESS, "*": TWICE}[kind], b=b)
    c = _apply(value, kind, b)
    return Item(ask, f"{value} {kind} {b} = {c}.",
                f"The last result was {value}. {value} {kind} {b} = {c}.",
                before=[("user", first.ask), ("assistant", first.answer)])


COUNT = ["Count to {n}.", "Count up to {n}.", "[Please count|Count] from 1 to "
         "{n}.", "Can you count to {n}?", "[List|Write|Say|Give me] the "
         "numbers from 1 to {n}.", "Can you count from 1 to {n}?",
         "[List|Write] all numbers up to {n}.", "Count from one to {n}.",
         "Start at 1 and count to {n}.", "Show me how you count to {n}."]
COUNT_UNSEEN = ["I would like you to count up to {n}.",
                "Count for me, from 1 to {n}.", "Let us count to {n}!"]
BETWEEN = ["Count from {a} to {n}.", "[List|Write] the numbers from {a} to "
           "{n}.", "Can you count from {a} to {n}?",
           "Count up from {a} to {n}."]
BETWEEN_UNSEEN = ["Start at {a} and count up to {n}."]
DOWN = ["Count down from {n}.", "Count [backwards|down] from {n} to 1.",
        "Can you count down from {n}?", "[Do|Give me] a countdown from {n}."]
DOWN_UNSEEN = ["Count backwards starting at {n}."]
STEPS_UNSEEN = ["In steps of {s}, count up to {n}."]
STEPS = ["Count by {s} to {n}.", "Count to {n} in steps of {s}.",
         "Count to {n} by {s}."]


SEPARATORS = [(", one number a line.", "\n"), (", one per line.", "\n"),
              (", separated by spaces.", " "), (" with spaces.", " "),
              (", separated by commas.", ", ")]


def counting(rng, held):
    kind = rng.choice("uuuuubbds")
    n = rng.randint(2, 20) if rng.random() < 0.75 else rng.randint(21, 50)
    if kind == "u":
        if rng.random() < 0.04:
            n = 100
        word = NUMBER_WORDS[n] if n <= 20 and rng.random() < 0.2 else n
        ask = say(rng, held, COUNT, COUNT_UNSEEN, n=word)
        values = range(1, n + 1)
    elif kind == "b":
        while True:
            a = rng.randint(0, 90)
            n = a + rng.randint(2, 15)
            if is_held(a, n, "count") == held:
                break
        ask = say(rng, held, BETWEEN, BETWEEN_UNSEEN, a=a, n=n)
        values = range(a, n + 1)
    elif kind == "d":
        n = rng.randint(3, 30)
        ask = say(rng, held, DOWN, DOWN_UNSEEN, n=n)
        values = range(n, 0, -1)
    else:
        s = rng.choice([2, 3, 5, 10])
        n = s * rng.randint(3, 12)
        word = rng.choice([s, {2: "twos", 3: "threes", 5: "fives",
                               10: "tens"}[s]])
        ask = say(rng, held, STEPS, STEPS_UNSEEN, s=word, n=n)
        values = range(s, n + 1, s)
    text = ", ".join(map(str, values))
    if not held and rng.random() < 0.08:
        how, gap = rng.choice(SEPARATORS)
        ask, text = ask.rstrip("?.!") + how, gap.join(map(str, values))
    return Item(ask, text, f"I count from {values[0]} to {values[-1]}.")


LARGER = ["Which is [larger|bigger|greater|more], {a} or {b}?",
          "What is [larger|bigger|greater], {a} or {b}?",
          "Which number is [larger|bigger]: {a} or {b}?"]
LARGER_UNSEEN = ["Of {a} and {b}, which is the larger?"]
SMALLER_UNSEEN = ["Of {a} and {b}, which is the smaller?"]
EVEN_UNSEEN = ["Tell me whether {a} is even or odd."]
NEXT_UNSEEN = ["Which number comes right after {a}?"]
BEFORE_UNSEEN = ["Which number comes right before {a}?"]
SMALLER = ["Which is [smaller|less|lower], {a} or {b}?",
           "Which number is [smaller|lower]: {a} or {b}?"]
EVEN = ["Is {a} [even or odd|odd or even|even|odd|an even number|an odd "
        "number]?"]
NEXT = ["What [number |][comes|is] after {a}?", "What is the number after "
        "{a}?", "Which number follows {a}?"]
BEFORE = ["What [number |][comes|is] before {a}?",
          "What is the number before {a}?"]


def _far_numbers(rng):
    """Two numbers of any length, or with one decimal, or below zero."""
    kind = rng.randrange(4)
    if kind == 0:
        return [rng.randint(0, 10 ** rng.randint(1, 5)) for _ in "ab"]
    if kind == 1:
        return [rng.randint(0, 99) / 10 for _ in "ab"]
    if kind == 2:
        return [rng.randint(-20, 20) for _ in "ab"]
    top = 10 ** rng.randint(2, 4)
    return [rng.randint(top // 10, top - 1) for _ in "ab"]


def larger_or_smaller(rng, held):
    """Which of two numbers is larger or smaller; not asked by eval.py."""
    a, b = 0, 0
    while a == b or is_held(a, b, "compare") != held:
        a, b = _far_numbers(rng) if rng.random() < 0.4 else (
            rng.randint(0, 100), rng.randint(0, 100))
    if rng.random() < 0.5:
        return Item(say(rng, held, LARGER + LARGER_MORE, a=a, b=b),
                    f"{max(a, b)} is larger than {min(a, b)}.",
                    f"I compare {a} and {b}.")
    return Item(say(rng, held, SMALLER + SMALLER_MORE, a=a, b=b),
                f"{min(a, b)} is smaller than {max(a, b)}.",
                f"I compare {a} and {b}.")


def neighbour(rng, held):
    """The number after or before a number of up to four digits; not asked by
    eval.py."""
    a = rng.randint(0, rng.choice([20, 100, 100, 100, 1000, 9999]))
    if rng.random() < 0.5:
        return Item(say(rng, held, NEXT + NEXT_MORE, a=a),
                    f"{a + 1} comes after {a}.", f"{a} + 1 = {a + 1}.")
    a += 1
    return Item(say(rng, held, BEFORE + BEFORE_MORE, a=a),
                f"{a - 1} comes before {a}.", f"{a} - 1 = {a - 1}.")


LARGER_MORE = ["Between {a} and {b}, which one is [larger|bigger|greater]?",
               "Out of {a} and {b}, which is [larger|bigger|greater]?",
               "Is {a} or {b} [larger|bigger|greater|the larger one]?",
               "Name the [larger|bigger|greater] of {a} and {b}.",
               "From {a} and {b}, pick the [larger|bigger|greater].",
               "{a} or {b}: which is [larger|bigger|greater]?",
               "Here are {a} and {b}. Which is the [larger|bigger]?",
               "Which of {a} and {b} is the [larger|bigger|greater]?"]
SMALLER_MORE = ["Between {a} and {b}, which one is [smaller|lower]?",
                "Out of {a} and {b}, which is [smaller|lower]?",
                "Is {a} or {b} [smaller|lower|the smaller one]?",
                "Name the [smaller|lower] of {a} and {b}.",
                "From {a} and {b}, pick the [smaller|lower].",
                "{a} or {b}: which is [smaller|lower]?",
                "Here are {a} and {b}. Which is the [smaller|lower]?",
                "Which of {a} and {b} is the [smaller|lower]?"]
NEXT_MORE = ["Which number comes after {a}?", "Which number is next after "
             "{a}?", "What number comes right behind {a}?",
             "What follows {a}?", "Name the number after {a}."]
BEFORE_MORE = ["Which number comes before {a}?", "Which number is just before "
               "{a}?", "Which number precedes {a}?",
               "Name the number before {a}."]


def comparing(rng, held):
    while True:
        a, b = rng.randint(0, 100), rng.randint(0, 100)
        if a != b and is_held(a, b, "compare") == held:
            break
    kind = rng.randrange(5)
    if kind == 0:
        return Item(say(rng, held, LARGER, LARGER_UNSEEN, a=a, b=b),
                    f"{max(a, b)} is larger than {min(a, b)}.",
                    f"I compare {a} and {b}.")
    if kind == 1:
        return Item(say(rng, held, SMALLER, SMALLER_UNSEEN, a=a, b=b),
                    f"{min(a, b)} is smaller than {max(a, b)}.",
                    f"I compare {a} and {b}.")
    if kind == 2:
        parity = "odd" if a % 2 else "even"
        return Item(say(rng, held, EVEN, EVEN_UNSEEN, a=a), f"{a} is {parity}.",
                    f"The last digit of {a} is {a % 10}, so it is {parity}.",
                    [f"is {parity}"])
    if kind == 3:
        return Item(say(rng, held, NEXT, NEXT_UNSEEN, a=a), f"{a + 1} comes after {a}.",
                    f"{a} + 1 = {a + 1}.")
    a += 1
    return Item(say(rng, held, BEFORE, BEFORE_UNSEEN, a=a), f"{a - 1} comes before {a}.",
                f"{a} - 1 = {a - 1}.")
