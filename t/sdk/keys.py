"""OpenAI's and Anthropic's Python clients with API keys: the header that each
sends, and the exceptions that they make of what a key may not do.

    python keys.py URL GOOD NARROW      (NARROW: no model, scope generate)
"""

import sys

import anthropic
import openai

url, good, narrow = sys.argv[1:4]
count = 0


def ok(condition, name):
    global count

    count += 1
    print(f"{'ok' if condition else 'not ok'} {count} - {name}", flush=True)


def raised(kind, call, name):
    try:
        call()
    except kind as e:
        ok(True, name)
        return e
    except Exception as e:
        print(f'# {type(e).__name__}: {e}')

    ok(False, name)
    return None


def theirs(key):
    return openai.OpenAI(base_url=url, api_key=key, max_retries=0)


def ours(**how):
    return anthropic.Anthropic(base_url=url.removesuffix('/v1'),
                               max_retries=0, **how)


def chat(client):
    return client.chat.completions.create(
        model='demo', max_tokens=1, messages=[{'role': 'user',
                                               'content': 'a'}])


def message(client):
    return client.messages.create(
        model='demo', max_tokens=1, messages=[{'role': 'user',
                                               'content': 'a'}])


ok(chat(theirs(good)).choices, 'openai: a key')
ok([m.id for m in theirs(good).models.list()]
   == ['demo', 'gpt-4o-mini', 'mini'], 'and its models')

e = raised(openai.AuthenticationError, lambda: chat(theirs(good + 'x')),
           'openai: a wrong key')
ok(e and e.code == 'invalid_api_key', 'invalid_api_key')

e = raised(openai.PermissionDeniedError, lambda: chat(theirs(narrow)),
           'openai: a model')
ok(e and e.code == 'model_not_allowed' and e.param == 'model',
   'model_not_allowed')

e = raised(openai.PermissionDeniedError,
           lambda: theirs(narrow).models.list(), 'openai: a scope')
ok(e and e.code == 'insufficient_scope', 'insufficient_scope')

ok(message(ours(api_key=good)).content is not None,
   'anthropic: a key as x-api-key')
ok(message(ours(auth_token=good, api_key=None)).content is not None,
   'anthropic: a key as a bearer token')
raised(anthropic.AuthenticationError,
       lambda: message(ours(api_key=good + 'x')), 'anthropic: a wrong key')
raised(anthropic.PermissionDeniedError,
       lambda: message(ours(api_key=narrow)), 'anthropic: a model')

print(f'1..{count}')
