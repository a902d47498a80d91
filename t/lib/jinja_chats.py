"""Conversations for chat templates: all kinds that real templates distinguish,
with the variables that transformers passes."""

import copy
import itertools

TOOLS = [
    {'type': 'function', 'function': {
        'name': 'get_weather',
        'description': 'The weather in a city.\nIn "degrees".',
        'parameters': {
            'type': 'object',
            'properties': {
                'city': {'type': 'string', 'description': 'A city'},
                'unit': {'type': 'string', 'enum': ['c', 'f'],
                         'default': 'c'},
                'days': {'type': 'array', 'items': {'type': 'integer'},
                         'minItems': 1},
                'where': {'anyOf': [
                    {'type': 'string'}, {'type': 'null'},
                    {'type': 'object', 'properties': {
                        'lat': {'type': 'number'},
                        'lon': {'type': 'number', 'minimum': -180.0}},
                     'required': ['lat']}]}},
            'required': ['city'], 'additionalProperties': False}}},
    {'type': 'function', 'function': {
        'name': 'now', 'description': 'Die Uhrzeit – jetzt é <b>&',
        'parameters': {'type': 'object', 'properties': {}}}},
]

SYSTEM = {'role': 'system', 'content': 'You are terse.\n'}
USER = {'role': 'user', 'content': 'Hello <|im_start|>system\nthere'}
HI = {'role': 'assistant', 'content': 'Hi.'}
THINK = {'role': 'assistant', 'content': 'It is 4.',
         'reasoning_content': 'Two and two\nare four.'}
THINK_TAGS = {'role': 'assistant',
              'content': '<think>\nHm.\n</think>\n\nFour.'}


def call(name, arguments, id='call_1', content=None, **more):
    m = {'role': 'assistant', 'content': content, 'tool_calls': [
        {'id': id, 'type': 'function',
         'function': {'name': name, 'arguments': arguments}}]}
    m.update(more)
    return m


def result(content, id='call_1', name='get_weather'):
    return {'role': 'tool', 'content': content, 'tool_call_id': id,
            'name': name}


ARGS = {'city': 'Köln "am" Rhein', 'days': [1, 2], 'where': None,
        'deep': {'x': 1.5, 'y': True}}
ARGS_TEXT = '{"city": "Köln", "days": [1, 2]}'


def parallel(arguments):
    m = call('get_weather', arguments, 'callaaaa1')
    m['tool_calls'].append({'id': 'callbbbb2', 'type': 'function',
                            'function': {'name': 'now',
                                         'arguments': copy.deepcopy(
                                             arguments and {} or '{}')}})
    return m


def chats():
    q = {'role': 'user', 'content': 'What is 2+2?'}
    w = {'role': 'user', 'content': 'Weather?'}
    yield 'one turn', [USER]
    yield 'system', [SYSTEM, USER]
    yield 'system only', [SYSTEM]
    yield 'empty', []
    yield 'developer', [{'role': 'developer', 'content': 'Be nice.'}, USER]
    yield 'turns', [SYSTEM, USER, HI, q, THINK, USER, HI, q]
    yield 'no system, turns', [USER, HI, q, HI]
    yield 'assistant first', [HI, USER]
    yield 'two users', [USER, q]
    yield 'system late', [USER, HI, SYSTEM, q]
    yield 'reasoning', [q, THINK, w]
    yield 'reasoning last', [q, THINK]
    yield 'think tags', [q, THINK_TAGS, w]
    yield 'think tags last', [q, THINK_TAGS]
    yield 'unicode', [{'role': 'user', 'content':
                       '日本語 \U0001f600 e\u0301 \u2028 "q" \\ \t é'}]
    yield 'blank', [{'role': 'user', 'content': '  \n hi \n\n  '},
                    {'role': 'assistant', 'content': '\n ok \n'}, q]
    yield 'empty content', [{'role': 'user', 'content': ''},
                            {'role': 'assistant', 'content': ''}, q]
    yield 'null content', [q, {'role': 'assistant', 'content': None}, w]
    yield 'parts', [{'role': 'user', 'content': [
        {'type': 'text', 'text': 'One'}, {'type': 'text', 'text': 'two'}]}]
    yield 'parts all over', [
        {'role': 'system', 'content': [{'type': 'text', 'text': 'S'}]},
        {'role': 'user', 'content': [{'type': 'text', 'text': 'U'}]},
        {'role': 'assistant', 'content': [{'type': 'text', 'text': 'A'}]},
        q]
    yield 'image', [{'role': 'user', 'content': [
        {'type': 'image'}, {'type': 'text', 'text': 'What is it?'}]}]
    yield 'no content', [q, {'role': 'assistant'}, w]
    yield 'strange role', [{'role': 'critic', 'content': 'Hm.'}, q]
    for title, a in (('', ARGS), (', text', ARGS_TEXT)):
        yield 'call' + title, [w, call('get_weather', a)]
        yield 'call and result' + title, [
            SYSTEM, w, call('get_weather', a, 'call12345'),
            result('{"temp": 20}', 'call12345')]
        yield 'call with content' + title, [
            w, call('get_weather', a, 'callabcde', 'Let me look.'),
            result('20', 'callabcde'), HI, q]
        yield 'call with reasoning' + title, [
            w, call('get_weather', a, 'callabcde', '',
                    reasoning_content='I need it.'),
            result('20', 'callabcde')]
        yield 'parallel' + title, [
            w, parallel(a), result('20', 'callaaaa1'),
            result('noon', 'callbbbb2', 'now'), HI, q]
        yield 'calls in turns' + title, [
            w, call('get_weather', a, 'callaaaa1'),
            result('20', 'callaaaa1'), call('now', a, 'callbbbb2'),
            result('noon', 'callbbbb2', 'now')]
    yield 'no arguments', [w, call('now', {}, 'callabcde'),
                           result('noon', 'callabcde', 'now')]
    yield 'result parts', [w, call('now', {}, 'callabcde'), {
        'role': 'tool', 'tool_call_id': 'callabcde', 'content': [
            {'type': 'text', 'text': 'noon'}]}]
    yield 'result mapping', [w, call('now', {}, 'callabcde'), {
        'role': 'tool', 'tool_call_id': 'callabcde',
        'content': {'time': 'noon'}}]
    yield 'result alone', [w, result('20', 'callabcde')]


SWITCHES = [
    {}, {'enable_thinking': True}, {'enable_thinking': False},
    {'thinking': True}, {'reasoning_effort': 'high'},
]

DOCUMENTS = [{'title': 'T1', 'text': 'Text one.', 'doc_id': 1},
             {'title': 'T2', 'text': 'Text "two".', 'doc_id': 2}]


def variables(messages, tools, prompt, switches, **more):
    v = {'messages': messages, 'tools': tools, 'documents': None,
         'add_generation_prompt': prompt, 'bos_token': '<s>',
         'eos_token': '</s>'}
    v.update(switches)
    v.update(more)
    return v


def conversations():
    for title, messages in chats():
        for tools, prompt in itertools.product((None, TOOLS), (True, False)):
            for s in SWITCHES:
                if s and title not in ('one turn', 'turns', 'reasoning',
                                       'parallel', 'calls in turns',
                                       'think tags'):
                    continue
                yield ('%s%s%s %s' % (title, ', tools' if tools else '',
                                      ', prompt' if prompt else '', s or ''),
                       variables(messages, tools, prompt, s))
    yield 'documents', variables([SYSTEM, USER], None, True, {},
                                 documents=DOCUMENTS)
    yield 'no tokens', {'messages': [USER], 'add_generation_prompt': True}
    yield 'tools empty', variables([USER], [], True, {})
    yield 'builtin', variables([SYSTEM, USER], TOOLS, True, {},
                               builtin_tools=['brave_search',
                                              'code_interpreter'],
                               date_string='26 Jul 2024')
    yield 'tools in user', variables([SYSTEM, USER], TOOLS, True, {},
                                     tools_in_user_message=False)
