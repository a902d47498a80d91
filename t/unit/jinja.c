/*
 * The template interpreter alone: where text came from, limits, errors, and
 * use from several threads.  What it renders is compared with jinja2 in
 * jinja_ref.c.
 */

#include "engine/api/json.h"
#include "engine/text/jinja/jinja.h"
#include "t/unit/cpu.h"
#include "t/unit/tap.h"

#include <pthread.h>
#include <time.h>

/* how much slower a sanitizer may make it */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SLOW  10
#else
#define SLOW  1
#endif

#if defined(__SANITIZE_ADDRESS__)

/* each memmem() would look at the shadow of all the text behind it */

__attribute__((visibility("default")))
const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
    return "intercept_memmem=0";
}

#endif

static const char *const  trusted_vars[] = { "bos", NULL };
static const char *const  trusted_roles[] = { "user", "system", NULL };


/* renders with variables in JSON; the result is in p or err */

static int
render(const char *src, const char *vars, const llm_jinja_opts_t *opts,
    llm_prompt_t *p, llm_err_t *err)
{
    int           rc;
    llm_buf_t     b;
    llm_jinja_t  *t;

    memset(p, 0, sizeof(*p));
    memset(err, 0, sizeof(*err));

    t = llm_jinja_compile(src, strlen(src), err);
    if (t == NULL) {
        return LLM_ERROR;
    }

    llm_buf_init(&b, 0);

    if (llm_json_to_flat(vars, strlen(vars), NULL, &b, err) != LLM_OK) {
        llm_jinja_free(t);
        return LLM_ERROR;
    }

    rc = llm_jinja_render(t, (const llm_flat_t *) b.data, trusted_vars, opts,
                          p, err);

    llm_buf_free(&b);
    llm_jinja_free(t);

    return rc;
}


/* for the name of a test */

static const char *
one_line(const char *src)
{
    size_t       i;
    static char  buf[200];

    for (i = 0; src[i] && i < sizeof(buf) - 1; i++) {
        buf[i] = (src[i] == '\n' || src[i] == '#') ? ' ' : src[i];
    }

    buf[i] = '\0';

    return buf;
}


/* the output with trusted runs in brackets */

static void
is_marked(const char *src, const char *vars, const char *want)
{
    char              out[4096];
    size_t            i, k, n;
    llm_err_t         err;
    llm_prompt_t      p;
    llm_jinja_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.trusted_roles = trusted_roles;

    if (render(src, vars, &opts, &p, &err) != LLM_OK) {
        ok(0, "%s", one_line(src));
        printf("# %s\n", err.msg);
        return;
    }

    for (i = 0, k = 0, n = 0; i <= p.len && n < sizeof(out) - 3; i++) {
        if (k < p.n_trusted && p.trusted[k].end == i) {
            out[n++] = ']';
            k++;
        }

        if (k < p.n_trusted && p.trusted[k].start == i) {
            out[n++] = '[';
        }

        if (i < p.len) {
            out[n++] = p.text[i];
        }
    }

    out[n] = '\0';
    is_str(out, want, "%s", one_line(src));

    llm_prompt_free(&p);
}


static void
test_trust(void)
{
    static const char  v[] =
        "{\"bos\": \"<s>\", \"u\": \"user\", \"e\": \"<|x|>\", \"n\": 12,"
        " \"l\": [\"a\", \"b\"], \"m\": {\"role\": \"user\", \"content\":"
        " \"user\"}, \"r\": {\"role\": \"<|x|>\"}, \"k\": {\"<|x|>\": 1},"
        " \"w\": \" u v \", \"up\": \"aßc\"}";

    is_marked("a{{ e }}b", v, "[a]<|x|>[b]");
    is_marked("{{ bos }}{{ e }}", v, "[<s>]<|x|>");
    is_marked("{{ 'x' + e + 'y' }}", v, "[x]<|x|>[y]");
    is_marked("{{ 'x' ~ n ~ 1 ~ e }}", v, "[x]12[1]<|x|>");
    is_marked("{{ n }}{{ n + 1 }}{{ 3 + 4 }}{{ -n }}", v, "1213[7]-12");
    is_marked("{{ '<|' + m.role + '|>' }}", v, "[<|user|>]");
    is_marked("{{ '<|' + m.content + '|>' }}", v, "[<|]user[|>]");
    is_marked("{{ '<' + r.role + '>' }}", v, "[<]<|x|>[>]");
    is_marked("{{ e[1:3] }}{{ ('ab' + e)[1:4] }}", v, "|x[b]<|");
    is_marked("{{ ('ab' + e)[::-1] }}", v, ">|x|<[ba]");
    is_marked("{{ (' a ' + w) | trim }}", v, "[a ] u v");
    is_marked("{{ ('ab' + u) | upper }}", v, "[AB]USER");
    is_marked("{{ ('x' + up) | upper }}", v, "[X]ASSC");
    is_marked("{{ u | replace('s', '[') }}", v, "u[[]er");
    is_marked("{{ 'asb' | replace('s', e) }}", v, "[a]<|x|>[b]");
    is_marked("{{ l | join('-') }}", v, "a[-]b");
    is_marked("{{ ('a-' + u + '-b').split('-') | join('+') }}", v,
              "[a+]user[+b]");
    is_marked("{{ ('x' + u) | tojson }}", v, "\"[x]user\"");
    is_marked("{{ l | tojson }}", v, "[\"a\", \"b\"]");
    is_marked("{{ l }}", v, "[[']a[', ']b[']]");
    is_marked("{% for x, y in k.items() %}{{ x }}{{ y }}{% endfor %}", v,
              "<|x|>1");
    is_marked("{% set s %}a{{ e }}{% endset %}{{ s }}{{ s }}", v,
              "[a]<|x|>[a]<|x|>");
    is_marked("{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f(e) }}", v,
              "[<]<|x|>[>]");
    is_marked("{% filter upper %}a{{ u }}b{% endfilter %}", v, "[A]USER[B]");
    is_marked("{{ ('a\\n' + u) | indent(2) }}", v, "[a\n  ]user");
    is_marked("{{ u | list | join }}{{ u | reverse }}", v, "userresu");
    is_marked("{{ u | length }}{{ l | length }}", v, "[42]");
    is_marked("{{ e | e }}", v, "&lt;|x|&gt;");
    is_marked("{{ 'a,' * 2 + u * 2 }}", v, "[a,a,]useruser");
    is_marked("{{ e if e == '<|x|>' else 'no' }}", v, "<|x|>");
    is_marked("{{ (u ~ 'zz') | truncate(6, true, '', 0) }}", v, "user[zz]");
    is_marked("{{ u | truncate(3, true, '', 0) }}", v, "use");
    is_marked("", v, "");
    is_marked("{{ u }}", v, "user");
}


static void
fails(const char *src, const char *vars, int status, const char *want)
{
    llm_err_t     err;
    llm_prompt_t  p;

    if (render(src, vars, NULL, &p, &err) == LLM_OK) {
        ok(0, "fails: %s", one_line(src));
        llm_prompt_free(&p);
        return;
    }

    is_str(err.msg, want, "%s", one_line(src));
    is_int(err.status, status, "its status");
}


static void
test_errors(void)
{
    fails("a\nb{{ x.y }}", "{}", 500,
          "chat template, line 2: 'x' is undefined");
    fails("{{ m.y.z }}", "{\"m\": {}}", 500,
          "chat template, line 1: 'dict object' has no attribute 'y'");
    fails("{{ l[3].x }}", "{\"l\": []}", 500,
          "chat template, line 1: list object has no element 3");
    fails("{% if true %}\n\n{{ raise_exception('Say: \"no\"') }}{% endif %}",
          "{}", 400, "Say: \"no\"");
    fails("\n\n{% if %}", "{}", 500,
          "chat template, line 3: expected an expression, got '%}'");
    fails("{{ x | nosuch }}", "{}", 500,
          "chat template, line 1: No filter named 'nosuch'.");
    fails("{% include 'x' %}", "{}", 500, "chat template, line 1: the tag "
          "'include' has no place in a chat template");
    fails("{% foo %}", "{}", 500,
          "chat template, line 1: encountered unknown tag 'foo'");
    fails("{% for x in y %}", "{}", 500, "chat template, line 1: expected "
          "'endfor', got the end of the template");
    fails("{{ 9223372036854775807 + 1 }}", "{}", 500,
          "chat template, line 1: integer is too large");
    fails("{% set l.x = 1 %}", "{\"l\": []}", 500, "chat template, line 1: "
          "cannot assign attribute on non-namespace object");
    fails("{{ l.sort() }}", "{\"l\": []}", 500, "chat template, line 1: "
          "access to this method of a list or dict is refused");
    fails("{% set _ = l.append(l) %}{{ l }}", "{\"l\": []}", 500,
          "chat template, line 1: maximum recursion depth exceeded");
    fails("{% set _ = l.append(l) %}{{ l | tojson }}", "{\"l\": []}", 500,
          "chat template, line 1: maximum recursion depth exceeded");
    fails("{% for x in l %}{% set _ = l.append(x) %}{% endfor %}",
          "{\"l\": [1]}", 500, "chat template, line 1: rendering needs more "
          "than 134217728 bytes of memory");
    fails("{{ 'a' + 1 }}", "{}", 500, "chat template, line 1: can only "
          "concatenate str (not \"int\") to str");

    /* what Jinja has and no chat template uses */

    fails("{{ '%s' % 1 }}", "{}", 500, "chat template, line 1: unsupported "
          "operand type(s) for %: 'str' and 'int'");
    fails("{{ '{}'.format(1) }}", "{}", 500,
          "chat template, line 1: 'str object' has no attribute 'format'");
    fails("{{ [] | groupby('a') }}", "{}", 500,
          "chat template, line 1: No filter named 'groupby'.");
    fails("{{ cycler(1) }}", "{}", 500,
          "chat template, line 1: 'cycler' is undefined");
    fails("{{ [1] | sort(attribute='a,b') }}", "{}", 500,
          "chat template, line 1: sort: only one attribute is supported");
    fails("{{ 'a b'.rsplit() }}", "{}", 500,
          "chat template, line 1: rsplit: a separator is needed");
}


/* what ends a template that asks for too much, and how soon */

static void
is_limited(const char *name, const char *src, const llm_jinja_opts_t *opts)
{
    uint64_t      t;
    llm_err_t     err;
    llm_prompt_t  p;

    t = cpu_us();

    if (render(src, "{\"s\": \"0123456789\"}", opts, &p, &err) == LLM_OK) {
        ok(0, "%s is stopped", name);
        llm_prompt_free(&p);
        return;
    }

    ok(strcmp(err.code, LLM_JINJA_LIMIT) == 0, "%s is stopped: %s", name,
       err.msg);
    ok(cpu_us() - t < 5000000 * SLOW, "in time");
}


/*
 * Work that one step hides much of, under the limits as they are: text that
 * is searched, decoded, mapped again and again.  Each took many seconds when
 * such work counted as copying does.
 */

static void
test_costs(void)
{
    size_t             i;
    uint64_t           t, all;
    char               src[400];
    llm_jinja_opts_t   opts;

    static const struct {
        const char  *set;
        const char  *use;
    } costs[] = {
        { "'a' * 1000000", "{{ s.find('a' * 200000 + 'b') }}" },
        { "'a' * 1000000", "{{ s.rfind('b' + 'a' * 300) }}" },
        { "'a' * 1000000", "{{ s.rfind('a' * 300 + 'b') }}" },
        { "'a' * 1000000", "{{ s.rsplit('b') | length }}" },
        { "'a' * 1000000", "{{ s.count('aa') }}" },
        { "'a' * 1000000", "{{ 'a' * 100 + 'b' + 'a' * 100 in s }}" },
        { "'\xc3\xa9' * 1000000", "{{ s[900000] }}" },
        { "'\xc3\xa9' * 1000000", "{{ s.count('') }}" },
        { "'\xc3\xa9' * 1000000", "{{ s.isalpha() }}{{ s.islower() }}" },
        { "'a ' * 1000000", "{{ s | wordcount }}" },
        { "'a ' * 1000000", "{% set x = s.upper() %}" },
        { "'<' * 1000000", "{% set x = s | escape %}" },
        { "' ' * 1000000", "{% set x = s | int %}" },
        { "' ' * 3000", "{% set x = s.strip('ab' * 30000 + ' ') %}" },
        { "1.1e300", "{% set x = (s + a * 1e290) | string %}" },
        { "1.1e300", "{% set x = s | round(29) %}" },
        { "range(90000) | list", "{% set x = s == range(90000) | list %}" },
        { "['a'] * 90000", "{{ 'x'.startswith(s | list | length | string) }}" }
    };

    memset(&opts, 0, sizeof(opts));

#ifdef __SANITIZE_THREAD__
    /* minutes for each, and one thread has nothing to hide from it */
    opts.max_steps = 300000;
#endif

    t = cpu_us();

    for (i = 0; i < llm_nelems(costs); i++) {
        snprintf(src, sizeof(src), "{%% set s = %s %%}"
                 "{%% for a in range(90000) %%}{%% for b in range(9000) %%}"
                 "%s{%% endfor %%}{%% endfor %%}",
                 costs[i].set, costs[i].use);
        is_limited(costs[i].use, src, &opts);
    }

    all = cpu_us() - t;

    /* a second or two each, on the machines we know */

    ok(all < 3000000 * SLOW * llm_nelems(costs), "all of them in %u.%u s",
       (unsigned) (all / 1000000), (unsigned) (all / 100000 % 10));
}


/* what is written once for each of many names takes time for each once */

static void
test_many_names(void)
{
    int           i;
    uint64_t      t;
    llm_buf_t     b;
    llm_err_t     err;
    llm_prompt_t  p;

    llm_buf_init(&b, 0);

    for (i = 0; i < 100000; i++) {
        (void) llm_buf_addf(&b, "{%% set v%d = %d %%}", i, i);
    }

    (void) llm_buf_adds(&b, "{{ v99999 }}");
    t = cpu_us();

    is_int(render(b.data, "{}", NULL, &p, &err), LLM_OK,
           "a hundred thousand variables");
    is_str(p.text, "99999", "each is found");
    ok(cpu_us() - t < 3000000 * SLOW, "soon");

    llm_prompt_free(&p);
    b.len = 0;

    (void) llm_buf_adds(&b, "{{ dict(");

    for (i = 0; i < 50000; i++) {
        (void) llm_buf_addf(&b, "%sa%d=1", i ? ", " : "", i);
    }

    (void) llm_buf_adds(&b, ") }}");
    t = cpu_us();

    ok(render(b.data, "{}", NULL, &p, &err) != LLM_OK, "too many arguments");
    is_str(err.msg, "chat template, line 1: more than 1000 arguments",
           "are an error");
    ok(cpu_us() - t < 3000000 * SLOW, "soon");

    llm_buf_free(&b);
}


static void
test_limits(void)
{
    static const char  endless[] =
        "{% for a in range(100000) %}{% for b in range(100000) %}"
        "{% endfor %}{% endfor %}";

    char              deep[3000];
    llm_err_t         err;
    llm_prompt_t      p;
    llm_jinja_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.max_steps = 3000000;

    is_limited("a long loop", endless, &o);
    is_limited("recursion",
               "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}", &o);
    is_limited("a doubling string",
               "{% set n = namespace(s='x') %}{% for i in range(99999) %}"
               "{% set n.s = n.s + n.s %}{% endfor %}", &o);
    is_limited("a repeated string", "{{ 'x' * 9999999999 }}", &o);
    is_limited("a repeated list", "{{ [1, 2] * 99999999999 }}", &o);
    is_limited("a wide field", "{{ 'x' | indent(99999999999, true) }}", &o);
    is_limited("a value that holds itself many times",
               "{% set n = namespace(l=[1]) %}{% for i in range(60) %}"
               "{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}", &o);
    is_limited("comparing such values",
               "{% set n = namespace(l=[1], m=[1]) %}"
               "{% for i in range(60) %}{% set n.l = [n.l, n.l] %}"
               "{% set n.m = [n.m, n.m] %}{% endfor %}{{ n.l == n.m }}",
               &o);
    is_limited("replacing nothing",
               "{% set n = namespace(s=s) %}{% for i in range(30) %}"
               "{% set n.s = n.s | replace('', s) %}{% endfor %}", &o);
    is_limited("recursive loops", "{% for x in [1] recursive %}"
               "{{ loop([x]) }}{% endfor %}", &o);

    test_costs();

    memset(&o, 0, sizeof(o));
    o.max_output = 1000;
    is_limited("output", "{% for a in range(1000) %}xx{% endfor %}", &o);

    memset(&o, 0, sizeof(o));
    o.max_steps = 100;
    is_limited("steps", "{% for a in range(1000) %}x{% endfor %}", &o);

    memset(&o, 0, sizeof(o));
    o.max_memory = 10000;
    is_limited("memory", "{{ range(10000) | list }}", &o);

    /* nesting of the source */

    memset(deep, '(', 1000);
    memset(deep + 1000, ')', 1000);
    memcpy(deep, "{{ ", 3);
    memcpy(deep + 1997, " }}", 4);
    ok(render(deep, "{}", NULL, &p, &err) != LLM_OK, "nested parentheses");
    is_str(err.msg, "chat template, line 1: nested too deeply", "are an error");

    memset(deep, '1', sizeof(deep));
    memset(deep, '-', 2000);
    memcpy(deep, "{{ ", 3);
    memcpy(deep + 2001, " }}", 4);
    ok(render(deep, "{}", NULL, &p, &err) != LLM_OK, "signs in a row");
    is_str(err.msg, "chat template, line 1: nested too deeply", "are an error");
}


/* text that grows piece by piece costs its length, not its square */

static void
test_growth(void)
{
    uint64_t      t;
    llm_err_t     err;
    llm_prompt_t  p;

    t = cpu_us();

    is_int(render("{% set n = namespace(s='') %}{% for i in range(99999) %}"
                  "{% set n.s = n.s + '<|x|>' + v %}{% endfor %}"
                  "{{ n.s }}", "{\"v\": \"user text\"}", NULL, &p, &err),
           LLM_OK, "a string grown 99999 times");

    is_int(p.len, 99999 * 14, "its length");
    is_int(p.n_trusted, 99999, "its trusted runs");
    ok(cpu_us() - t < 2000000 * SLOW, "in %llu us",
       (unsigned long long) (cpu_us() - t));

    llm_prompt_free(&p);
}


static void *
render_often(void *arg)
{
    int           i;
    llm_buf_t     b;
    llm_err_t     err;
    llm_prompt_t  p;
    static char   vars[] = "{\"l\": [1, 2, 3], \"m\": {\"role\": \"user\"}}";

    for (i = 0; i < 200; i++) {
        llm_buf_init(&b, 0);

        if (llm_json_to_flat(vars, strlen(vars), NULL, &b, &err) != LLM_OK
            || llm_jinja_render(arg, (llm_flat_t *) b.data, NULL, NULL, &p,
                                &err) != LLM_OK)
        {
            return "fails";
        }

        if (strcmp(p.text, "123user1,2,3/user") != 0) {
            return "differs";
        }

        llm_prompt_free(&p);
        llm_buf_free(&b);
    }

    return NULL;
}


static void
test_threads(void)
{
    int                i;
    void              *bad, *res;
    pthread_t          threads[4];
    llm_err_t          err;
    llm_jinja_t       *t;
    static const char  src[] =
        "{% macro f(x) %}{{ x ~ '' }}{% endmacro %}"
        "{% for x in l %}{{ f(x) }}{% endfor %}{{ m.role }}"
        "{{ l | join(',') }}{{ '/' + m['role'] }}";

    t = llm_jinja_compile(src, strlen(src), &err);
    bad = NULL;

    for (i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, render_often, t) != 0) {
            abort();
        }
    }

    for (i = 0; i < 4; i++) {
        pthread_join(threads[i], &res);
        bad = res ? res : bad;
    }

    ok(bad == NULL, "four threads share a template: %s",
       bad ? (char *) bad : "ok");

    llm_jinja_free(t);
}


static void
test_uses(void)
{
    llm_err_t          err;
    llm_jinja_t       *t;
    static const char  src[] = "{% if tools %}{{ m['thinking'] }}{% endif %}"
                               "text {# comment #}";

    t = llm_jinja_compile(src, strlen(src), &err);

    ok(llm_jinja_uses(t, "tools"), "a variable is used");
    ok(llm_jinja_uses(t, "thinking"), "a key is used");
    ok(!llm_jinja_uses(t, "comment"), "a comment does not count");
    ok(!llm_jinja_uses(t, "text"), "nor does text");

    llm_jinja_free(t);
}


int
main(void)
{
    test_trust();
    test_errors();
    test_limits();
    test_many_names();
    test_growth();
    test_threads();
    test_uses();

    return done_testing();
}
