"""Long texts for training, similar to the prompts of agents.

Agents put thousands of words before a question: rules, descriptions of tools,
examples, files.  This makes texts of that kind, mixed with documents and
sources of this repository.
"""

import json
from pathlib import Path

from skills_agents import offer
from skills_words import WORDS, made_up, plain_sentence

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "engine/README.md",
           "docs/*.md", "docs/internals/*.md", "t/models/*.py",
           "engine/*/*.c", "engine/*/*.h", "http/*/*.c", "t/http/*.t",
           "conf/*.conf", "build.sh"]

ROLES = ["You are a coding agent that works in a terminal.",
         "You are an assistant for software engineers.",
         "You help a person with the files of a project.",
         "You are an interactive program that writes and runs code."]
HEADS = ["General", "Tone and style", "Rules", "Files", "Commands", "Safety",
         "Examples", "Planning", "Testing", "Working with {w}", "About {w}",
         "Tools", "Answers", "Memory", "When you are done", "{w} and {w}"]
RULES = ["Always {v} the {w} before you {v} it.",
         "IMPORTANT: never {v} a {w} that the user did not name.",
         "If the {w} is missing, say so, and do not {v}.",
         "Keep answers short; the user reads them in a terminal.",
         "Prefer {w} to {w} when both can {v} the {w}.",
         "Use the tool `{t}` to {v} {w}, not `{t}`.",
         "When you call {t}, give {w} as a path, e.g. `src/{w}.{w}`.",
         "Do not {v} without asking, unless the {w} is {w}.",
         "You may run several commands at once if none needs another.",
         "NEVER commit changes unless the user explicitly asks you to.",
         "After a change, run the tests: `npm run {w}` or `make {w}`.",
         "The {w} is a {w} of {w}, and it may {v} at any time.",
         "Read a file before you edit it.", "Explain what a command does "
         "before you run it, if it changes the system."]
VERBS = ["read", "write", "check", "open", "change", "run", "delete", "call",
         "search", "move", "test", "list", "plan", "describe", "keep"]
EXAMPLES = ["<example>\nuser: what is {n} + {n}?\nassistant: {n}\n</example>",
            "<example>\nuser: which files are in {w}/?\nassistant: [calls {t}] "
            "{w}.c, {w}.h\n</example>",
            "```bash\n{t} --{w} {w} | {w} > {w}.txt\n```",
            "```json\n{{\"{w}\": \"{w}\", \"{w}\": {n}}}\n```",
            "- {w}: {w} {w} (file: /work/{w}/{w}.md)",
            "| {w} | {w} |\n|---|---|\n| {n} | {w} |"]


def _filled(rng, pattern):
    text = pattern
    for slot, make in (("{w}", lambda: rng.choice(WORDS)),
                       ("{v}", lambda: rng.choice(VERBS)),
                       ("{n}", lambda: str(rng.randint(0, 999))),
                       ("{t}", lambda: rng.choice(["bash", "grep", "Read",
                                                   made_up(rng)]))):
        while slot in text:
            text = text.replace(slot, make(), 1)
    return text


def _section(rng):
    lines = [f"{'#' * rng.randint(1, 3)} {_filled(rng, rng.choice(HEADS))}"]
    bullet = rng.choice(["- ", "* ", "", "  - "])
    for _ in range(rng.randint(2, 12)):
        r = rng.random()
        if r < 0.75:
            lines.append(bullet + _filled(rng, rng.choice(RULES)))
        elif r < 0.85:
            lines.append(plain_sentence(rng))
        else:
            lines.append(_filled(rng, rng.choice(EXAMPLES)))
    return "\n".join(lines) + "\n\n"


def _tool_texts(rng):
    """Tools in JSON, as in the prompts of some agents."""
    indent = rng.choice([None, None, 2])
    return "".join(json.dumps(t, indent=indent) + "\n"
                   for t in offer(rng)[1][:6]) + "\n"


def sources():
    """Texts of files in this repository."""
    out = []
    for pattern in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            out.append(path.read_text(encoding="utf-8", errors="replace"))
    return out


def long_text(rng, texts, chars):
    """A text of at least `chars` characters; texts: the result of
    sources()."""
    parts, size = [rng.choice(ROLES) + "\n\n"], 0
    while size < chars:
        r = rng.random()
        if r < 0.6:
            part = _section(rng)
        elif r < 0.75:
            part = _tool_texts(rng)
        else:
            text = rng.choice(texts)
            at = rng.randrange(max(len(text) - 1000, 1))
            part = text[at:at + rng.randint(300, 4000)] + "\n\n"
        parts.append(part)
        size += len(part)
    return "".join(parts)
