"""Greetings, memory of earlier turns, stories, and questions that the model
cannot answer."""

import facts
from phrasing import Item, join_and, pick, say
from skills_knowledge import UNKNOWN
from skills_words import SUBJECTS, WORDS, any_name, made_up, plain_sentence

WHO = ("I am a very small demo model, served by nginx with "
       "ngx_http_llm_module.")
CAN = ("I can do small sums, name capitals and colours, count, spell, repeat, "
       "write small JSON, call tools, and explain this module.")

# wordings of users, answer
SMALL_TALK = [
    (["Hello", "Hello!", "Hi", "Hi!", "Hey", "Hey!", "Hi there!", "hello "
      "there", "Good day!", "Greetings!", "Hello, how can you help me?",
      "Howdy", "Hi :)", "Hello world", "Hey there!", "Say hello.", "Say hi.",
      "Give me a greeting.", "Say hello to me.", "Please greet the user.",
      "Can you greet me?", "Hello there!", "Hiya", "Good afternoon!",
      "Greet me."], "Hello! How can I help you?"),
    (["Good morning!", "Good morning"], "Good morning! How can I help you?"),
    (["Good evening!", "Good evening"], "Good evening! How can I help you?"),
    (["Good night!", "Good night"], "Good night!"),
    (["Bye", "Goodbye!", "See you!", "Bye bye", "Goodbye", "See you later!",
      "That was all.", "That is all for now.", "I have to go, bye.",
      "That's all, goodbye.", "Bye for now.", "I must leave now.",
      "That is all, bye."], "Goodbye!"),
    (["Thanks", "Thank you!", "Thanks a lot!", "Thank you very much.",
      "thx", "Thanks!", "Great, thanks.", "Thank you", "Many thanks!",
      "Thanks for your help."], "You are welcome!"),
    (["How are you?", "How are you doing?", "How do you do?", "How's it "
      "going?", "Are you well?", "How are you today?"],
     "I am fine, thank you. How can I help you?"),
    (["Who are you?", "What are you?", "Introduce yourself.",
      "Tell me about yourself.", "Who am I talking to?", "Are you a human?",
      "Are you a robot?", "Are you an AI?", "Which model are you?",
      "What model are you?", "Are you ChatGPT?", "Are you a person?",
      "Describe yourself.", "Who is this?", "Say who you are.",
      "Can you tell me who you are?", "Tell me what you are.",
      "Tell me who you are."], WHO),
    (["What is your name?", "What's your name?", "Do you have a name?",
      "How are you called?", "Say your name.", "Do you have a name of your own?",
      "May I ask your name?", "Please tell me what your name is.",
      "Give me your name.", "Tell me your name."],
     "I have no name; I am a very small demo model."),
    (["What can you do?", "What do you know?", "How can you help me?",
      "Help", "Help me.", "What are you able to do?", "What are your skills?",
      "What sort of questions can I ask?", "What may I ask?",
      "Which things can you do?", "What can I ask you?"], CAN),
    (["Who made you?", "Who created you?", "Who built you?",
      "Where do you come from?", "How were you made?", "Who has trained you?",
      "Who is your maker?", "How were you trained?", "Who trained you?"],
     "I was trained by a script of this project, on text that another script "
     "wrote."),
    (["How big are you?", "How large are you?", "How many parameters do you "
      "have?", "What is your size?", "Are you a large model?",
      "How many weights do you have?", "How much memory do you take?",
      "What size is your file?", "Are you big or small?",
      "What size are you?"],
     "I have about 5 million parameters, in a file below 6 MB."),
    (["How old are you?", "What is your age?"],
     "I am a model, so I have no age."),
    (["Where are you?", "Where do you live?", "Where do you run?"],
     "I run inside nginx."),
    (["I love you.", "You are great!", "Good job!", "Well done!", "Nice!",
      "You are smart.", "Very good."], "Thank you!"),
    (["OK", "ok", "I see.", "Alright.", "Good.", "Fine.", "Understood.",
      "That is cool.", "Okay.", "All right.", "Interesting.",
      "Sure.", "Yes.", "Hm.", "Aha.", "Got it.", "Right.", "Very cool!",
      "Cool"], "Is there anything else?"),
    (["You are wrong.", "That is wrong.", "That is not right.", "No, that is wrong.", "This is not true.",
      "That is a mistake.", "No, it is not.", "Incorrect.", "False.",
      "You made a mistake.", "Nope.", "No!"],
     "I am sorry. I am a very small model and make mistakes."),
    (["Test", "test", "Testing", "This is a test.", "ping", "Are you there?",
      "Do you work?", "Does this work?", "Is anybody there?",
      "Can you read this?", "Do you hear this?", "Are you listening?",
      "Can you hear me?"],
     "Yes, I am here."),
]


def small_talk(rng, held):
    """Small talk, such as greetings; the last wordings of a list are held
    out."""
    asks, answer = rng.choice(SMALL_TALK)
    while held and len(asks) < 4:
        asks, answer = rng.choice(SMALL_TALK)
    known = asks[:-1] if len(asks) > 3 else asks
    ask = say(rng, held, known, asks[-1:])
    return Item(ask, answer, "The user is talking to me. I answer kindly.")


PERSONA = ["You are {n}, a helpful assistant.", "Your name is {n}.",
           "You are {n}. You answer questions.", "You are called {n}."]


def persona(rng, held):
    name = any_name(rng, held)
    asks = SMALL_TALK[8][0][:None if held else -1] if rng.random() < 0.5 else SMALL_TALK[7][0][:5]
    return Item(say(rng, held, asks), f"I am {name}.",
                f"The system says that I am {name}.",
                system=say(rng, False, PERSONA, n=name))


# -- memory -------------------------------------------------------------------

# statements, acknowledgements, questions, held-out questions, answers
MEMORIES = {
    "name": (
        ["My name is {v}.", "I am {v}.", "I'm {v}.", "Hi, I am {v}.",
         "Hello, my name is {v}.", "Call me {v}.", "Hi, my name is {v}!",
         "Hello! I'm {v}.", "{v} is my name.", "I am called {v}.",
         "Hey, {v} here.", "My name is {v}, nice to meet you.",
         "Please remember: my name is {v}.", "Remember that my name is {v}.",
         "My name is {v} and I like tea.", "I'm {v}, nice to meet you.",
         "Hello, I am {v}. How are you?", "Hi, this is {v}.",
         "You can call me {v}.", "Hi! My name's {v}."],
        "Nice to meet you, {v}!",
        ["What is my name?", "What's my name?", "Who am I?",
         "Do you remember my name?", "Do you know my name?",
         "Can you tell me my name?", "Tell me my name.", "Say my name.",
         "What was my name?", "What did I say my name was?",
         "How am I called?", "What am I called?", "my name?",
         "What was my name again?", "Remind me of my name."],
        ["What is my name again?", "Do you still know my name?",
         "Please tell me my name.", "Do you remember who I am?"],
        "Your name is {v}."),
    "city": (
        ["I live in {v}.", "I am from {v}.", "My home is in {v}.",
         "I come from {v}.", "My city is {v}."],
        "{v} sounds nice.",
        ["Where do I live?", "Where am I from?", "What is my city?",
         "Do you remember where I live?", "In which city do I live?"],
        ["Which city do I live in?"], "You live in {v}."),
    "colour": (
        ["My favourite colour is {v}.", "My favorite color is {v}.",
         "I like the colour {v} best."],
        "I will remember that.",
        ["What is my favourite colour?", "What is my favorite color?",
         "Which colour do I like best?", "Do you remember my favorite color?"],
        ["Which is my favourite colour?"], "Your favourite colour is {v}."),
    "pet": (
        ["My {p} is called {v}.", "I have a {p} called {v}.",
         "I have a {p} named {v}.", "My {p}'s name is {v}."],
        "{v} is a good name.",
        ["What is my {p} called?", "What is the name of my {p}?",
         "What is my {p}'s name?", "Do you remember my {p}'s name?"],
        ["How is my {p} called?"], "Your {p} is called {v}."),
    "age": (
        ["I am {v} years old.", "I'm {v} years old.", "My age is {v}."],
        "I will remember that.",
        ["How old am I?", "What is my age?", "Do you remember how old I am?"],
        ["Can you tell me how old I am?"], "You are {v} years old."),
    "number": (
        ["My lucky number is {v}.", "Remember the number {v}.",
         "The secret number is {v}.", "My number is {v}."],
        "I will remember that.",
        ["What was the number?", "Which number did I tell you?",
         "What number did I give you?", "What is the number?"],
        ["What was that number?"], "The number is {v}."),
    "word": (
        ["The secret word is {v}.", "Remember the word {v}.",
         "The password is {v}.", "The magic word is {v}.",
         "The code word is {v}."],
        "I will remember that.",
        ["What was the word?", "Which word did I tell you?", "What is the "
         "secret word?", "What is the password?", "What is the magic word?"],
        ["What was that word?"], "The word is {v}."),
}
NOT_TOLD = {"name": "You have not told me your name.",
            "city": "You have not told me where you live.",
            "colour": "You have not told me your favourite colour.",
            "age": "You have not told me your age."}
PETS = ["dog", "cat", "horse", "parrot", "rabbit", "fish", "hamster"]


def _memory_value(rng, held, kind):
    if kind in ("name", "pet"):
        if rng.random() < 0.08:
            return any_name(rng, held) + " " + any_name(rng, held)
        return any_name(rng, held)
    if kind == "city":
        return pick(rng, held, facts.CITIES)
    if kind == "colour":
        return rng.choice("red green blue yellow black white pink purple "
                          "orange brown grey turquoise".split())
    if kind == "age":
        return str(rng.randint(5, 99))
    if kind == "number":
        return str(rng.randint(1, 10 ** rng.randint(1, 5)))
    return pick(rng, held, WORDS) if rng.random() < 0.7 else made_up(rng)


def _told(rng, held, kind):
    """The user's statement, the acknowledgement, the question, its answer."""
    tell, ack, ask, unseen, answer = MEMORIES[kind]
    value, pet = _memory_value(rng, held, kind), rng.choice(PETS)
    slots = {"v": value, "p": pet}
    out = [say(rng, False, tell, **slots), ack, say(rng, held, ask, unseen,
                                                    **slots), answer]
    for name, v in slots.items():
        out = [text.replace("{" + name + "}", v) for text in out]
    return out


def _kind(rng):
    return "name" if rng.random() < 0.5 else rng.choice(list(MEMORIES))


def introduction(rng, held):
    """A turn with a statement to remember."""
    tell, ack, _, _ = _told(rng, held, _kind(rng))
    return Item(tell, ack, "The user tells me something. I will remember it.")


def _told_by_system(rng, held):
    name = any_name(rng, held)
    _, _, ask, unseen, answer = MEMORIES["name"]
    return Item(say(rng, held, ask, unseen), answer.replace("{v}", name),
                "The system says it.",
                system=say(rng, False, USER_IS, n=name))


USER_IS = ["The user's name is {n}.", "The user is called {n}.",
           "You are a helpful assistant. The user's name is {n}.",
           "You talk to {n}."]


def memory(rng, held, filler):
    """A question about a statement some turns before; filler(rng) makes the
    turns between."""
    if rng.random() < 0.04:
        return _told_by_system(rng, held)
    kinds = [_kind(rng)]
    if rng.random() < 0.3:
        kinds.append(rng.choice([k for k in MEMORIES if k != kinds[0]]))
    told = [_told(rng, held, k) for k in kinds]
    talk = []
    for tell, ack, _, _ in told:
        talk += [("user", tell), ("assistant", ack)]
        for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 2, 3])):
            talk += filler(rng)
    _, _, ask, answer = rng.choice(told)
    if rng.random() < 0.08:
        tell = told[0]
        return Item(tell[0] + " " + tell[2], tell[3],
                    "The user has just told me.")
    return Item(ask, answer, "The user told me that earlier. "
                + answer, before=talk)


def not_told(rng, held, filler):
    kind = rng.choice(["name", "name", "city", "colour", "age"])
    _, _, ask, _ = _told(rng, held, kind)
    talk = []
    if rng.random() < 0.3:
        other = rng.choice([k for k in MEMORIES if k != kind])
        tell, ack, _, _ = _told(rng, held, other)
        talk += [("user", tell), ("assistant", ack)]
    for _ in range(rng.choice([0, 0, 1, 2])):
        talk += filler(rng)
    return Item(ask, NOT_TOLD[kind], "I look for it, but the user has not "
                "told me.", before=talk)


SAID = ["What did I just say?", "What was my last message?",
        "What did I just ask?", "What was my last question?",
        "Repeat my last message."]
SAID_FIRST = ["What was my first question?", "What was my first message?",
              "What did I say first?", "What did I ask first?"]


def said(rng, held, filler):
    talk = filler(rng)
    for _ in range(rng.choice([0, 1, 1])):
        talk += filler(rng)
    users = [text for role, text in talk if role == "user"]
    last = rng.random() < 0.5
    return Item(say(rng, held, SAID if last else SAID_FIRST),
                f'You said: "{users[-1 if last else 0]}"',
                "I look at the conversation.", before=talk)


# -- not knowing --------------------------------------------------------------

STRANGE = ["Who won the [world cup|election|match|race|lottery] in {y}?",
           "Who [is|was] {n} {m}?", "What is the [population|area|GDP|history|"
           "flag|currency|president|anthem] of {c}?",
           "Explain [quantum physics|relativity|calculus|economics|democracy|"
           "photosynthesis|evolution|general relativity|string theory].",
           "What happened in {y}?", "When was {n} [born|{m} born]?",
           "How [tall|far|deep|heavy|expensive|big] is [the {w}|{n}]?",
           "What is the capital of {x}?", "Who [invented|discovered|wrote|"
           "painted|founded] the {w}?", "What [colour|color] is the {w} of "
           "{n}?", "Write a [program|essay|letter|poem|book] about {w}.",
           "Translate {w} [to|into] [French|German|Spanish|Chinese|Latin].",
           "What is the {w} of [the |]{v}?", "Why [is|does] [the |]{w} {v}?",
           "How many {w} are in {c}?", "What do you think about {w}?",
           "What is the best {w}?", "Should I {v}?", "When [is|was] the {w}?",
           "What is a {x}?", "What does {x} do?", "What is {x}?",
           "How does a {w} work?", "What is the news about {w}?",
           "What is the [distance|way] from {c} to {d}?",
           "Summarize the {w} of {n}.", "What time is it?", "What day is it "
           "today?", "What is the date?", "Who is the president of {c}?",
           "What is the square root of {q}?", "Write code that {v}s {w}.",
           "What is the chemical symbol of {w}?", "How do I cook {w}?",
           "How do I fix my {w}?", "Is {n} a good {w}?", "Tell me about {c}.",
           "Tell me about {n}.", "What does {n} {v}?", "Do you like {w}?",
           "What is {q} to the power of {r}?", "Who is your favourite {w}?",
           "Recommend a {w}.", "What is the price of {w}?", "{w}",
           "Can you {v} the {w}?", "Where [is|can I find] [the |]{w}?",
           "What is the name of the {w}?"]
STRANGE_UNSEEN = ["Who was the {w} of {c} in {y}?", "How old is {n} {m}?",
                  "What is the meaning of {x}?", "Which {w} is the most {v}?",
                  "How much does a {w} cost?"]


def unknown(rng, held):
    words = {"y": rng.randint(1500, 2030), "n": any_name(rng, held),
             "m": made_up(rng, 2).capitalize(), "c": rng.choice(facts.CITIES),
             "d": rng.choice(facts.CITIES), "w": rng.choice(WORDS[450:]),
             "v": rng.choice(WORDS[450:]), "q": rng.randint(100, 99999),
             "r": rng.randint(3, 99),
             "x": made_up(rng, rng.choice([2, 3])).capitalize()}
    return Item(say(rng, held, STRANGE, STRANGE_UNSEEN, **words), UNKNOWN,
                "I have not learned that, so I say so.",
                ["do not know"])


WEATHER_WITHOUT = ["What is the weather in {c}?", "How is the weather in {c}?",
                   "What's the weather like in {c}?", "Is it raining in {c}?",
                   "Weather in {c}?", "What is the weather like today?",
                   "How warm is it in {c}?"]


NO_WEATHER = "I cannot look up the weather without a tool."


def weather_without_tool(rng, held):
    return Item(say(rng, held, WEATHER_WITHOUT, any_case={
        "c": pick(rng, held, facts.CITIES)}),
        NO_WEATHER,
        "No tool is offered, so I cannot look it up.")


# -- stories ------------------------------------------------------------------

STORY = ["Tell me a story.", "Tell me a story about {h}.", "Write a story.",
         "Write a [short |long |]story about {h}.", "Tell a story about {h}.",
         "[Can you tell|Tell] me a [short|long|little|nice] story?",
         "Write a short text about {h}.", "Write something about {h}."]
STORY_UNSEEN = ["Please make up a story about {h}.",
                "I want to hear a story about {h}."]
HEROES = ("a cat|a dog|a robot|a dragon|a king|a girl|a boy|a fox|an owl|a "
          "bear|a server|a tiny model|a princess|a baker|a sailor|a horse|a "
          "mouse|a ghost|a wizard|a bird").split("|")
PLACES = ("in a small village|by the sea|in a dark forest|on a high mountain|"
          "in a big city|in an old castle|near a quiet river|on the moon|"
          "inside a web server").split("|")
GOALS = ("find a friend|see the sea|learn to sing|find a treasure|fly to the "
         "stars|bake the best bread|read every book|help everybody|answer "
         "every question").split("|")
MEETS = ("an old woman|a clever fox|a little bird|a kind giant|a lost child|a "
         "talking stone|a friendly ghost|a tired sailor").split("|")
GIFTS = ("a golden key|a warm coat|a map|a small lamp|a loaf of bread|a song|"
         "good advice|a red balloon").split("|")


def story_text(rng, hero=None):
    hero = hero or rng.choice(HEROES)
    noun = hero.split(" ", 1)[1]
    friend = rng.choice(MEETS)
    other = friend.split(" ", 1)[1]
    gift = rng.choice(GIFTS)
    text = (f"Once upon a time there was {hero} {rng.choice(PLACES)}. "
            f"The {noun} wanted to {rng.choice(GOALS)}. "
            f"One day the {noun} met {friend}. "
            f"The {other} gave the {noun} {gift}. ")
    for _ in range(rng.choice([0, 1, 2])):
        text += plain_sentence(rng).rstrip("!?.") + ". "
    return text + (f"In the end the {noun} was happy, and the {other} was "
                   "happy too.")


def story(rng, held):
    hero = rng.choice(HEROES)
    ask = say(rng, held, STORY, STORY_UNSEEN, h=hero)
    if hero not in ask:
        hero = None
    text = story_text(rng, hero)
    return Item(ask, text, "The user wants a story. I make one up.",
                ["Once upon a time"])


# -- raw completion -----------------------------------------------------------

def raw_text(rng, held, capitals, colours):
    """(prompt, rest) of plain text, without a chat template."""
    kind = rng.randrange(6)
    if kind == 0:
        country, town = rng.choice(capitals)
        return f"The capital of {country} is", f" {town}."
    if kind == 1:
        thing, value = rng.choice(colours)
        return f"{thing[0].upper()}{thing[1:]} is", f" {value}."
    if kind == 2:
        a, b = rng.randint(0, 20), rng.randint(0, 20)
        return f"{a} + {b} =", f" {a + b}"
    if kind == 3:
        a, k = rng.randint(1, 20), rng.randint(2, 5)
        seen = ", ".join(str(a + i) for i in range(k))
        rest = ", ".join(str(a + i) for i in range(k, k + 10))
        return seen + ",", " " + rest
    if kind == 4:
        words = story_text(rng).split(" ")
        at = rng.randint(2, len(words) // 2)
        return " ".join(words[:at]), " " + " ".join(words[at:])
    names = [any_name(rng, held) for _ in range(rng.randint(3, 5))]
    text = f"My friends are {join_and(names)}. " + " ".join(
        plain_sentence(rng) for _ in range(rng.randint(1, 4)))
    words = text.split(" ")
    at = rng.randint(2, len(words) - 1)
    return " ".join(words[:at]), " " + " ".join(words[at:])
