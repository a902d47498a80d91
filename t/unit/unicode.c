/*
 * Unicode's tables: every character is of one category, names are those of
 * regular expressions, classes are those that WordPiece asks for.
 */

#include "engine/base/unicode.h"
#include "t/unit/tap.h"


static uint32_t
named(const char *name)
{
    return llm_unicode_named(name, strlen(name));
}


static int
is_of(uint32_t categories, uint32_t cp)
{
    uint32_t  from, to;

    from = cp;

    return llm_unicode_range(categories, &from, &to) && from <= cp;
}


/* as many characters as are in the ranges of the categories; 0: the ranges are
   not in order, or touch one another */

static uint32_t
size(uint32_t categories)
{
    uint32_t  from, to, last, n;

    n = 0;
    last = 0;

    for (from = 0; llm_unicode_range(categories, &from, &to); from = to + 1) {

        if (to < from || (n && from <= last + 1)) {
            return 0;
        }

        n += to - from + 1;
        last = to;
    }

    return n;
}


static void
test_names(void)
{
    static const struct {
        const char  *name;
        uint32_t     cp;
    } cases[] = {
        { "Lu", 'A' }, { "Ll", 'z' }, { "Lt", 0x1c5 }, { "Lm", 0x2b0 },
        { "Lo", 0x4e00 }, { "Mn", 0x301 }, { "Mc", 0x903 }, { "Me", 0x488 },
        { "Nd", '7' }, { "Nl", 0x2160 }, { "No", 0xbd }, { "Pc", '_' },
        { "Pd", '-' }, { "Ps", '(' }, { "Pe", ']' }, { "Pi", 0xab },
        { "Pf", 0xbb }, { "Po", '!' }, { "Sm", '+' }, { "Sc", 0x20ac },
        { "Sk", '^' }, { "So", 0x1f600 }, { "Zs", ' ' }, { "Zl", 0x2028 },
        { "Zp", 0x2029 }, { "Cc", 0 }, { "Cf", 0x200d }, { "Co", 0xe000 },
        { "Cn", 0x10ffff }
    };

    size_t    i;
    uint32_t  all;

    all = LLM_UC(LLM_UC_CS);

    for (i = 0; i < llm_nelems(cases); i++) {
        ok(is_of(named(cases[i].name), cases[i].cp), "U+%04X is %s",
           cases[i].cp, cases[i].name);
        ok((all & named(cases[i].name)) == 0, "it is of one category");
        all |= named(cases[i].name);
    }

    ok(all == LLM_UC(LLM_UC_CS + 1) - 1, "each has a name");
    ok(size(all) == 0x110000, "each character has a category");
    ok(size(LLM_UC(LLM_UC_CS)) == 0x800, "surrogates have their own");
    ok(size(named("L")) + size(named("M")) + size(named("N"))
       + size(named("P")) + size(named("S")) + size(named("Z"))
       + size(named("C")) == 0x110000 - 0x800,
       "the names of one letter have all others");
    ok(named("Currency_Symbol") == named("Sc"), "a long name");
    ok(named("currency_symbol") == 0 && named("") == 0 && named("Cs") == 0,
       "no name");
}


static void
test_classes(void)
{
    uint32_t  cp, wrong;

    wrong = 0;

    for (cp = 0; cp <= 0x10ffff; cp++) {
        wrong += llm_unicode_is_mark(cp) + llm_unicode_is_punct(cp) > 1
                 || (llm_unicode_is_mark(cp) && !llm_unicode_is_word(cp))
                 || (llm_unicode_is_control(cp) && llm_unicode_is_word(cp));
    }

    ok(wrong == 0, "classes agree");
    ok(llm_unicode_is_space(0x85) && llm_unicode_is_space('\v')
       && llm_unicode_is_space(0x3000) && !llm_unicode_is_space(0x200b),
       "white space");
    ok(llm_unicode_is_control(0xad) && !llm_unicode_is_control(0x378),
       "a soft hyphen is a control, what is unassigned is none");
    ok(llm_unicode_base(0xe9) == 'e' && llm_unicode_base(0xac00) == 0x1100
       && llm_unicode_base('e') == 'e', "bases");
    ok(llm_unicode_lower(0xc9) == 0xe9 && llm_unicode_lower(0x130) == 0x130,
       "lower case");
}


int
main(void)
{
    test_names();
    test_classes();

    return done_testing();
}
