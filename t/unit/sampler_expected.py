#!/usr/bin/env python3

# Makes t/unit/sampler_expected.h: what the probabilities of the next token
# are with the stages that come from llama.cpp (DRY, XTC, top-n-sigma, dynamic
# temperature, the window of the penalties), with bad words and with allowed
# tokens, computed from the definitions, in numpy and by trying all lengths.
#
#   python3 t/unit/sampler_expected.py > t/unit/sampler_expected.h

import textwrap

import numpy as np

V = 16
TEXTS = ['a', 'b', 'c', 'd', '\n', '*', ' a', ' b', 'x:', 'y', 'z', ':', '"',
         'ab', '\n\n', 'q']
DEFAULTS = dict(
    temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, typical_p=1.0,
    repetition_penalty=1.0,
    frequency_penalty=0.0, presence_penalty=0.0, repeat_last_n=-1,
    dry_multiplier=0.0, dry_base=1.75, dry_allowed_length=2,
    dry_penalty_last_n=-1, top_n_sigma=-1.0, xtc_probability=0.0,
    xtc_threshold=0.1, dynatemp_range=0.0, dynatemp_exponent=1.0)


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def dry(p, tokens, breakers):
    """What each token loses."""

    loss = np.zeros(V)
    if p['dry_multiplier'] <= 0 or p['dry_base'] < 1 \
            or p['dry_penalty_last_n'] == 0:
        return loss

    # no repetition reaches over the end of a breaker's text

    text, ends = '', []
    for t in tokens:
        text += TEXTS[t]
        ends.append(len(text))
    limit = len(tokens)
    for b in breakers:
        at = text.rfind(b)
        if at >= 0:
            behind = [e for e in ends if e >= at + len(b)]
            limit = min(limit, len(behind) - 1)

    if p['dry_penalty_last_n'] > 0:
        tokens = tokens[-p['dry_penalty_last_n']:]

    for t in range(V):
        if any(b in TEXTS[t] for b in breakers):
            continue
        best = -1
        for at in range(1, len(tokens)):    # where t came after a repetition
            if tokens[at] != t:
                continue
            n = 0
            while n < at and n < limit and tokens[at - 1 - n] == \
                    tokens[len(tokens) - 1 - n]:
                n += 1
            best = max(best, n)
        if best >= p['dry_allowed_length'] and best >= 0:
            loss[t] = p['dry_multiplier'] * p['dry_base'] ** (
                best - p['dry_allowed_length'])
    return loss


def share(prob, need):
    """The most likely tokens that have this share of the mass."""

    order = sorted(range(V), key=lambda i: (-prob[i], i))
    kept, mass = [], 0.0
    for i in order:
        if mass >= need - 1e-12:
            break
        kept.append(i)
        mass += prob[i]
    return kept


def cut(x, kept):
    y = np.full(V, -np.inf)
    y[kept] = x[kept]
    return y


def expected(p, logits, prompt, generated, breakers, bad, allowed, fired):
    x = logits.copy()
    seen = prompt + generated
    window = seen if p['repeat_last_n'] < 0 \
        else seen[len(seen) - min(len(seen), p['repeat_last_n']):]
    out = generated if p['repeat_last_n'] < 0 \
        else window[max(0, len(window) - len(generated)):]

    for t in range(V):
        if t in window:
            x[t] = x[t] / p['repetition_penalty'] if x[t] > 0 \
                else x[t] * p['repetition_penalty']
        n = out.count(t)
        x[t] -= n * p['frequency_penalty']
        x[t] -= (n > 0) * p['presence_penalty']

    x -= dry(p, seen, breakers)

    for word in bad:
        if generated[len(generated) - len(word) + 1:] == word[:-1]:
            x[word[-1]] = -np.inf
    if allowed is not None:
        x = cut(x, allowed)

    if p['top_n_sigma'] > 0:
        finite = x[x > -np.inf]
        x[x < finite.max() - p['top_n_sigma'] * finite.std()] = -np.inf

    scaled = x / p['temperature']
    prob = softmax(scaled)
    if p['min_p'] > 0:
        x = cut(x, [i for i in range(V) if prob[i] >= p['min_p'] * prob.max()])
    if p['top_k'] > 0:
        x = cut(x, share(softmax(x), 1.0)[:p['top_k']])
    prob = softmax(x / p['temperature'])
    if p['top_p'] < 1:
        x = cut(x, share(prob, p['top_p']))
    prob = softmax(x / p['temperature'])

    if fired and p['xtc_threshold'] <= 0.5:
        over = [i for i in share(prob, 1.0) if prob[i] >= p['xtc_threshold']]
        for i in over[:-1]:
            x[i] = -np.inf

    temperature = p['temperature']
    if p['dynatemp_range'] > 0:
        prob = softmax(x)
        some = prob[prob > 0]
        h = -(some * np.log(some)).sum() / np.log(len(some)) \
            if len(some) > 1 else 0.0
        low = max(0.0, temperature - p['dynatemp_range'])
        high = temperature + p['dynatemp_range']
        temperature = low + (high - low) * max(h, 0.0) ** p['dynatemp_exponent']

    if temperature < 1e-5:
        best = np.zeros(V)
        best[int(np.argmax(x))] = 1
        return best
    return softmax(x / temperature)


def case(rng, name, breakers=(), bad=(), allowed=None, prompt=(),
         generated=(), **given):
    p = dict(DEFAULTS, **given)
    prompt, generated, bad = list(prompt), list(generated), list(bad)

    # not so near to a border of a stage that rounding decides
    logits = np.round(rng.normal(0, 1.3, V) * 64) / 64
    args = (p, logits, prompt, generated, breakers, bad, allowed)

    q = p['xtc_probability']
    prob = (1 - q) * expected(*args, False)
    if q > 0:
        prob = prob + q * expected(*args, True)
    return name, p, args, prob


def cases():
    rng = np.random.default_rng(20261122)
    text = [0, 1, 2, 3, 0, 1, 2]
    usual = ['\n', ':', '"', '*']
    d = dict(dry_multiplier=0.8)

    yield case(rng, 'plain')
    yield case(rng, 'DRY, three tokens again', prompt=text, **d)
    yield case(rng, 'DRY, in the answer', generated=text, **d)
    yield case(rng, 'DRY, from the prompt on', prompt=text[:4],
               generated=text[4:], **d)
    yield case(rng, 'DRY, of two the longest',
               prompt=[9, 1, 2, 3, 0, 1, 2, 7, 9, 1, 2, 10, 0, 1, 2], **d)
    yield case(rng, 'DRY, one token often', prompt=[0] * 9, dry_base=1.2, **d)
    yield case(rng, 'DRY, allowed length 1', prompt=text,
               dry_allowed_length=1, **d)
    yield case(rng, 'DRY, allowed length 0', prompt=text,
               dry_allowed_length=0, **d)
    yield case(rng, 'DRY, allowed length 3', prompt=text,
               dry_allowed_length=3, **d)
    yield case(rng, 'DRY, allowed length 4', prompt=text,
               dry_allowed_length=4, **d)
    yield case(rng, 'DRY, base 1', prompt=text, dry_base=1.0, **d)
    yield case(rng, 'DRY, base below 1 is off', prompt=text, dry_base=0.5, **d)
    yield case(rng, 'DRY, a window that ends in the repetition', prompt=text,
               dry_penalty_last_n=5, **d)
    yield case(rng, 'DRY, a window of all', prompt=text, dry_penalty_last_n=7,
               **d)
    yield case(rng, 'DRY, window 0 is off', prompt=text, dry_penalty_last_n=0,
               **d)
    yield case(rng, 'DRY, a breaker inside', breakers=usual,
               prompt=[0, 4, 1, 2, 3, 0, 4, 1, 2], **d)
    yield case(rng, 'DRY, a breaker in a longer token', breakers=usual,
               prompt=[0, 8, 1, 2, 3, 0, 8, 1, 2], dry_allowed_length=1, **d)
    yield case(rng, 'DRY, a breaker last', breakers=usual,
               prompt=[0, 1, 2, 11, 3, 0, 1, 2, 11], dry_allowed_length=0, **d)
    yield case(rng, 'DRY, the breaker itself', breakers=usual,
               prompt=[0, 1, 4, 3, 0, 1], **d)
    yield case(rng, 'DRY, a breaker of two tokens', breakers=['cd'],
               prompt=[0, 2, 3, 1, 2, 7, 0, 2, 3, 1, 2],
               dry_allowed_length=1, **d)
    yield case(rng, 'DRY, a breaker that ends in a token', breakers=['ba'],
               prompt=[0, 1, 13, 9, 2, 1, 13, 9], dry_allowed_length=1, **d)
    yield case(rng, 'DRY, half a breaker', breakers=['cdx'],
               prompt=[0, 2, 3, 1, 7, 0, 2, 3], **d)

    for i in range(12):
        prompt = list(map(int, rng.integers(0, 4, 18)))
        yield case(rng, f'DRY at random, {i}', breakers=usual[:i % 2],
                   prompt=prompt[:i], generated=prompt[i:],
                   dry_allowed_length=int(rng.integers(0, 4)),
                   dry_base=float(rng.choice([1.0, 1.5, 2.0])),
                   dry_penalty_last_n=int(rng.choice([-1, 6, 12])), **d)

    yield case(rng, 'XTC, always', xtc_probability=1.0)
    yield case(rng, 'XTC, sometimes', xtc_probability=0.4)
    yield case(rng, 'XTC, threshold 0', xtc_probability=1.0, xtc_threshold=0.0)
    yield case(rng, 'XTC, threshold above 0.5', xtc_probability=1.0,
               xtc_threshold=0.6)
    yield case(rng, 'XTC, threshold that one reaches', xtc_probability=1.0,
               xtc_threshold=0.5, temperature=0.5)
    yield case(rng, 'XTC behind top-p and temperature', xtc_probability=0.7,
               top_p=0.85, temperature=1.4, xtc_threshold=0.08)
    yield case(rng, 'top-n-sigma', top_n_sigma=1.0)
    yield case(rng, 'top-n-sigma, hot', top_n_sigma=1.6, temperature=2.0)
    yield case(rng, 'top-n-sigma and min-p', top_n_sigma=1.8, min_p=0.2)
    yield case(rng, 'top-n-sigma without what is not allowed',
               top_n_sigma=1.2, allowed=[0, 2, 3, 5, 8, 9, 13])
    yield case(rng, 'top-n-sigma and top-k', top_n_sigma=1.2, top_k=3)
    yield case(rng, 'dynamic temperature', dynatemp_range=0.8)
    yield case(rng, 'dynamic temperature, to 0', dynatemp_range=2.0,
               temperature=0.5, dynatemp_exponent=2.0, top_k=6)
    yield case(rng, 'dynamic temperature, exponent 0', dynatemp_range=0.5,
               dynatemp_exponent=0.0)
    yield case(rng, 'dynamic temperature of one token', dynatemp_range=0.5,
               temperature=0.4, top_p=0.01)
    yield case(rng, 'dynamic temperature behind XTC', dynatemp_range=0.5,
               xtc_probability=1.0, top_k=8)

    pen = dict(repetition_penalty=1.4, frequency_penalty=0.3,
               presence_penalty=0.5)
    for n in (-1, 0, 1, 3, 5, 100):
        yield case(rng, f'penalties of the last {n}', prompt=[0, 1, 1, 2],
                   generated=[3, 3, 0, 5], repeat_last_n=n, **pen)

    yield case(rng, 'a bad word of one token', bad=[[3]], generated=[1])
    yield case(rng, 'a bad word that has begun', bad=[[1, 3]],
               generated=[0, 1])
    yield case(rng, 'one that has not', bad=[[1, 3]], generated=[1, 0])
    yield case(rng, 'one that began in the prompt', bad=[[1, 3]], prompt=[1])
    yield case(rng, 'several', bad=[[0, 1, 3], [1, 4], [2, 4], [7], [1, 5]],
               generated=[0, 1])
    yield case(rng, 'with DRY', bad=[[1, 3], [9]], generated=[0, 1, 5, 0, 1],
               **d)
    yield case(rng, 'allowed tokens', allowed=[1, 4, 6, 15])
    yield case(rng, 'one allowed token', allowed=[15], temperature=2.0)
    yield case(rng, 'allowed tokens and a bad word', allowed=[1, 4, 6, 15],
               bad=[[4]])


def numbers(values, form='%d'):
    return ', '.join(form % v for v in values)


def main():
    print('/*\n * Made by t/unit/sampler_expected.py: cases, and the '
          'probabilities of the next\n * token.\n */\n')
    print('#define EXPECTED_VOCAB  %d\n' % V)

    texts = ['"%s"' % t.replace('\n', '\\n').replace('"', '\\"')
             for t in TEXTS]
    print('static const char *const  expected_texts[EXPECTED_VOCAB] = {')
    print('    %s,' % ', '.join(texts[:8]))
    print('    %s' % ', '.join(texts[8:]))
    print('};\n')

    rows = list(cases())
    print('static const expected_t  expected[] = {')

    for name, p, args, prob in rows:
        _, logits, prompt, generated, breakers, bad, allowed = args
        assert all(v == 0 or v > 1e-9 for v in prob), name
        texts = [b.replace('\n', '\\n').replace('"', '\\"') for b in breakers]
        words = [t for w in bad for t in w + [-1]]
        print('    {\n        .name = "%s",' % name)
        print('        .p = {')
        print(textwrap.fill(', '.join('.%s = %r' % it for it in p.items()),
                            78, initial_indent=' ' * 12,
                            subsequent_indent=' ' * 12))
        print('        },')
        print('        .prompt = { %s },\n        .n_prompt = %d,'
              % (numbers(prompt) or '0', len(prompt)))
        print('        .generated = { %s },\n        .n_generated = %d,'
              % (numbers(generated) or '0', len(generated)))
        print('        .breakers = { %s }, .n_breakers = %d,'
              % (', '.join('"%s"' % t for t in texts) or 'NULL', len(texts)))
        print('        .words = { %s },\n        .n_words = %d,'
              % (numbers(words) or '0', len(words)))
        print('        .allowed = 0x%x,'
              % sum(1 << t for t in allowed or []))
        print('        .logits = {')
        for i in range(0, V, 4):
            print('            %s,' % numbers(logits[i:i + 4], '%.17g'))
        print('        },\n        .want = {')
        for i in range(0, V, 4):
            print('            %s,' % numbers(prob[i:i + 4], '%.9g'))
        print('        }\n    },')

    print('};')


main()
