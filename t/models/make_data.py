#!/usr/bin/env python3
"""Writes the training text of the demo model, one JSON object per line.

    make_data.py --count 600000 --seed 1 --out data.jsonl

A line is {"skill", "messages", "answer"}, with "tools" and "thinking" where
they apply, or {"skill", "prompt", "answer"} for plain text.  The same seed
gives the same bytes.  questions() makes the held-out questions, for eval.py:
their wordings never occur in the training text, and for skills that can
generalise, neither do their operands, words, names and cities.
"""

import argparse
import json
import random

import skills_agents as agents
import skills_knowledge as knowledge
import skills_numbers as numbers
import skills_talk as talk
import skills_tools as tools
import skills_words as words
from phrasing import Item

# makers of the turns before a question; their answers have a loss, too
SHORT = ([numbers.arithmetic] * 9 + [numbers.larger_or_smaller] * 2 + [
    numbers.neighbour, numbers.word_problem, numbers.word_problem,
    numbers.word_problem, numbers.comparing, numbers.counting,
    numbers.long_sum, numbers.follow_up_sum,
    knowledge.capital, knowledge.capital, knowledge.colour, knowledge.fact,
    knowledge.directive, knowledge.how_to, knowledge.small_table]
    + [words.spelling] * 3 + [words.spelling_of_joined] * 4
    + [words.repeating] * 2 + [words.json_object, talk.small_talk,
                               talk.small_talk, talk.unknown])


def filler(rng):
    """An unrelated question and its answer, as turns."""
    while True:
        item = rng.choice(SHORT)(rng, False)
        if item.system is None and len(item.answer) < 160:
            return list(item.before) + [("user", item.ask),
                                        ("assistant", item.answer)]


def _memory(rng, held):
    return talk.memory(rng, held, filler)


def _not_told(rng, held):
    return talk.not_told(rng, held, filler)


def _said(rng, held):
    return talk.said(rng, held, filler)


# skill: weight in the training text, and functions that make its questions
SKILLS = {
    "arithmetic": (24, [numbers.arithmetic] * 9 + [
        numbers.long_sum, numbers.follow_up_sum, numbers.divide_by_zero]),
    "word problems": (8, [numbers.word_problem]),
    "comparing": (7, [numbers.comparing]),
    "counting": (5, [numbers.counting]),
    "capitals": (6, [knowledge.capital]),
    "colours": (2, [knowledge.colour]),
    "facts": (3, [knowledge.fact, knowledge.fact, knowledge.small_table]),
    "module": (7, [knowledge.directive] * 5 + [
        knowledge.variable, knowledge.command, knowledge.command,
        knowledge.parameter, knowledge.how_to, knowledge.how_to,
        knowledge.term]),
    "spelling": (8, [words.spelling]),
    "repeating": (8, [words.repeating]),
    "json": (6, [words.json_object]),
    "memory": (6, [_memory] * 6 + [talk.introduction, talk.introduction,
                                   _not_told, _said]),
    "tool calls": (6, [tools.weather_call, tools.weather_call,
                       tools.other_call]),
    "tool results": (4, [tools.weather_answer] * 3 + [
        tools.two_weather_answers, tools.other_answer]),
    "small talk": (5, [talk.small_talk] * 5 + [talk.persona]),
    "not knowing": (7, [talk.unknown] * 7 + [talk.weather_without_tool]),
    "stories": (1, [talk.story]),
}
AGENT_SKILLS = {
    "agent calls": (10, [agents.agent_call]),
    "agent answers": (7, [agents.agent_answer]),
}
# the same, only for training: eval.py does not ask these
MORE = {
    "any spelling": (14, [words.spelling_of_joined]),
    "any numbers": (6, [numbers.larger_or_smaller, numbers.larger_or_smaller,
                        numbers.neighbour]),
    "tool talks": (6, [tools.weather_talk, tools.weather_talk,
                       tools.tool_talk]),
    "agent talks": (4, [agents.agent_talk]),
}
# weights with --tune, for a model that was trained without the agents' skills;
# weights of other skills are multiplied by the argument of --tune
TUNE = {"agent calls": 34, "agent answers": 24, "agent talks": 8,
        "tool calls": 10, "tool results": 7, "tool talks": 4}
RAW_SHARE = 0.02
THINK_SHARE = 0.12

SYSTEMS = ["You are a helpful assistant.", "You are a helpful assistant.",
           "You are a helpful assistant", "You are helpful.",
           "You are a friendly assistant.", "Answer briefly.",
           "You are a concise assistant.", "Be brief.", "Be helpful.",
           "You are an assistant that answers questions.",
           "You are a helpful, honest and harmless assistant.",
           "You are a chat bot.", "You are a very small model.",
           "Answer the user's questions.", "Keep your answers short.",
           "You are an AI assistant. Help the user.", "Answer in English.",
           "You are a helpful assistant with access to tools.",
           "You are Qwen, created by Alibaba Cloud. You are a helpful "
           "assistant.", "You answer truthfully.", "Help the user."]


TOOL_SKILLS = ("tool calls", "tool results", "tool talks", "memory",
               "agent calls", "agent answers", "agent talks")


def _messages(item, system, before):
    out = [{"role": "system", "content": system}] if system else []
    for entry in before + list(item.before):
        if isinstance(entry, dict):
            out.append(entry)
        else:
            out.append({"role": entry[0], "content": entry[1]})
    if item.ask is not None:
        out.append({"role": "user", "content": item.ask})
    return out


def _system_of(rng, item):
    if item.system:
        return item.system
    return rng.choice(SYSTEMS) if rng.random() < 0.3 else None


def _before(rng, skill):
    """Unrelated turns before the question: none, some, or rarely many."""
    r = rng.random()
    if r < (0.8 if skill in TOOL_SKILLS else 0.5):
        return []
    count = rng.randint(1, 4) if r < 0.994 else rng.randint(5, 24)
    return [entry for _ in range(count) for entry in filler(rng)]


def sample(rng, skill, item, kept=None, think=THINK_SHARE):
    """One line of training text; if kept is set, mostly without unrelated turns
    before."""
    alone = kept is not None and rng.random() < 0.75
    before = [] if alone else _before(rng, skill)
    out = {"skill": skill,
           "messages": _messages(item, _system_of(rng, item), before),
           "answer": item.answer}
    if item.tools:
        out["tools"] = item.tools
    elif rng.random() < 0.08:
        out["tools"] = (tools.any_tools(rng) if rng.random() < 0.4
                        else agents.offer(rng)[1])
    if item.think and rng.random() < think:
        out["thinking"] = True
        out["answer"] = f"<think>\n{item.think}\n</think>\n\n{item.answer}"
    return out


def samples(seed, count, kept=None, think=THINK_SHARE):
    """count lines.  kept: the factor of the weights of skills that are not in
    TUNE; None: TUNE is not used."""
    rng = random.Random(seed)
    skills = {**SKILLS, **AGENT_SKILLS, **MORE}
    names = list(skills)
    weights = [skills[n][0] for n in names]
    if kept is not None:
        weights = [TUNE.get(n, skills[n][0] * kept) for n in names]
    for _ in range(count):
        if rng.random() < RAW_SHARE:
            prompt, rest = talk.raw_text(rng, False, knowledge.CAPITALS,
                                         knowledge.COLOURS)
            yield {"skill": "raw", "prompt": prompt, "answer": rest}
            continue
        skill = rng.choices(names, weights)[0]
        item = rng.choice(skills[skill][1])(rng, False)
        line = sample(rng, skill, item, kept, think)
        if item.answer == talk.NO_WEATHER:
            line.pop("tools", None)
        yield line


def questions(per_skill=60, seed=2024):
    """Held-out questions: dicts with skill, messages, answer, check, and tools
    and thinking where they apply."""
    rng = random.Random(seed)
    return (_questions_of(rng, SKILLS, per_skill)
            + thinking_questions(rng, per_skill)
            + _questions_of(rng, AGENT_SKILLS, per_skill))


def _questions_of(rng, skills, per_skill):
    out = []
    for skill, (_, makers) in skills.items():
        for i in range(per_skill):
            item = makers[i % len(makers)](rng, True)
            system = item.system or (SYSTEMS[0] if i % 3 == 0 else None)
            q = {"skill": skill, "messages": _messages(item, system, []),
                 "answer": item.answer, "check": item.check}
            if item.tools:
                q["tools"] = item.tools
            out.append(q)
    return out


def thinking_questions(rng, count):
    """Questions to be answered after a <think> block."""
    makers = [numbers.arithmetic, knowledge.capital, words.spelling,
              knowledge.directive, numbers.counting, tools.weather_call]
    out = []
    for i in range(count):
        item = makers[i % len(makers)](rng, True)
        q = {"skill": "thinking", "messages": _messages(item, None, []),
             "answer": item.answer, "check": item.check, "thinking": True}
        if item.tools:
            q["tools"] = item.tools
        out.append(q)
    return out


def leaks(questions_asked, lines):
    """Held-out questions whose whole conversation also occurs in the training
    lines, without regard to case and punctuation."""
    def key(messages):
        text = "/".join(str(m["content"]) for m in messages
                        if m["role"] != "system")
        return "".join(c for c in text.lower() if c.isalnum() or c in "/+-*")

    wanted = {key(q["messages"]): q for q in questions_asked}
    met = {key(line["messages"]) for line in lines if "messages" in line}
    return [q for k, q in wanted.items() if k in met]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--count", type=int, default=600000)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--out")
    p.add_argument("--tune", type=float, metavar="KEPT",
                   help="more of the agents' skills, for a trained model; "
                   "weights of the other skills are multiplied by KEPT")
    p.add_argument("--think", type=float, default=THINK_SHARE,
                   help="share of the answers with a <think> block")
    p.add_argument("--leaks", action="store_true",
                   help="list held-out questions that occur in the text")
    args = p.parse_args()
    if args.leaks:
        for q in leaks(questions(),
                       samples(args.seed, args.count, args.tune,
                               args.think)):
            print(q["skill"], "|", q["messages"][-1]["content"])
        return
    if not args.out:
        p.error("--out is needed")
    with open(args.out, "w", encoding="utf-8") as out:
        for line in samples(args.seed, args.count, args.tune, args.think):
            out.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
