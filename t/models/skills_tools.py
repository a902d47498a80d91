"""Tool calls and answers from their results, for the demo model's data."""

import json

import facts
from phrasing import Item, is_held, join_and, pick, say
from skills_words import WORDS, any_name, made_up, plain_sentence

WEATHER_NAMES = ["get_weather"] * 7 + ["get_current_weather", "weather",
                                       "lookup_weather", "fetch_weather"]
PLACE_KEYS = ["city", "city", "location", "location", "place", "town"]
ABOUT = ["Get the weather of a city", "Get the current weather",
         "Get the current weather in a given location",
         "Returns the weather for a city.", "Weather for a place",
         "Look up the weather", "Get weather", "The weather in a city"]
PLACE_ABOUT = ["The city", "Name of the city", "City name", "The place",
               "The city and state, e.g. San Francisco, CA",
               "City and country, e.g. Paris, France", "A city name"]


def _schema(rng, properties, required):
    schema = {"type": "object", "properties": properties}
    if required or rng.random() < 0.5:
        schema["required"] = required
    if rng.random() < 0.15:
        schema["additionalProperties"] = False
    return schema


def _tool(rng, name, about, properties, required):
    function = {"name": name}
    if rng.random() < 0.85:
        function["description"] = about
    function["parameters"] = _schema(rng, properties, required)
    if rng.random() < 0.08:
        function["strict"] = True
    return {"type": "function", "function": function}


def _string(rng, about):
    if rng.random() < 0.6:
        return {"type": "string", "description": about}
    return {"type": "string"}


def weather_tool(rng):
    """A weather tool, and (its name, its parameter for the place, whether it
    has units)."""
    name, key = rng.choice(WEATHER_NAMES), rng.choice(PLACE_KEYS)
    properties = {key: _string(rng, rng.choice(PLACE_ABOUT))}
    units = rng.random() < 0.25
    if units:
        properties["unit"] = {"type": "string",
                              "enum": ["celsius", "fahrenheit"]}
    required = [key] if rng.random() < 0.85 else []
    return (_tool(rng, name, rng.choice(ABOUT), properties, required),
            (name, key, units))


# Other tools: name, description, arguments (name, kind), questions of users
OTHERS = [
    ("get_time", "Get the time in a city", [("city", "city")],
     ["What time is it in {city}?", "Tell me the time in {city}."]),
    ("get_stock_price", "Price of a stock", [("symbol", "symbol")],
     ["What is the price of {symbol}?", "How much is a share of {symbol}?"]),
    ("search_web", "Search the web", [("query", "words")],
     ["Search the web for {query}.", "Look up {query}.",
      "Search for {query}."]),
    ("send_email", "Send an email", [("to", "name"), ("subject", "words")],
     ["Send an email to {to} with the subject {subject}.",
      "Write {to} an email about {subject}."]),
    ("set_timer", "Set a timer", [("minutes", "int")],
     ["Set a timer for {minutes} minutes.", "Timer, {minutes} minutes."]),
    ("add", "Add two numbers", [("a", "int"), ("b", "int")],
     ["Use the tool to add {a} and {b}.", "Add {a} and {b} with the tool."]),
    ("translate", "Translate a text", [("text", "words"), ("to", "language")],
     ["Translate {text} to {to}.", "Translate {text} into {to}."]),
    ("turn_on_light", "Turn on the light in a room", [("room", "room")],
     ["Turn on the light in the {room}.", "Light on in the {room}."]),
    ("play_song", "Play a song", [("title", "words")],
     ["Play {title}.", "Play the song {title}."]),
    ("read_file", "Read a file", [("path", "path")],
     ["Read the file {path}.", "What is in {path}?", "Open {path}."]),
    ("get_population", "Population of a city", [("city", "city")],
     ["How many people live in {city}?"]),
    ("find_user", "Find a user by name", [("name", "name")],
     ["Find the user {name}.", "Look for the user {name}."]),
]
ROOMS = ["kitchen", "bedroom", "garden", "office", "bathroom", "hall"]
LANGUAGES = ["French", "German", "Spanish", "Italian", "Latin", "Polish"]


def _argument(rng, held, kind):
    if kind == "city":
        return pick(rng, held, facts.CITIES)
    if kind == "name":
        return any_name(rng, held)
    if kind == "int":
        return rng.randint(1, 60)
    if kind == "symbol":
        return "".join(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
                       for _ in range(rng.choice([3, 4])))
    if kind == "room":
        return rng.choice(ROOMS)
    if kind == "language":
        return rng.choice(LANGUAGES)
    if kind == "path":
        return rng.choice(WORDS) + rng.choice([".txt", ".c", ".json", ".md"])
    return " ".join(rng.choice(WORDS) for _ in range(rng.choice([1, 2, 2, 3])))


def _made_up_tool(rng):
    """A made-up tool with one or two arguments."""
    verb, noun = rng.choice(WORDS), rng.choice(WORDS + [made_up(rng)])
    keys = [rng.choice(WORDS) for _ in range(rng.choice([1, 1, 2]))]
    arguments = [(k, rng.choice(["words", "int", "name"]))
                 for k in dict.fromkeys(keys)]
    ask = ["Call {fn} with " + join_and(
        [f"{k} {{{k}}}" for k, _ in arguments]) + ".",
        "Use {fn} with " + join_and(
            [f"{k} = {{{k}}}" for k, _ in arguments]) + "."]
    return (f"{verb}_{noun}", f"{verb} the {noun}".capitalize(), arguments, ask)


def other_tool(rng, spec):
    name, about, arguments, _ = spec
    properties = {}
    for key, kind in arguments:
        if kind == "int":
            properties[key] = {"type": "integer"}
        else:
            properties[key] = _string(rng, f"The {key}")
    return _tool(rng, name, about, properties, [k for k, _ in arguments])


def call_text(name, arguments):
    return ('<tool_call>\n{"name": ' + json.dumps(name) + ', "arguments": '
            + json.dumps(arguments, ensure_ascii=False) + "}\n</tool_call>")


WEATHER = ["What is the weather in {c}?", "What's the weather in {c}?",
           "How is the weather in {c}?", "Weather in {c}?", "weather {c}",
           "What is the weather like in {c}?", "Tell me the weather in {c}.",
           "What's the weather like in {c}[| today| now| right now]?",
           "Is it [raining|sunny|cold|warm|snowing] in {c}?",
           "How [warm|cold|hot] is it in {c}?", "Check the weather in {c}.",
           "Get the weather for {c}.", "What is the temperature in {c}?",
           "Do I need an umbrella in {c}?", "Weather for {c}[|, please].",
           "What is the weather in {c} [today|now|right now|at the moment]?",
           "Can you [check|get|tell me] the weather in {c}?",
           "[Use|Call] the tool to get the weather in {c}.",
           "Please look up the weather in {c}.", "The weather in {c}?"]
WEATHER_UNSEEN = ["How's the weather over in {c}?",
                  "Could you find out the weather in {c}?",
                  "I am going to {c}. What is the weather there?",
                  "I want to know the weather in {c}."]


def _distractors(rng, taken, most=2):
    specs = [s for s in OTHERS if s[0] not in taken]
    rng.shuffle(specs)
    return [other_tool(rng, s) for s in specs[:rng.choice([0, 0, 0, 1, 1, most])]]


def _with_others(rng, tool):
    tools = [tool] + _distractors(rng, {tool["function"]["name"]})
    rng.shuffle(tools)
    return tools


def weather_call(rng, held):
    tool, (name, key, units) = weather_tool(rng)
    many = rng.random() < 0.1
    places = list(dict.fromkeys(
        _place(rng, held) for _ in range(2 if many else 1)))
    ask = say(rng, held, WEATHER, WEATHER_UNSEEN, c=join_and(places))
    extra = {}
    if units and rng.random() < 0.5:
        extra["unit"] = rng.choice(["celsius", "fahrenheit"])
        ask = ask.rstrip("?.") + " in " + extra["unit"].capitalize() + "?"
    calls = [call_text(name, {key: p, **extra}) for p in places]
    return Item(ask, "\n".join(calls),
                f"The user wants the weather in {join_and(places)}. "
                f"I call {name}.", tools=_with_others(rng, tool))


def _place(rng, held):
    if rng.random() < 0.75:
        return pick(rng, held, facts.CITIES)
    while True:
        place = made_up(rng, rng.choice([2, 3])).capitalize()
        if is_held(place) == held:
            return place


def other_call(rng, held):
    spec = _made_up_tool(rng) if rng.random() < 0.4 else rng.choice(OTHERS)
    name, _, arguments, asks = spec
    values = {k: _argument(rng, held, kind) for k, kind in arguments}
    ask = say(rng, held, asks, fn=name, **values)
    return Item(ask, call_text(name, values),
                f"I call {name}.", tools=_with_others(rng, other_tool(rng,
                                                                     spec)))


WEATHER_MORE = ["I am in {c}. How is the weather here?",
                "I travel to {c} tomorrow. What will the weather be?",
                "My sister lives in {c}. Is it [warm|cold|raining] there?",
                "We are flying to {c}. What is the weather like there?",
                "I will visit {c}. How warm is it there?",
                "How is it outside in {c}?", "Find out the weather for {c}.",
                "Could you check how the weather is in {c}?",
                "I would like to know the weather in {c}.",
                "Is {c} [sunny|rainy|cold] today?", "What about {c}?",
                "Look at the weather in {c} for me."]


def weather_talk(rng, held):
    """Questions about several cities in one conversation, which ends with a
    call or with the answer from a result.  Not asked by eval.py."""
    tool, (name, key, _) = weather_tool(rng)
    talk, turns = [], rng.choice([1, 2, 2, 3, 3])
    for i in range(turns):
        place = _place(rng, held)
        ask = say(rng, held, WEATHER + WEATHER_MORE, c=place)
        if i == turns - 1 and rng.random() < 0.5:
            return Item(ask, call_text(name, {key: place}),
                        f"The user wants the weather in {place}. "
                        f"I call {name}.", before=talk,
                        tools=_with_others(rng, tool))
        value, degrees, unit, sky = _weather_result(rng)
        answer = _weather_answer(place, degrees, unit, sky)
        talk += _exchange(ask, name, {key: place}, _dump(rng, value))
        if i < turns - 1:
            talk.append(("assistant", answer))
    return Item(None, answer, "The tool has answered. I tell the user.",
                before=talk, tools=_with_others(rng, tool))


def tool_talk(rng, held):
    """Calls of several tools in one conversation.  Not asked by eval.py."""
    specs = [_made_up_tool(rng) if rng.random() < 0.5 else rng.choice(OTHERS)
             for _ in range(rng.choice([1, 2, 3]))]
    specs = list({s[0]: s for s in specs}.values())
    tools = [other_tool(rng, s) for s in specs]
    talk, turns = [], rng.choice([2, 3, 4])
    for i in range(turns):
        name, _, arguments, asks = rng.choice(specs)
        values = {k: _argument(rng, held, kind) for k, kind in arguments}
        ask = say(rng, held, asks, fn=name, **values)
        if i == turns - 1:
            return Item(ask, call_text(name, values), f"I call {name}.",
                        before=talk, tools=tools)
        result = rng.choice([plain_sentence(rng).lower().rstrip(".!?"),
                             str(rng.randint(0, 9999)), "ok", "done"])
        talk += _exchange(ask, name, values, result)
        talk.append(("assistant", f"The tool answered: {result}."))


# -- results ------------------------------------------------------------------

def _weather_result(rng):
    """(the tool's result, degrees or None, unit, condition or None)"""
    degrees, sky = rng.randint(-25, 45), rng.choice(facts.CONDITIONS)
    unit = "C" if rng.random() < 0.8 else "F"
    if unit == "F":
        degrees = rng.randint(-10, 110)
    long_unit = "celsius" if unit == "C" else "fahrenheit"
    word = rng.choice(["condition", "conditions", "description", "weather",
                       "sky", "summary"])
    kind = rng.randrange(9)
    if kind == 0:
        return f"{degrees}°{unit}, {sky}", degrees, unit, sky
    if kind == 1:
        return f"{sky.capitalize()}, {degrees} °{unit}", degrees, unit, sky
    if kind == 2:
        value = {f"temp_{unit.lower()}": degrees, word: sky}
    elif kind == 3:
        value = {"temperature": f"{degrees}°{unit}", word: sky}
    elif kind == 4:
        value = {"temperature": degrees, "unit": long_unit}
        sky = None
    elif kind == 5:
        value = {"temperature": degrees, "unit": long_unit, word: sky}
    elif kind == 6:
        unit, value = "C", {word: sky, rng.choice(["temp", "temperature",
                                                   "degrees"]): degrees}
    elif kind == 7:
        unit, value = "C", {rng.choice(["temp", "temperature"]): degrees,
                            word: sky}
    else:
        degrees, value = None, {word: sky}
    return value, degrees, unit, sky


def _dump(rng, value):
    if isinstance(value, str):
        return value
    tight = rng.random() < 0.3
    return json.dumps(value, separators=(",", ":") if tight else None,
                      ensure_ascii=False)


def _weather_answer(place, degrees, unit, sky):
    parts = [] if degrees is None else [f"{degrees} °{unit}"]
    if sky:
        parts.append(sky)
    return f"It is {' and '.join(parts)} in {place}."


def weather_answer(rng, held):
    tool, (name, key, _) = weather_tool(rng)
    place = _place(rng, held)
    value, degrees, unit, sky = _weather_result(rng)
    if isinstance(value, dict) and rng.random() < 0.3:
        value = {key: place, **value}
    answer = _weather_answer(place, degrees, unit, sky)
    if rng.random() < 0.06:
        value = {"error": rng.choice(["city not found", "timeout",
                                      "unknown place", "not available"])}
        answer = f"The tool failed: {value['error']}."
        degrees = sky = None
    check = [s for s in (str(degrees) if degrees is not None else None, sky)
             if s] or None
    ask = say(rng, held, WEATHER, WEATHER_UNSEEN, c=place)
    return Item(None, answer, "The tool has answered. I tell the user.",
                check, _exchange(ask, name, {key: place}, _dump(rng, value)),
                _with_others(rng, tool) if rng.random() < 0.85 else None)


def two_weather_answers(rng, held):
    """Two calls in one turn, and their results."""
    tool, (name, key, _) = weather_tool(rng)
    places = [_place(rng, held), _place(rng, held)]
    ask = say(rng, held, WEATHER, WEATHER_UNSEEN, c=join_and(places))
    calls, results, answers, check = [], [], [], []
    for i, place in enumerate(places):
        value, degrees, unit, sky = _weather_result(rng)
        calls.append(_call(f"call_{i}", name, {key: place}))
        results.append({"role": "tool", "tool_call_id": f"call_{i}",
                        "content": _dump(rng, value)})
        answers.append(_weather_answer(place, degrees, unit, sky))
        check.append(sky or str(degrees))
    talk = [("user", ask), {"role": "assistant", "content": None,
                            "tool_calls": calls}] + results
    return Item(None, " ".join(answers), "The tool has answered twice.", check,
                talk, _with_others(rng, tool))


def _call(call_id, name, arguments):
    return {"id": call_id, "type": "function", "function": {
        "name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}


def _exchange(ask, name, arguments, result):
    return [("user", ask),
            {"role": "assistant", "content": None,
             "tool_calls": [_call("call_1", name, arguments)]},
            {"role": "tool", "tool_call_id": "call_1", "content": result}]


def other_answer(rng, held):
    spec = _made_up_tool(rng) if rng.random() < 0.5 else rng.choice(OTHERS)
    name, _, arguments, asks = spec
    values = {k: _argument(rng, held, kind) for k, kind in arguments}
    r = rng.random()
    if r < 0.4:
        result = plain_sentence(rng).lower().rstrip(".!?")
    elif r < 0.7:
        result = str(rng.randint(0, 9999))
    else:
        result = rng.choice(["ok", "done", "12:30", "08:15", "sent", "true"])
    shown = result
    if rng.random() < 0.5:
        shown = _dump(rng, {rng.choice(["result", "status", "value", "text",
                                        "time", "answer"]): result})
    ask = say(rng, held, asks, fn=name, **values)
    return Item(None, f"The tool answered: {result}.",
                "The tool has answered. I tell the user.", [result],
                _exchange(ask, name, values, shown),
                _with_others(rng, other_tool(rng, spec)))


def any_tools(rng):
    """Tools that the question does not need."""
    if rng.random() < 0.7:
        return _with_others(rng, weather_tool(rng)[0])
    return _with_others(rng, other_tool(rng, rng.choice(OTHERS)))
