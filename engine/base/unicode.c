/*
 * Lookups in the tables of characters; see unicode.h.
 */

#include "engine/base/unicode.h"


typedef struct {
    uint32_t  from;
    uint32_t  category;
} llm_unicode_run_t;

typedef struct {
    uint32_t  cp;
    uint32_t  base;
} llm_unicode_base_t;

typedef struct {
    uint32_t  from;
    uint32_t  to;
    uint32_t  step;
    int32_t   distance;
} llm_unicode_lower_t;

#include "engine/base/unicode_tables.h"

#define LLM_UNICODE_LAST  0x10ffffu

#define HANGUL_FIRST   0xac00u
#define HANGUL_LAST    0xd7a3u
#define HANGUL_BLOCK   (21u * 28u)      /* syllables per leading consonant */


#define M   (LLM_UC(LLM_UC_MN) | LLM_UC(LLM_UC_MC) | LLM_UC(LLM_UC_ME))
#define N   (LLM_UC(LLM_UC_ND) | LLM_UC(LLM_UC_NL) | LLM_UC(LLM_UC_NO))
#define L   (LLM_UC(LLM_UC_LU) | LLM_UC(LLM_UC_LL) | LLM_UC(LLM_UC_LT) \
             | LLM_UC(LLM_UC_LM) | LLM_UC(LLM_UC_LO))
#define P   (LLM_UC(LLM_UC_PC) | LLM_UC(LLM_UC_PD) | LLM_UC(LLM_UC_PS) \
             | LLM_UC(LLM_UC_PE) | LLM_UC(LLM_UC_PI) | LLM_UC(LLM_UC_PF) \
             | LLM_UC(LLM_UC_PO))
#define S   (LLM_UC(LLM_UC_SM) | LLM_UC(LLM_UC_SC) | LLM_UC(LLM_UC_SK) \
             | LLM_UC(LLM_UC_SO))
#define Z   (LLM_UC(LLM_UC_ZS) | LLM_UC(LLM_UC_ZL) | LLM_UC(LLM_UC_ZP))
#define C   (LLM_UC(LLM_UC_CC) | LLM_UC(LLM_UC_CF) | LLM_UC(LLM_UC_CO) \
             | LLM_UC(LLM_UC_CN))

static const struct {
    const char  *name;
    const char  *alias;
    uint32_t     categories;
} llm_unicode_names[] = {
    { "L", "Letter", L },
    { "Lu", "Uppercase_Letter", LLM_UC(LLM_UC_LU) },
    { "Ll", "Lowercase_Letter", LLM_UC(LLM_UC_LL) },
    { "Lt", "Titlecase_Letter", LLM_UC(LLM_UC_LT) },
    { "Lm", "Modifier_Letter", LLM_UC(LLM_UC_LM) },
    { "Lo", "Other_Letter", LLM_UC(LLM_UC_LO) },
    { "M", "Mark", M },
    { "Mn", "Nonspacing_Mark", LLM_UC(LLM_UC_MN) },
    { "Mc", "Spacing_Mark", LLM_UC(LLM_UC_MC) },
    { "Me", "Enclosing_Mark", LLM_UC(LLM_UC_ME) },
    { "N", "Number", N },
    { "Nd", "Decimal_Number", LLM_UC(LLM_UC_ND) },
    { "Nl", "Letter_Number", LLM_UC(LLM_UC_NL) },
    { "No", "Other_Number", LLM_UC(LLM_UC_NO) },
    { "P", "Punctuation", P },
    { "Pc", "Connector_Punctuation", LLM_UC(LLM_UC_PC) },
    { "Pd", "Dash_Punctuation", LLM_UC(LLM_UC_PD) },
    { "Ps", "Open_Punctuation", LLM_UC(LLM_UC_PS) },
    { "Pe", "Close_Punctuation", LLM_UC(LLM_UC_PE) },
    { "Pi", "Initial_Punctuation", LLM_UC(LLM_UC_PI) },
    { "Pf", "Final_Punctuation", LLM_UC(LLM_UC_PF) },
    { "Po", "Other_Punctuation", LLM_UC(LLM_UC_PO) },
    { "S", "Symbol", S },
    { "Sm", "Math_Symbol", LLM_UC(LLM_UC_SM) },
    { "Sc", "Currency_Symbol", LLM_UC(LLM_UC_SC) },
    { "Sk", "Modifier_Symbol", LLM_UC(LLM_UC_SK) },
    { "So", "Other_Symbol", LLM_UC(LLM_UC_SO) },
    { "Z", "Separator", Z },
    { "Zs", "Space_Separator", LLM_UC(LLM_UC_ZS) },
    { "Zl", "Line_Separator", LLM_UC(LLM_UC_ZL) },
    { "Zp", "Paragraph_Separator", LLM_UC(LLM_UC_ZP) },
    { "C", "Other", C },
    { "Cc", "Control", LLM_UC(LLM_UC_CC) },
    { "Cf", "Format", LLM_UC(LLM_UC_CF) },
    { "Co", "Private_Use", LLM_UC(LLM_UC_CO) },
    { "Cn", "Unassigned", LLM_UC(LLM_UC_CN) }
};


/* index of the row of llm_unicode_runs that cp is in */

static size_t
llm_unicode_run(uint32_t cp)
{
    size_t  low, mid, high;

    low = 0;
    high = llm_nelems(llm_unicode_runs);

    while (high - low > 1) {
        mid = low + (high - low) / 2;

        if (llm_unicode_runs[mid].from <= cp) {
            low = mid;

        } else {
            high = mid;
        }
    }

    return low;
}


static llm_unicode_category_t
llm_unicode_category(uint32_t cp)
{
    return cp < llm_nelems(llm_unicode_ascii)
           ? llm_unicode_ascii[cp]
           : llm_unicode_runs[llm_unicode_run(cp)].category;
}


uint32_t
llm_unicode_named(const char *name, size_t len)
{
    size_t       i;
    const char  *alias;

    for (i = 0; i < llm_nelems(llm_unicode_names); i++) {
        alias = llm_unicode_names[i].alias;

        if ((strlen(llm_unicode_names[i].name) == len
             && memcmp(llm_unicode_names[i].name, name, len) == 0)
            || (strlen(alias) == len && memcmp(alias, name, len) == 0))
        {
            return llm_unicode_names[i].categories;
        }
    }

    return 0;
}


int
llm_unicode_range(uint32_t categories, uint32_t *from, uint32_t *to)
{
    size_t  i, n;

    if (*from > LLM_UNICODE_LAST) {
        return 0;
    }

    n = llm_nelems(llm_unicode_runs);

    for (i = llm_unicode_run(*from); i < n; i++) {

        if (!(categories & LLM_UC(llm_unicode_runs[i].category))) {
            continue;
        }

        while (i > 0
               && (categories & LLM_UC(llm_unicode_runs[i - 1].category)))
        {
            i--;
        }

        *from = llm_unicode_runs[i].from;

        while (i < n && (categories & LLM_UC(llm_unicode_runs[i].category))) {
            i++;
        }

        *to = i < n ? llm_unicode_runs[i].from - 1 : LLM_UNICODE_LAST;

        return 1;
    }

    return 0;
}


static int
llm_unicode_is(uint32_t cp, uint32_t categories)
{
    return (LLM_UC(llm_unicode_category(cp)) & categories) != 0;
}


int
llm_unicode_is_mark(uint32_t cp)
{
    return llm_unicode_is(cp, M);
}


int
llm_unicode_is_punct(uint32_t cp)
{
    return llm_unicode_is(cp, P);
}


int
llm_unicode_is_word(uint32_t cp)
{
    return llm_unicode_is(cp, L | M | N);
}


int
llm_unicode_is_control(uint32_t cp)
{
    return llm_unicode_is(cp, C & ~LLM_UC(LLM_UC_CN));
}


int
llm_unicode_is_space(uint32_t cp)
{
    return (cp >= '\t' && cp <= '\r') || cp == 0x85
           || llm_unicode_is(cp, Z);
}


int
llm_unicode_is_han(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf)
           || (cp >= 0xf900 && cp <= 0xfaff)
           || (cp >= 0x20000 && cp <= 0x2a6df)
           || (cp >= 0x2a700 && cp <= 0x2ceaf)
           || (cp >= 0x2f800 && cp <= 0x2fa1f);
}


uint32_t
llm_unicode_base(uint32_t cp)
{
    size_t                     low, mid, high;
    const llm_unicode_base_t  *b;

    /* the first of a Hangul syllable is one of 19 consonants, U+1100 on */

    if (cp >= HANGUL_FIRST && cp <= HANGUL_LAST) {
        return 0x1100 + (cp - HANGUL_FIRST) / HANGUL_BLOCK;
    }

    low = 0;
    high = llm_nelems(llm_unicode_bases);

    while (low < high) {
        mid = low + (high - low) / 2;
        b = &llm_unicode_bases[mid];

        if (cp > b->cp) {
            low = mid + 1;

        } else if (cp < b->cp) {
            high = mid;

        } else {
            return b->base;
        }
    }

    return cp;
}


uint32_t
llm_unicode_lower(uint32_t cp)
{
    size_t                      low, mid, high;
    const llm_unicode_lower_t  *r;

    low = 0;
    high = llm_nelems(llm_unicode_lowers);

    while (low < high) {
        mid = low + (high - low) / 2;
        r = &llm_unicode_lowers[mid];

        if (cp > r->to) {
            low = mid + 1;

        } else if (cp < r->from) {
            high = mid;

        } else {
            return (cp - r->from) % r->step
                   ? cp : (uint32_t) ((int32_t) cp + r->distance);
        }
    }

    return cp;
}
