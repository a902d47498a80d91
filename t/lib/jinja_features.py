"""Small templates, one for each feature that chat templates may use."""

VARS = {
    'user': {'name': 'Ann', 'age': 41, 'tags': ['a', 'B', 'c'],
             'items': 'shadowed', 'none': None, 'pi': 3.14159},
    'list': [3, 1, 2], 'empty': [], 'nothing': None, 'yes': True,
    'no': False, 'zero': 0, 'half': 0.5, 'big': 1e22, 'tiny': 1.5e-07,
    'text': 'Hello, World', 'lines': 'one\ntwo\n\n  three\n',
    'uni': 'Äß日本\U0001f600e\u0301', 'blank': '  \t\n x \u00a0\u2003',
    'html': '<b>"x" & \'y\'</b>', 'quote': 'it\'s "q" \\ \n\t\x01\u2028é',
    'd': {'b': 1, 'a': [1, {'x': None}], 'C': 'c', 'e': {}},
    'people': [{'n': 'Al', 'a': 3, 'r': {'k': 1}},
               {'n': 'bo', 'a': 1, 'r': {'k': 2}},
               {'n': 'Cy', 'a': 3}],
    'nested': [[1, 2], [3, [4, 5]], []],
    'tree': [{'v': 1, 'kids': [{'v': 2, 'kids': []}, {'v': 3, 'kids': [
        {'v': 4, 'kids': []}]}]}, {'v': 5, 'kids': []}],
    'words': ['apple', 'Banana', 'cherry', 'apple'],
    'neg': -7, 'num': '42', 'fl': '4.75', 'bad': '4x', 'long': 'ab ' * 120,
}

# whitespace, comments, raw
SPACE = r'''
a {% if yes %} b {% endif %} c
{% if yes %}
  line
{% endif %}
end|  {% if yes %}x{% endif %}
|  {%- if yes %}  x  {%- endif %}  |
|  {%+ if yes %} x {% endif +%}
|{{- text -}}  |
| {{ text }}
|{# c #}  x {#- c -#}  y
|{# multi
line {{ x }} {% if %} #}
|z{% raw %}{{ x }} {% if %}{# #}{% endraw %}|
{%- raw -%}  {{ x }}  {%- endraw -%}  |
  {# alone #}
  {% set q = 1 %}
  {{ q }}
{{ "a" }}{% set z = 2 %}

b
'''.strip('\n').split('\n|')

EXPRESSIONS = r'''
1 + 2 * 3 - 4 / 2
3 is greaterthan 2, 2 is lessthan(2), "abcab".rindex("ab"), "abcab".rindex("a", 0, 2)
(user|attr("name")) is defined, ("x"|attr("nope")) is undefined
7 // 2, -7 // 2, 7 // -2, 7 % 3, -7 % 3, 7 % -3, 7.5 // 2, -7.5 % 2
2 ** 10, 2 ** -1, 2 ** 3 ** 2, -2 ** 2, 2.0 ** 0.5
10 / 4, 10 / 5, 1 / 3, 1e3, 1.5e-7, 1e22, 1e16, 123456789.123, 0.1 + 0.2
1_000, 1_0.5_0, 0, 00
half, big, tiny, neg, -neg, +neg, zero, -half
"a" "b" 'c'
"a\tb\n\x41\u00e9\U0001F600\"\'\\\q"
"a" + "b" ~ 1 ~ none ~ true ~ 1.0 ~ [1, "x"] ~ {"k": 'v'}
"ab" * 3, 3 * "ab", [1] * 2, "x" * -1, "x" * 0
[1, 2] + [3], (1, 2) + (3,)
(1,), (), (1, 2), [], {}, [1, [2, (3,)]]
{"a": 1, 'b': [1, 2], 3: none, none: true, 1.5: "x", true: 2}
{"a": 1, "a": 2}
[1, 2,], {"a": 1,}, (1, 2,)
true, false, none, True, False, None
1 < 2 < 3, 1 < 3 < 2, 3 > 2 >= 2, 1 == 1.0, 1 != 2, "a" < "b", [1, 2] < [1, 3]
1 in [1, 2], 4 not in [1, 2], "a" in "cat", "a" in {"a": 1}, 1 in (1,), "x" not in "cat"
not true, not not 1, not zero and yes, yes or no and no, no or "x", yes and "y", zero or none
1 if yes else 2, 1 if no else 2, (1 if no), "a" if no else "b" if no else "c"
(1 if no) is defined
user.name, user["name"], user.missing, user["missing"], user.age + 1
user["items"], user.keys() | list, user.get("name"), user.get("x", "dflt"), user.get("x")
user.tags[0], user.tags[-1], user.tags[9], user.tags["0"], user.tags.0
list[0], list[1:], list[:2], list[::-1], list[-2:], list[5:], list[0:3:2], list[::2], list[2:0:-1], list[-1:-3:-1]
text[0], text[-1], text[1:4], text[::-1], text[::2], text[100:], text[-3:], text[:-3], text[4:1]
uni[0], uni[2], uni[-1], uni[1:4], uni[::-1], uni | length, uni[::2], uni[4:]
nested[1][1][0], d.a[1].x, d["a"][1]["x"]
missing is defined, missing is undefined, user.x is defined, missing | default("d"), missing
missing or "x", missing == missing, missing == none, missing != 1, [missing] | length, missing is none
text is string, 1 is string, 1 is number, 1.0 is number, true is number, "1" is number
1 is integer, true is integer, 1.0 is integer, 1.0 is float, 1 is float, true is boolean, 1 is boolean
d is mapping, list is mapping, list is sequence, text is sequence, d is sequence, 1 is sequence, missing is sequence
list is iterable, text is iterable, 1 is iterable, missing is iterable, none is iterable, d is iterable
none is none, 0 is none, true is true, 1 is true, false is false, 0 is false
3 is odd, 3 is even, 9 is divisibleby 3, 9 is divisibleby(4), 3 is not odd
1 is eq 1, 1 is equalto(2), 1 is ne 2, 1 is lt 2, 2 is gt 1, 2 is ge 2, 2 is le 1, 1 is == 1, 2 is in [1, 2]
text is lower, "abc" is lower, "ABC" is upper, "" is lower, "1" is upper, 1 is lower
range is callable, text is callable, missing is callable, dict is callable
"upper" is filter, "nope" is filter, "odd" is test, "nope" is test
1 is sameas 1, none is sameas none, list is sameas list, 1 is sameas true
"x" | safe is escaped, "x" is escaped
text | upper, text | lower, text | title, text | capitalize, "hello wORLD-foo (bar) x_y" | title
uni | upper, uni | lower, uni | title, uni | capitalize, "ÀÉÎÕÜ ÿ µ × ÷ ø" | lower, "àéîõüÿµ×÷ø" | upper, "ΑΒΓΔ Ωώ ς" | upper, "АБВ Ёё Ї" | lower, "абв ёї ґ" | upper, "Őő Žž Łł Įį" | upper, "Őő Žž Łł Įį" | lower
uni.upper(), "ßx" | capitalize, "they're bill's" | title, "they're".title(), "élan été".title()
blank | trim | length, "xxaxx" | trim("x"), blank.strip() | length, "xyaxy".lstrip("xy"), "abcx".rstrip("cx")
text | replace("l", "L"), text | replace("l", "L", 1), text.replace("o", ""), "aaa" | replace("", "-"), 12 | replace(1, 2)
text | length, list | length, d | count, empty | length, missing | length, "" | length
list | first, list | last, empty | first, empty | last, text | first, text | last, d | first, d | last
list | sort, list | sort(reverse=true), words | sort, words | sort(case_sensitive=true), people | map(attribute="n") | sort
people | sort(attribute="a") | map(attribute="n") | join(",")
list | sum, people | sum(attribute="a"), people | sum("a", 10), empty | sum, [0.5, 1] | sum, [[1], [2]] | sum(start=[])
list | min, list | max, words | min, words | max, empty | min, people | max(attribute="a"), words | max(case_sensitive=true)
words | unique | list, words | unique(true) | join("-"), people | unique(attribute="a") | map(attribute="n") | list
list | reverse | list, text | reverse, d | reverse | list, [1, 2] | reverse | first
list | join, list | join(", "), words | join("|"), people | join(", ", attribute="n"), [1, none, true, 1.5, "x"] | join("-"), d | join
text | list, d | list, (1, 2) | list, empty | list, missing | list, uni | list
d | dictsort, d | dictsort(true), d | dictsort(by="key", reverse=true), {"x": 2, "y": 1} | dictsort(by="value")
d | items | list, d.items() | list, d.values() | list, d.keys(), d.items(), missing | items | list
words | map("upper") | list, words | map("replace", "a", "A") | join(" "), people | map(attribute="r.k") | list, people | map(attribute="r.k", default=9) | list
people | map(attribute="zz", default="-") | join, nested | map("first") | list, nested | map(attribute=0) | list, nested | map(attribute="1.1") | list
words | select("in", ["apple"]) | list, [1, 0, none, "x", ""] | select | list, [1, 2, 3] | select("odd") | list, [1, 2, 3] | select(">", 1) | list
[1, 0, none, "x"] | reject | list, [1, 2, 3] | reject("odd") | list, people | selectattr("r") | map(attribute="n") | list
people | selectattr("a", "equalto", 3) | map(attribute="n") | list, people | rejectattr("a", "eq", 3) | map(attribute="n") | list, people | selectattr("r.k", "defined") | list | length
people | rejectattr("r") | list | length, none | map("upper") | list, empty | select | list, missing | map("x") | list
num | int, fl | int, bad | int, bad | int(7), "0x1f" | int(0, 16), "0b11" | int(0, 2), "-0o17" | int(0, 8), "ff" | int(base=16), "11" | int(base=2), " 12 " | int, "1_000" | int, 3.9 | int, -3.9 | int, true | int, none | int, "" | int, "-5" | int, "+5" | int, "1e3" | int
num | float, fl | float, bad | float, bad | float(1.5), 3 | float, none | float, " 1.5 " | float, "1e3" | float, "-.5" | float, "1_0.5" | float, "0x1" | float
2.5 | round, 3.5 | round, 2.567 | round(2), 2.567 | round(1, "ceil"), 2.567 | round(1, "floor"), 7 | round, 1234 | round(-2), 1250 | round(-2), -2.5 | round, 2.675 | round(2), 5 | round(1), 0.5 | round, -0.4 | round
-5 | abs, 5.5 | abs, neg | abs, true | abs
missing | default, missing | d("x"), "" | default("x"), "" | default("x", true), none | default("x"), none | d("x", boolean=true), zero | default(5, true)
lines | indent, lines | indent(2), lines | indent(2, true), lines | indent(2, true, true), lines | indent(width=1, blank=true), "x" | indent("> ", true), "" | indent(2, true), "a\n" | indent, "a\n\nb" | indent(1), "a\r\nb\rc" | indent(2)
long | truncate(20), long | truncate(20, true), long | truncate(20, false, "!"), text | truncate(5, leeway=0), text | truncate(12), text | truncate(7, true, "", 0), uni | truncate(5, true, "", 0)
text | wordcount, "" | wordcount, uni | wordcount, "a_b c-d 1.5" | wordcount
html | escape, html | e, html | safe, html | safe | upper, ("<" | safe) + ">", ">" + ("<" | safe), "<" ~ ("<" | safe), (html | e) | e
("<" | safe).join([html, 1, "x" | safe]), ("a<b" | safe).replace("a", "<"), ("<" | safe) * 2, "<" in ("<" | safe), (("<a>" | safe).split("a")) , ("<" | safe).upper() ~ "<", [("<" | safe)[0] + "<"], ("<a" | safe) | list | first + "<"
"a,b,,c".split(","), "a b  c ".split(), "a,b,c".split(",", 1), "a b c".split(none, 1), "abc".split("x"), "".split(","), "".split(), "a--b--c".split("--"), " x y ".split(" ")
"a,b,c".rsplit(",", 1), "a,b,c".rsplit(","), " a  b c ".split(none, 1), "abc".rsplit("b", 5)
"a\nb\r\nc\rd\x0be\u2028f\n".splitlines(), "a\n\nb".splitlines(true), "".splitlines(), "\n".splitlines(), lines.splitlines() | length
text.startswith("Hell"), text.startswith(("x", "He")), text.endswith("ld"), text.endswith(("x",)), text.startswith(""), text.startswith("l", 2), text.endswith("lo", 0, 5), text.startswith("x", 50)
text.find("o"), text.find("o", 5), text.find("zz"), text.rfind("o"), text.index("W"), text.count("l"), text.count(""), uni.find("本"), uni.rfind("e"), text.find("l", -3), text.rfind("l", 0, 5), "aaa".count("aa"), text.find("")
"abc".isalpha(), "ab1".isalpha(), "12".isdigit(), "½".isdigit(), "²".isdigit(), "ab1".isalnum(), "½é".isalnum(), " \t".isspace(), "".isspace(), "Ab".isupper(), "AB1".isupper(), "ab".islower(), "日本".isalpha(), "٣".isdigit(), "éß".islower(), "É1".isupper(), "a b".isalpha()
"abc".removeprefix("a"), "abc".removesuffix("c"), "abc".removeprefix("x"), "a=b=c".partition("="), "a=b=c".rpartition("="), "abc".partition("="), "abc".rpartition("=")
", ".join(["a", "b"]), "".join([]), "-".join("abc"), " ".join(words | map("upper")), "x".join({"a": 1, "b": 2})
list.index(2), list.count(1), (1, 2, 1).count(1), (1, 2).index(2), list.copy(), d.copy() == d
d | tojson, user | tojson, list | tojson, text | tojson, quote | tojson, uni | tojson, none | tojson, half | tojson, big | tojson, [1.0, 1e-7, -0.0, 100000000000000000.0] | tojson, empty | tojson, {} | tojson, (1, 2) | tojson, {1: 2, none: 3, true: 4, 1.5: 5} | tojson
d | tojson(indent=2), d | tojson(indent=0), nested | tojson(indent=4), d | tojson(separators=(",", ":")), {"b": 1, "a": {"d": 1, "c": 2}} | tojson(sort_keys=true), uni | tojson(ensure_ascii=true), [] | tojson(indent=2), {"a": []} | tojson(indent="\t"), d | tojson(indent=1, separators=("; ", " = ")), quote | tojson(true)
text | string, 5 | string, [1] | string, missing | string, none | string, 1.0 | string, true | string
quote, [quote], [text, uni, html], {"k": quote}, ["it's", 'say "x"', 'both \' and "'], "\x7f\x80\xa0\xad", ["\x7f\x80\xa0\xad\ufeff\u200b"]
range(5) | list, range(2, 8, 3) | list, range(5, 0, -2) | list, range(3), range(0, 10, 3), range(10)[2], range(0) | list, range(3) | sum, 2 in range(3), range(3) == range(0, 3), range(5) | last, range(4) | length
dict(a=1, b=2), dict(d, z=1) | length, dict([("a", 1)]), dict(), dict({"a": 1}, a=2)
namespace(a=1).a, namespace({"x": 2}).x, namespace().x is defined, namespace(a=1)["a"]
strftime_now("%Y-%m-%d %H:%M:%S %A %b %d %j %% %-d"), strftime_now("x"), strftime_now("%d %B %Y")
loop is defined, loop
people[0].n.upper(), people[0]["n"][0].lower(), (people | first).n, (people | last)["n"] | lower, [1, 2][0], "abc"[1], {"a": 1}.a, {"a": 1}["a"], ("a", "b")[1]
text.upper().lower().title(), text | upper | lower | length + 1, (text | upper)[0], text | length * 2, -3 | abs, - 3 | abs, (1, 2) | length
1 if 1 else 2 ~ 3, not 1 == 2, 1 == 1 and 2 == 2, 1 + 2 ~ 3 + 4, "a" ~ "b" in "xab", 2 * 3 ~ 4
user.name is defined and user.name, "Ann" is in [user.name], user.age is number and user.age > 40, text is not string or 1
"a" is defined, (missing | default({})).x, (missing | default("")).x is defined, d.e.f is defined
[1, 2, 3] == [1, 2, 3], (1,) == [1], {"a": 1} == {"a": 1.0}, "a" == "a", none == false, 0 == false, "" == none, [] == ()
12345678901234 * 1000, 9007199254740993, 1e15, 1e17 | int, 2 ** 62, 7 | float, 1e400, -1e400
0.1, 1.0, 100.0, 1e5, 123456.789e3, 5e-324, 1.7976931348623157e308, 2.5e-5, 0.0001, 0.00001, 1e100
'''.strip('\n').split('\n')

STATEMENTS = r'''
{% for x in list %}{{ x }}{{ "," if not loop.last }}{% endfor %}
{% for x in list %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}
{% for x in list %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}|{{ loop.previtem is defined }}{{ loop.nextitem is undefined }};{% endfor %}
{% for x in list %}{{ loop.cycle("a", "b") }};{% endfor %}
{% for x in empty %}x{% else %}none{% endfor %}
{% for x in list %}x{% else %}none{% endfor %}
{% for x in list %}{% continue %}{% else %}quirk{% endfor %}
{% for x in list %}{% break %}{% else %}quirk{% endfor %}
{% for x in list %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% else %}e{% endfor %}
{% for x in range(10) %}{% if x == 4 %}{% break %}{% endif %}{{ x }}{% endfor %}
{% for x in list if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }}{{ loop.last }};{% endfor %}
{% for x in list if x > 1 %}{{ x }}{% endfor %}
{% for x in list if x > 100 %}x{% else %}none{% endfor %}
{% set ns = namespace(n=2) %}{% for x in range(6) if x < ns.n %}{{ x }}{% set ns.n = ns.n + 1 %}{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}
{% for k, v in d | items %}{{ loop.index }}{{ k }};{% endfor %}
{% for k in d %}{{ k }}{% endfor %}{% for c in text %}{{ c }}.{% endfor %}{% for c in uni %}[{{ c }}]{% endfor %}
{% for a, b in [(1, 2), [3, 4], "xy"] %}{{ a }}-{{ b }};{% endfor %}
{% for (a, b), c in [((1, 2), 3)] %}{{ a }}{{ b }}{{ c }}{% endfor %}
{% for x in missing %}x{% else %}undefined is empty{% endfor %}
{% for n in tree recursive %}({{ n.v }}@{{ loop.depth }}{{ loop(n.kids) }}){% endfor %}
{% for n in tree recursive %}{{ n.v }}{% if n.kids %}[{{ loop(n.kids) }}]{% else %}.{% endif %}{{ loop.last }}{% endfor %}
{% for a in [1, 2] %}{% for b in [3, 4] %}{{ loop.index }}{{ a }}{{ b }}{% endfor %}{{ loop.index }}{% endfor %}
{% for a in [1, 2] %}{% set outer = loop %}{% for b in [3] %}{{ outer.index }}{{ loop.index }}{% endfor %}{% endfor %}
{% for x in (1, 2, 3) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}
{% for x in list %}{{ loop.length }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}
{% for x in list | reverse %}{{ x }}{{ loop.last }}{{ loop.revindex }}{% endfor %}
{% for x in words | select("ne", "apple") %}{{ loop.index }}/{{ loop.length }}{{ x }}{% endfor %}
{% if yes %}a{% elif no %}b{% else %}c{% endif %}{% if no %}a{% elif yes %}b{% else %}c{% endif %}{% if no %}a{% elif no %}b{% else %}c{% endif %}
{% if missing %}a{% else %}b{% endif %}{% if user.x %}a{% endif %}{% if empty %}a{% else %}b{% endif %}{% if "0" %}a{% endif %}{% if 0.0 %}a{% else %}b{% endif %}
{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}
{% set x = 1 %}{% for i in list %}{% set x = x + 1 %}{{ x }}{% endfor %}{{ x }}
{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}
{% if no %}{% set text = 1 %}{% endif %}{{ text }}
{% if no %}{% set fresh = 1 %}{% endif %}{{ fresh is defined }}
{% for i in [1, 2] %}{% if i == 1 %}{% set y = i %}{% endif %}{{ y is defined }}{% endfor %}
{% for i in [1, 2] %}{{ y is defined }}{% set y = i %}{{ y }}{% endfor %}{{ y is defined }}
{% for i in [1] %}{{ text }}{% set text = "in" %}{{ text }}{% endfor %}{{ text }}
{% set ns = namespace(x=0, s="") %}{% for i in list %}{% set ns.x = ns.x + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.x }}{{ ns.s }}
{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.b %}block{{ text }}{% endset %}{{ ns.a }}{{ ns.b }}
{% set ns = namespace(a=1) %}{% set ns.a, b = 5, 6 %}{{ ns.a }}{{ b }}
{% set b %}  x {{ 1 + 1 }} {% endset %}[{{ b }}]{{ b | length }}{{ b is string }}
{% set b | upper %}abc{{ text }}{% endset %}{{ b }}{% set b | replace("a", "b") | trim %} aa {% endset %}{{ b }}
{% set text %}{{ text }}{% endset %}[{{ text }}]
{% set text = text %}{{ text }}
{% for i in [1] %}{% set text %}{{ text }}!{% endset %}{{ text }}{% endfor %}{{ text }}
{% filter upper %}abc {{ text }}{% endfilter %}{% filter replace("a", "b") | upper %}aXa{% endfilter %}
{% filter trim %}  x{% set inner = 1 %}  {% endfilter %}{{ inner is defined }}
{% with %}{% set w = 1 %}{{ w }}{% endwith %}{{ w is defined }}
{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}{% set a = 5 %}{% with a = 1, b = a %}{{ a }}{{ b }}{% endwith %}
{% macro m(a, b=2, c="x") %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(1, c="y") }}{{ m(a=5, b=6) }}{{ m() }}
{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}{{ m(1, 2) }}
{% macro m() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, x=3) }}{{ m() }}
{% macro m(a) %}{{ a is defined }}{{ a }}{% endmacro %}{{ m() }}{{ m(none) }}
{% macro m(x) %}{% if x > 0 %}{{ x }}{{ m(x - 1) }}{% endif %}{% endmacro %}{{ m(3) }}
{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}body {{ text }}{% endcall %}
{% macro m(n) %}{% for i in range(n) %}{{ caller(i, i * 2) }}{% endfor %}{% endmacro %}{% call(a, b) m(2) %}{{ a }}:{{ b }};{% endcall %}
{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}
{% macro m(caller=none) %}{{ caller is none }}{% endmacro %}{{ m() }}{% call m() %}x{% endcall %}
{% macro m() %}{{ late }}{% endmacro %}{% set late = 1 %}{{ m() }}{% set late = 2 %}{{ m() }}
{% macro m() %}{{ text }}{% set text = "local" %}{{ text }}{% endmacro %}{{ m() }}{{ text }}
{% set x = "outer" %}{% macro m(x) %}{{ x }}{% endmacro %}{{ m("arg") }}{{ x }}
{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}b{% endmacro %}{{ a() }}
{% macro m(a) %}{{ a | upper }}{% endmacro %}{{ m("x") ~ m("y") }}{{ m("q") | lower }}{{ (m("z"))[0] }}{{ m }}{{ m.name }}
{% macro outer() %}{% macro inner() %}i{{ y }}{% endmacro %}{% set y = 3 %}{{ inner() }}{% endmacro %}{{ outer() }}
{% macro m(*a) %}{% endmacro %}
{% macro m(a, a2=[]) -%} {{ a }} {%- endmacro %}|{{ m(1) }}|
{{ m is defined }}{% macro m() %}{% endmacro %}{{ m is defined }}{{ m is callable }}
{% set j = joiner("|") %}{% for x in list %}{{ j() }}{{ x }}{% endfor %}
{% generation %}gen {{ text }}{% set g = 1 %}{% endgeneration %}{{ g is defined }}
{% for x in [1] %}{% generation %}{{ x }}{{ loop.index }}{% endgeneration %}{% endfor %}
{{ raise_exception("Stop: " ~ text) }}
{% if text != "x" %}{{ raise_exception('Roles must "alternate" — ' + user.name) }}{% endif %}
{{ missing.x }}
{{ missing["x"] }}
{{ missing() }}
{{ missing + 1 }}
{{ 1 + missing }}
{{ user.x.y }}
{{ none.x }}
{{ none + "x" }}
{{ "x" + none }}
{{ "x" + 1 }}
{{ 1 + "x" }}
{{ [] + () }}
{{ 1 / 0 }}
{{ 1 // 0 }}{{ 1 % 0 }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ [1] < [none] }}
{{ 1 in 5 }}
{{ 1 in "a" }}
{{ 1 in none }}
{{ [] in {} }}
{{ {[]: 1} }}
{{ none | length }}
{{ 5 | length }}
{{ none | first }}
{{ none[0] is defined }}{{ (none.x) is defined }}{{ 5["x"] is defined }}
{% set n = none %}{{ n[1:] }}
{{ d[1:] }}
{{ list["a":] }}
{{ list[::0] }}
{{ list.append(1) }}
{{ list.append is defined }}{{ list.pop is defined }}{{ d.update is defined }}{{ d.pop is defined }}{{ text.foo is defined }}
{{ d.update({"x": 1}) }}
{{ d.pop("b") }}
{{ d.pop("nokey") }}
{{ d.pop("nokey", 5) }}
{{ list.sort() }}
{{ d.popitem() }}
{% set l = [1] %}{{ l.append(2) }}{{ l.extend("ab") }}{{ l.insert(0, "x") }}{{ l.insert(-1, "y") }}{{ l.insert(99, "z") }}{{ l }}
{% set l = [1, 2, 3, 2] %}{{ l.pop() }}{{ l.pop(0) }}{{ l }}{{ l.remove(2) }}{{ l }}{{ l.reverse() }}{{ l.clear() }}{{ l }}
{% set l = [] %}{{ l.pop() }}
{% set l = [1] %}{{ l.pop(1) }}
{% set l = [1] %}{{ l.pop(-2) }}
{% set l = [1] %}{{ l.remove(2) }}
{% set l = [1] %}{{ l.append() }}
{% set l = [1] %}{{ l.extend(5) }}
{% set l = [1, 2, 3] %}{{ l.reverse() }}{{ l }}{% set k = l.copy() %}{{ k.append(4) }}{{ l }}{{ k }}
{% set l = [1, 2] %}{% set k = l %}{{ k.append(3) }}{{ l }}
{% set ns = namespace(q=[]) %}{% for x in [1, 2, 3] %}{% set _ = ns.q.append(x) %}{% endfor %}{{ ns.q.pop(0) }}{{ ns.q }}{{ ns.q | length }}
{% set l = [1, 2, 3, 4] %}{% for x in l %}{{ x }}{% if x == 2 %}{{ l.pop(0) }}{% endif %}{% endfor %}{{ l }}
{% set l = [1, 2] %}{% for x in l %}{{ x }}{% if x < 5 %}{{ l.append(x + 3) }}{% endif %}{% endfor %}{{ l }}
{% for i in [1, 2] %}{% set l = [] %}{{ l.append(i) }}{{ l }}{% endfor %}
{% set e = {"a": 1} %}{{ e.update({"b": 2}, c=3) }}{{ e.update(a=5) }}{{ e }}{{ e.setdefault("a", 7) }}{{ e.setdefault("z") }}{{ e.pop("b") }}{{ e }}{{ e.copy() }}{{ e.clear() }}{{ e }}
{% set e = {} %}{% for i in range(40) %}{{ e.update({i: i}) or "" }}{% endfor %}{% for i in range(30) %}{{ e.pop(i) }}{% endfor %}{{ e }}{{ e[35] }}{{ e.get(3) }}{{ e.update({3: 4}) }}{{ e[3] }}
{% set e = {"a": 1} %}{% set f = e.copy() %}{{ f.update(b=2) }}{{ e }}{{ f }}{{ e.update(5) }}
{% set t = (1, 2) %}{{ t.append(3) }}
{{ text.__class__ }}
{{ text.foo() }}
{{ user.name() }}
{{ range(100001) | length }}
{{ range(1, 2, 0) }}
{{ "a".join([1]) }}
{{ "a".index("b") }}
{{ list.index(9) }}
{{ list | sort(attribute="x") }}{{ ["a", 1] | sort }}
{{ missing | tojson }}
{{ [missing] | tojson }}
{{ range(3) | tojson }}
{{ {(1, 2): 1} | tojson }}
{{ missing | int }}
{{ missing | float }}
{{ text | int(base=99) }}
{{ 5 | join }}
{{ none | join }}
{{ none | list }}
{{ list | items | list }}
{{ text | dictsort }}
{{ text.split("") }}
{{ text.strip(1) }}
{{ text.replace("a") }}
{{ text | replace("a") }}
{{ text | nosuchfilter }}
{{ text is nosuchtest }}
{% if no %}{{ text | nosuchfilter }}{% endif %}ok
{% if yes %}{{ text | nosuchfilter }}{% endif %}ok
{% if no %}{% for x in list %}{{ x | nosuchfilter }}{% endfor %}{% endif %}
{{ (text | nosuchfilter) if no else "ok" }}
{{ text | map("nosuch") | list }}
{{ list | select("nosuch") | list }}
{{ dict(1) }}
{{ namespace(_x=1) }}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set list.name = 1 %}
{% set user.name = 1 %}{{ user }}{% for p in [{"a": 1}, {"a": 2}] %}{% set p.b = p.a + 1 %}{{ p }}{% endfor %}
{% set missing.x = 1 %}
{% for a, b in [1] %}{% endfor %}
{% for a, b in [(1, 2, 3)] %}{% endfor %}
{% for x in 5 %}{% endfor %}
{% for x in none %}{% endfor %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% macro m(a) %}{% endmacro %}{{ m(b=2) }}
{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}
{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}
{% break %}
{% for x in list %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}
{% if %}x{% endif %}
{% if yes %}x
{% for x in %}{% endfor %}
{{ }}
{{ 1 + }}
{{ (1 }}
{{ [1, }}
{{ "abc }}
{{ a b }}
{{ 1 if }}
{{ x | }}
{{ x is }}
{{ x.  }}
{{ x[] }}
{{ f(a=1, 2) }}
{{ f(a=1, a=2) }}
{{ 08 }}
{{ ! }}
{{ a ! b }}
{% unknown %}
{% endif %}
{% set 1 = 2 %}
{% set x %}
{% for loop in list %}{% endfor %}
{% macro m(a=1, b) %}{% endmacro %}
{% call 5 %}x{% endcall %}
{{ x is odd is even }}
{# unfinished
{% raw %} unfinished
{% do list.append(1) %}
{% for x in list recursive %}{{ loop(5) }}{% endfor %}
{% for x in list %}{{ loop(list) }}{% endfor %}
{{ text.upper(1) }}
{{ d.get() }}
{{ text | default(1, 2, 3) }}
{{ text | upper(1) }}
{{ caller() }}
{{ "x" if missing.y else "z" }}
{{ list | round }}
{{ text | abs }}
{{ -text }}
{{ +none }}
{{ text * 1.5 }}
{{ 2 ** "a" }}
{{ "\u12" }}
{{ list(1) }}
{%- for m in people -%}{%- if loop.first -%}{{- m.n -}}{%- endif -%}{%- endfor -%}  end
{% for x in [1,2,3] -%}
   {{ x }}
{%- endfor %}
{{ text|upper}}{{text |lower }}{{- ' x ' -}}
{% set a = {"k": [1, {"z": "q"}]} %}{{ a.k[1].z }}{{ a["k"][0] }}{{ a }}
{% set messages = people[1:] %}{% for m in messages %}{{ m.n }}{% endfor %}{% set people = [] %}{{ people }}
{% set items = [] %}{% for x in list %}{% set items = items + [x] %}{% endfor %}{{ items }}
{% set ns = namespace(items=[]) %}{% for x in list %}{% set ns.items = ns.items + [x] %}{% endfor %}{{ ns.items }}
{%- macro render(v, depth=0) -%}{%- if v is mapping -%}{%- for k, x in v.items() -%}{{ "  " * depth }}{{ k }}:{{ render(x, depth + 1) }};{%- endfor -%}{%- elif v is iterable and v is not string -%}[{%- for x in v -%}{{ render(x, depth + 1) }}{{ "," if not loop.last }}{%- endfor -%}]{%- else -%}{{ v }}{%- endif -%}{%- endmacro -%}{{ render(d) }}
{%- set types = {"string": "str"} -%}{{ types["string"] }}{{ types["x"] is defined }}{{ types[none] is defined }}
{% if "a" in d and d.a is iterable and d.a is not mapping %}ok{% endif %}{% if d.zzz is not defined or d.zzz is none %}ok{% endif %}
{{ (text ~ "<|x|>").split("<|")[-1] }}{{ "a</think>b".split("</think>")[-1].lstrip("\n") }}{{ "<think>q</think>b".split("</think>")[0].split("<think>")[-1] }}
{{ dict(*[d], **{"q": 1}) | length }}{{ range(*[1, 3]) | list }}{% macro m(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ m(*[1, 2], **{"c": 3}) }}{{ m(1, *[2], c=3) }}
'''.strip('\n').split('\n')

CASES = SPACE + ['{{ %s }}' % e.strip() for e in EXPRESSIONS
                 if e.strip()] + STATEMENTS
# each expression of a line also alone, as an error in one hides the others
CASES += ['{{ [%s] }}' % e for e in EXPRESSIONS]
