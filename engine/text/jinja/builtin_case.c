/*
 * Letters: upper and lower case, and the is...() family.
 *
 * Latin-1 is as in Python.  Of other scripts, Latin, Greek, Cyrillic and
 * Armenian letters have cases, and the larger blocks of letters are known as
 * letters.  Other parts of Unicode, letters whose other case is several
 * letters, and signs within these blocks are left out, because templates do
 * not need them.
 */

#include "engine/text/jinja/builtin.h"

/* ranges of small letters, all or every second, and the distance to their
   capitals */

static const struct {
    uint32_t     first;
    uint32_t     last;
    uint32_t     step;
    int32_t      delta;
} llm_jc_runs[] = {
    { 'a', 'z', 1, -32 },
    { 0xe0, 0xf6, 1, -32 },
    { 0xf8, 0xfe, 1, -32 },
    { 0xff, 0xff, 1, 121 },
    { 0x101, 0x12f, 2, -1 },
    { 0x133, 0x137, 2, -1 },
    { 0x13a, 0x148, 2, -1 },
    { 0x14b, 0x177, 2, -1 },
    { 0x17a, 0x17e, 2, -1 },
    { 0x3ac, 0x3ac, 1, -38 },
    { 0x3ad, 0x3af, 1, -37 },
    { 0x3b1, 0x3c1, 1, -32 },
    { 0x3c3, 0x3cb, 1, -32 },
    { 0x3cc, 0x3cc, 1, -64 },
    { 0x3cd, 0x3ce, 1, -63 },
    { 0x430, 0x44f, 1, -32 },
    { 0x450, 0x45f, 1, -80 },
    { 0x461, 0x481, 2, -1 },
    { 0x48b, 0x4bf, 2, -1 },
    { 0x4c2, 0x4ce, 2, -1 },
    { 0x4d1, 0x52f, 2, -1 },
    { 0x561, 0x586, 1, -48 },
    { 0x1e01, 0x1e95, 2, -1 },
    { 0x1ea1, 0x1eff, 2, -1 },

    /* small letters whose capital has another small letter above */

    { 0xb5, 0xb5, 1, 743 },
    { 0x3c2, 0x3c2, 1, -31 }
};

static const uint32_t  llm_jc_letters[][2] = {
    { 'A', 'Z' }, { 'a', 'z' }, { 0xaa, 0xaa }, { 0xb5, 0xb5 },
    { 0xba, 0xba }, { 0xc0, 0xd6 }, { 0xd8, 0xf6 }, { 0xf8, 0x2c1 },
    { 0x370, 0x374 }, { 0x376, 0x37d }, { 0x386, 0x386 }, { 0x388, 0x481 },
    { 0x48a, 0x556 }, { 0x561, 0x587 }, { 0x5d0, 0x5ea }, { 0x620, 0x64a },
    { 0x671, 0x6d3 }, { 0x904, 0x939 }, { 0xe01, 0xe30 }, { 0x10a0, 0x10fa },
    { 0x1100, 0x1248 }, { 0x1e00, 0x1fbc }, { 0x3041, 0x3096 },
    { 0x30a1, 0x30fa }, { 0x3105, 0x312f }, { 0x3400, 0x4dbf },
    { 0x4e00, 0x9fff }, { 0xac00, 0xd7a3 }, { 0xf900, 0xfaff },
    { 0x20000, 0x323af }
};

static const uint32_t  llm_jc_digits[][2] = {
    { '0', '9' }, { 0xb2, 0xb3 }, { 0xb9, 0xb9 }, { 0x660, 0x669 },
    { 0x6f0, 0x6f9 }, { 0x966, 0x96f }, { 0xff10, 0xff19 }
};


static int
llm_jc_in(uint32_t c, const uint32_t (*v)[2], size_t n)
{
    size_t  i;

    for (i = 0; i < n && c >= v[i][0]; i++) {
        if (c <= v[i][1]) {
            return 1;
        }
    }

    return 0;
}


/* the other case of a letter, 0 if it has none */

static uint32_t
llm_jc_to_upper(uint32_t c)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_jc_runs); i++) {
        if (c >= llm_jc_runs[i].first && c <= llm_jc_runs[i].last) {
            return (c - llm_jc_runs[i].first) % llm_jc_runs[i].step ? 0
                   : (uint32_t) ((int32_t) c + llm_jc_runs[i].delta);
        }
    }

    return 0;
}


static uint32_t
llm_jc_to_lower(uint32_t c)
{
    size_t    i;
    uint32_t  low;

    for (i = 0; i < llm_nelems(llm_jc_runs); i++) {
        low = (uint32_t) ((int32_t) c - llm_jc_runs[i].delta);

        if (low >= llm_jc_runs[i].first && low <= llm_jc_runs[i].last
            && (low - llm_jc_runs[i].first) % llm_jc_runs[i].step == 0)
        {
            return low;
        }
    }

    return 0;
}


/* LLM_JF_UPPER, LLM_JF_LOWER, or 0 for other characters */

static int
llm_jc_case(uint32_t c)
{
    if (c == 0xaa || c == 0xba || c == 0xdf || llm_jc_to_upper(c)) {
        return LLM_JF_LOWER;
    }

    return llm_jc_to_lower(c) ? LLM_JF_UPPER : 0;
}


static int
llm_jc_digit(uint32_t c)
{
    return llm_jc_in(c, llm_jc_digits, llm_nelems(llm_jc_digits));
}


static int
llm_jc_alpha(uint32_t c)
{
    return llm_jc_in(c, llm_jc_letters, llm_nelems(llm_jc_letters));
}


static int
llm_jc_alnum(uint32_t c)
{
    return llm_jc_alpha(c) || llm_jc_digit(c) || (c >= 0xbc && c <= 0xbe);
}


/* case */

static int
llm_jb_add_case(llm_jb_t *b, const llm_js_t *s, size_t start, size_t end,
    int how)
{
    int          first, upper;
    char         buf[8];
    size_t       i, len, size;
    uint32_t     c, to;
    const char  *p;

    p = llm_js_data(s);
    first = 1;

    llm_jtry(llm_jrt_charge(b->rt, (end - start) * LLM_J_CLASSIFIED));

    for (i = start; i < end; i += len) {
        c = llm_jc_decode(p + i, p + end, &len);
        upper = how == LLM_JF_UPPER || (first && how != LLM_JF_LOWER);
        to = upper ? llm_jc_to_upper(c) : llm_jc_to_lower(c);
        first = how == LLM_JF_TITLE && llm_jc_case(c) == 0;

        if (upper && c == 0xdf) {
            memcpy(buf, how == LLM_JF_UPPER ? "SS" : "Ss", 2);
            size = 2;

        } else if (to) {
            size = llm_jc_encode(to, buf);

        } else {
            size = len;
            memcpy(buf, p + i, len);
        }

        llm_jtry(llm_jb_add(b, buf, size, llm_js_trusted_at(s, i)));
    }

    return LLM_OK;
}


static int
llm_js_case(llm_jrt_t *rt, const llm_js_t *s, int how, llm_jv_t *res)
{
    llm_jb_t  b;

    llm_jb_init(&b, rt, 0);

    llm_jtry(llm_jb_add_case(&b, s, 0, s->len, how));

    return llm_jb_done_as(&b, s, res);
}


int
llm_js_lower(llm_jrt_t *rt, const llm_js_t *s, llm_jv_t *res)
{
    return llm_js_case(rt, s, LLM_JF_LOWER, res);
}


int
llm_jfn_case(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    return llm_js_case(rt, args->v[0].u.s, args->f->how, res);
}


/* the filter: words begin after white space and - ( { [ <, unlike those of
   str.title() */

int
llm_jfn_title(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          how;
    size_t       i, len, space;
    llm_jb_t     b;
    llm_js_t    *s;
    const char  *p;

    s = args->v[0].u.s;
    p = llm_js_data(s);
    how = LLM_JF_UPPER;
    llm_jb_init(&b, rt, 0);

    for (i = 0; i < s->len; i += len) {
        (void) llm_jc_decode(p + i, p + s->len, &len);
        space = llm_jc_space(p + i, p + s->len);

        llm_jtry(llm_jb_add_case(&b, s, i, i + len, how));

        how = space || (p[i] && strchr("-({[<", p[i])) ? LLM_JF_UPPER
                                                       : LLM_JF_LOWER;
    }

    return llm_jb_done(&b, res);
}


static int
llm_jc_space_char(uint32_t c)
{
    char  buf[8];

    return llm_jc_space(buf, buf + llm_jc_encode(c, buf)) != 0;
}


/* is...(): there are characters, and all are of a class */

int
llm_jfn_isclass(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          good;
    size_t       len;
    const char  *p, *end;

    static int (*const  is[])(uint32_t c) = {
        [LLM_JF_ALPHA] = llm_jc_alpha,
        [LLM_JF_ALNUM] = llm_jc_alnum,
        [LLM_JF_DIGIT] = llm_jc_digit,
        [LLM_JF_SPACE] = llm_jc_space_char
    };

    p = llm_js_data(args->v[0].u.s);
    end = p + args->v[0].u.s->len;

    for (good = p < end; p < end && good; p += len) {
        good = is[args->f->how](llm_jc_decode(p, end, &len));
    }

    *res = llm_jv_bool(good);

    return llm_jrt_charge(rt, args->v[0].u.s->len * LLM_J_CLASSIFIED);
}


/* islower, isupper: at least one letter of this case, none of the other */

int
llm_jfn_iscase(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          good, bad, found;
    size_t       len;
    const char  *p, *end;

    p = llm_js_data(args->v[0].u.s);
    end = p + args->v[0].u.s->len;

    for (good = 0, bad = 0; p < end; p += len) {
        found = llm_jc_case(llm_jc_decode(p, end, &len));
        good |= found == args->f->how;
        bad |= found && found != args->f->how;
    }

    *res = llm_jv_bool(good && !bad);

    return llm_jrt_charge(rt, args->v[0].u.s->len * LLM_J_CLASSIFIED);
}


int
llm_jfn_wordcount(llm_jrt_t *rt, llm_jargs_t *args, llm_jv_t *res)
{
    int          word, inside;
    size_t       len;
    int64_t      n;
    uint32_t     c;
    const char  *p, *end;

    p = llm_js_data(args->v[0].u.s);
    end = p + args->v[0].u.s->len;

    llm_jtry(llm_jrt_charge(rt, args->v[0].u.s->len * LLM_J_CLASSIFIED));

    for (n = 0, inside = 0; p < end; p += len) {
        c = llm_jc_decode(p, end, &len);
        word = c == '_' || llm_jc_alnum(c);
        n += word && !inside;
        inside = word;
    }

    *res = llm_jv_int(n);

    return LLM_OK;
}
