/*
 * The formats that JSON Schema defines, as regular expressions that follow the
 * RFCs.  Other formats are annotations.
 *
 * A leap second is accepted only as the last second of a day in UTC; the
 * groups of a "regex" may be nested to a depth of 8.
 */

#include "engine/grammar/schema/internal.h"

#include <stdio.h>


#define DAYS31    "(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])"
#define DAYS30    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
#define DAYS28    "02-(?:0[1-9]|1[0-9]|2[0-8])"
#define LEAP      "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])"             \
                  "|(?:[02468][048]|[13579][26])00)"
#define DATE      "(?:[0-9]{4}-(?:" DAYS31 "|" DAYS30 "|" DAYS28 ")"         \
                  "|" LEAP "-02-29)"

#define HOUR      "(?:[01][0-9]|2[0-3])"
#define SIXTY     "[0-5][0-9]"
#define SECFRAC   "(?:\\.[0-9]+)?"
#define TIME      "(?:" HOUR ":" SIXTY ":" SIXTY SECFRAC                     \
                  "(?:[Zz]|[+-]" HOUR ":" SIXTY ")"                          \
                  "|23:59:60" SECFRAC "(?:[Zz]|[+-]00:00))"

#define DURTIME   "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?"                      \
                  "|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
#define DURDATE   "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?"                       \
                  "|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"
#define DURATION  "P(?:[0-9]+W|" DURDATE "(?:" DURTIME ")?|" DURTIME ")"

#define ALNUM     "A-Za-z0-9"
#define LABEL     "[" ALNUM "](?:[" ALNUM "-]{0,61}[" ALNUM "])?"
#define HOSTNAME  LABEL "(?:\\." LABEL ")*"

#define OCTET     "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
#define IPV4      OCTET "(?:\\." OCTET "){3}"
#define H16       "[0-9A-Fa-f]{1,4}"
#define LS32      "(?:" H16 ":" H16 "|" IPV4 ")"
#define IPV6      "(?:(?:" H16 ":){6}" LS32                                  \
                  "|::(?:" H16 ":){5}" LS32                                  \
                  "|(?:" H16 ")?::(?:" H16 ":){4}" LS32                      \
                  "|(?:(?:" H16 ":){0,1}" H16 ")?::(?:" H16 ":){3}" LS32     \
                  "|(?:(?:" H16 ":){0,2}" H16 ")?::(?:" H16 ":){2}" LS32     \
                  "|(?:(?:" H16 ":){0,3}" H16 ")?::" H16 ":" LS32            \
                  "|(?:(?:" H16 ":){0,4}" H16 ")?::" LS32                    \
                  "|(?:(?:" H16 ":){0,5}" H16 ")?::" H16                     \
                  "|(?:(?:" H16 ":){0,6}" H16 ")?::)"

#define ATEXT     ALNUM "!#$%&'*+/=?^_`{|}~\\-"
#define UTF8      "\\u{80}-\\u{10FFFF}"
#define LOCAL(x)  "(?:[" ATEXT x "]+(?:\\.[" ATEXT x "]+)*"                  \
                  "|\"(?:[ !#-\\[\\]-~" x "]|\\\\[ -~])*\")"
#define ADDRESS   "\\[(?:" IPV4 "|IPv6:" IPV6 ")\\]"
#define EMAIL     LOCAL("") "@(?:" HOSTNAME "|" ADDRESS ")"
#define IDNLABEL  "[" ALNUM UTF8 "](?:[" ALNUM UTF8 "-]*[" ALNUM UTF8 "])?"
#define IDNEMAIL  LOCAL(UTF8) "@(?:" IDNLABEL "(?:\\." IDNLABEL ")*"         \
                  "|" ADDRESS ")"

/* RFC 3986; x: further characters, p: those of queries (RFC 3987) */
#define UCS       "\\u{A0}-\\u{D7FF}\\u{F900}-\\u{FDCF}\\u{FDF0}-\\u{FFEF}"  \
                  "\\u{10000}-\\u{1FFFD}\\u{20000}-\\u{2FFFD}"               \
                  "\\u{30000}-\\u{3FFFD}\\u{40000}-\\u{4FFFD}"               \
                  "\\u{50000}-\\u{5FFFD}\\u{60000}-\\u{6FFFD}"               \
                  "\\u{70000}-\\u{7FFFD}\\u{80000}-\\u{8FFFD}"               \
                  "\\u{90000}-\\u{9FFFD}\\u{A0000}-\\u{AFFFD}"               \
                  "\\u{B0000}-\\u{BFFFD}\\u{C0000}-\\u{CFFFD}"               \
                  "\\u{D0000}-\\u{DFFFD}\\u{E1000}-\\u{EFFFD}"
#define PRIVATE   "\\u{E000}-\\u{F8FF}\\u{F0000}-\\u{FFFFD}"                 \
                  "\\u{100000}-\\u{10FFFD}"
#define HEX2      "%[0-9A-Fa-f]{2}"
#define REGNAME   ALNUM "._~!$&'()*+,;=\\-"
#define PCHAR(x)  "(?:[" REGNAME ":@" x "]|" HEX2 ")"
#define NOCOLON(x) "(?:[" REGNAME "@" x "]|" HEX2 ")"
#define QUERY(x)  "(?:[" REGNAME ":@/?" x "]|" HEX2 ")*"
#define AUTH(x)   "(?:(?:[" REGNAME ":" x "]|" HEX2 ")*@)?"                  \
                  "(?:\\[(?:" IPV6 "|[vV][0-9A-Fa-f]+\\.[" REGNAME ":]+)\\]" \
                  "|(?:[" REGNAME x "]|" HEX2 ")*)(?::[0-9]*)?"
#define SLASHES(x) "(?:/" PCHAR(x) "*)*"
#define ROOTED(x) "//" AUTH(x) SLASHES(x)                                    \
                  "|/(?:" PCHAR(x) "+" SLASHES(x) ")?"
#define TAIL(x, p) "(?:\\?" QUERY(x p) ")?(?:#" QUERY(x) ")?"
#define URI(x, p) "[A-Za-z][" ALNUM "+.\\-]*:(?:" ROOTED(x)                  \
                  "|(?:" PCHAR(x) "+" SLASHES(x) ")?)" TAIL(x, p)
#define REF(x, p) "(?:" ROOTED(x)                                            \
                  "|(?:" NOCOLON(x) "+" SLASHES(x) ")?)" TAIL(x, p)

#define VARCHAR   "(?:[" ALNUM "_]|" HEX2 ")"
#define VARSPEC   VARCHAR "(?:\\.?" VARCHAR ")*(?::[1-9][0-9]{0,3}|\\*)?"
#define TEMPLATE  "(?:[!#$&(-;=?-\\[\\]_a-z~" UCS PRIVATE "]|" HEX2          \
                  "|\\{[+#./;?&=,!@|]?" VARSPEC "(?:," VARSPEC ")*\\})*"

#define POINTER   "(?:/(?:[^~/]|~[01])*)*"
#define HEX(n)    "[0-9A-Fa-f]{" #n "}"


static const struct {
    const char  *name;
    const char  *pattern;               /* NULL: made by a function below */
} llm_schema_formats[] = {
    { "date-time", DATE "[Tt]" TIME },
    { "date", DATE },
    { "time", TIME },
    { "duration", DURATION },
    { "email", EMAIL },
    { "idn-email", IDNEMAIL },
    { "hostname", "(?=.{1,253}$)" HOSTNAME },
    { "ipv4", IPV4 },
    { "ipv6", IPV6 },
    { "uri", URI("", "") },
    { "uri-reference", URI("", "") "|" REF("", "") },
    { "iri", URI(UCS, PRIVATE) },
    { "iri-reference", URI(UCS, PRIVATE) "|" REF(UCS, PRIVATE) },
    { "uri-template", TEMPLATE },
    { "uuid", HEX(8) "-" HEX(4) "-" HEX(4) "-" HEX(4) "-" HEX(12) },
    { "json-pointer", POINTER },
    { "relative-json-pointer", "(?:0|[1-9][0-9]*)(?:#|" POINTER ")" },
    { "regex", NULL },
    { "idn-hostname", NULL },
};


static llm_rx_t
llm_schema_whole(llm_schema_t *s, const char *pattern)
{
    llm_rx_t  rx;

    if (llm_rx_parse(s->pool, pattern, strlen(pattern), LLM_RX_WHOLE, &rx,
                     NULL) != LLM_OK)
    {
        return LLM_RX_NONE;
    }

    return rx;
}


/* regular expressions of ECMA-262; their language is regular only because
   depth is bounded */

static llm_rx_t
llm_schema_regexes(llm_schema_t *s)
{
    int        depth;
    llm_rx_t   atom, open, times, term, terms, look;

    atom = llm_schema_whole(s,
        "[^\\\\^$.*+?()\\[\\]{}|]|\\."
        "|\\\\(?:[dDsSwW0fnrtv^$\\\\.*+?()\\[\\]{}|/\\-]|c[A-Za-z]"
        "|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\\{[0-9A-Fa-f]{1,6}\\}"
        "|[pP]\\{[A-Za-z_]+(?:=[A-Za-z_]+)?\\})"
        "|\\[\\^?(?:[^\\\\\\]]|\\\\[^\\n])*\\]");
    open = llm_schema_whole(s, "\\((?:\\?:|\\?<[A-Za-z_$][A-Za-z0-9_$]*>)?");
    look = llm_schema_whole(s, "\\^|\\$|\\\\[bB]");
    times = llm_schema_whole(s,
                             "(?:(?:[*+?]|\\{[0-9]+(?:,[0-9]*)?\\})[?]?)?");

    terms = LLM_RX_EMPTY;

    for (depth = 0; depth <= 8; depth++) {
        term = atom;

        if (depth) {
            term = llm_rx_or(s->pool, term,
                             llm_rx_cat(s->pool, open,
                                 llm_rx_cat(s->pool, terms,
                                     llm_rx_literal(s->pool, ")", 1))));
        }

        term = llm_rx_or(s->pool, llm_rx_cat(s->pool, term, times), look);

        if (depth) {
            term = llm_rx_or(s->pool, term,
                             llm_rx_cat(s->pool,
                                 llm_schema_whole(s, "\\(\\?<?[=!]"),
                                 llm_rx_cat(s->pool, terms,
                                     llm_rx_literal(s->pool, ")", 1))));
        }

        term = llm_rx_or(s->pool, term, llm_rx_literal(s->pool, "|", 1));
        terms = llm_rx_repeat(s->pool, term, 0, LLM_RX_NO_MAX);
    }

    return terms;
}


int
llm_schema_format(llm_schema_t *s, const llm_flat_t *v, llm_rx_t *rx)
{
    size_t     i;
    uint64_t   key;
    llm_str_t  name;

    if (llm_schema_is(s, v, LLM_FLAT_STRING) != LLM_OK) {
        return LLM_ERROR;
    }

    name = llm_flat_str(v);

    for (i = 0; i < llm_nelems(llm_schema_formats); i++) {
        if (llm_str_is(name, llm_schema_formats[i].name)) {
            break;
        }
    }

    if (i == llm_nelems(llm_schema_formats)) {
        return LLM_ABSENT;
    }

    key = UINT64_MAX - i;

    if (llm_schema_map_get(&s->regexes, key, rx) == LLM_OK) {
        return LLM_OK;
    }

    if (llm_schema_formats[i].pattern) {
        *rx = llm_schema_whole(s, llm_schema_formats[i].pattern);

    } else if (strcmp(llm_schema_formats[i].name, "regex") == 0) {
        *rx = llm_schema_regexes(s);

    } else {
        return llm_schema_refuse(s, v, "this format is not supported");
    }

    return llm_schema_map_put(s, &s->regexes, key, *rx);
}
