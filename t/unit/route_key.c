/*
 * The key by which balancers keep a conversation on one machine: what is in
 * it, what is not, whatever the order of members and however the bytes are
 * cut; what is no JSON; what it costs.
 */

#include "engine/api/route_key.h"

#include "t/unit/tap.h"

#include <time.h>

#define NONE  ((llm_str_t) { 0, NULL })

/* of four conversations that begin alike */
#define TURNS(system, text)                                                  \
    "{'role':'system','content':'" system "'},"                              \
    "{'role':'user','content':'" text "'}"


typedef struct {
    char  hex[LLM_ROUTE_KEY_LEN + 1];
} hex_t;


/* with single quotes for double ones */

static char *
json(const char *text)
{
    char  *s, *p;

    s = strdup(text);

    for (p = s; *p; p++) {
        *p = (*p == '\'') ? '"' : *p;
    }

    return s;
}


static hex_t
key_of(const char *p, size_t len, size_t piece, uint32_t message,
    uint32_t prompt, llm_str_t tenant, llm_str_t secret)
{
    hex_t             h;
    size_t            n;
    llm_route_key_t  *k;

    memset(&h, 0, sizeof(h));

    k = llm_route_key_create(message, prompt);

    for ( /* void */ ; len; p += n, len -= n) {
        n = llm_min(piece, len);

        if (llm_route_key_add(k, p, n) == LLM_OK) {
            break;
        }
    }

    if (llm_route_key_end(k, tenant, secret, h.hex) != LLM_OK) {
        strcpy(h.hex, "error");
    }

    llm_route_key_free(k);

    return h;
}


static hex_t
key(const char *text)
{
    char   *s;
    hex_t   h;

    s = json(text);
    h = key_of(s, strlen(s), strlen(s), 64, 16, NONE, NONE);
    free(s);

    return h;
}


static void
same(const char *a, const char *b, const char *what)
{
    is_str(key(a).hex, key(b).hex, "the same: %s", what);
}


static void
differ(const char *a, const char *b, const char *what)
{
    ok(strcmp(key(a).hex, key(b).hex) != 0, "not the same: %s", what);
}


static void
test_turns(void)
{
    size_t  i;

    static const char  first[] =
        "{'model':'m','messages':[" TURNS("be kind", "one") "]}";

    static const struct {
        const char  *text;
        const char  *what;
    } alike[] = {
        { "{'model':'m','messages':[" TURNS("be kind", "one")
          ",{'role':'assistant','content':'1'},"
          "{'role':'user','content':'two'}]}", "the next turn" },
        { "{'messages':[" TURNS("be kind", "one") "],'stream':true,"
          "'temperature':0.5,'model':'m'}", "members in another order" },
        { " { 'model' : 'm' ,\n'messages' : [ {'content':'be kind',"
          "'role':'system'}, { 'content' : 'one' , 'role' : 'user' } ] } ",
          "a message's in another order, and space" },
        { "{'model':'m','messages':[" TURNS("the date is new", "one") "]}",
          "another system prompt" },
        { "{'model':'m','messages':[{'role':'user','content':["
          "{'type':'text','text':'o'},{'text':'ne','type':'text',"
          "'cache_control':{'type':'ephemeral'}}]}]}", "a text in parts" },
        { "{'model':'m','messages':[{'role':'user','content':["
          "{'type':'image','source':{'data':'AAAA','text':'no'}},"
          "{'type':'text','text':'one'}]}]}", "beside an image" },
        { "{'model':'m','messages':[{'role':'user','content':['one']}]}",
          "a text in a list" },
        { "{'model':'m','input':'one','instructions':'other'}",
          "responses" },
        { "{'model':'m','input':[{'type':'message','role':'user','content':"
          "[{'type':'input_text','text':'one'}]},{'type':'function_call'}]}",
          "its list" },
        { "{'model':'m','tools':[{'messages':[1,{'x':'[{'}],'model':'n'}],"
          "'messages':[" TURNS("", "one") "]}", "names that are elsewhere" },
        { "{'model':'m','metadata':{'messages':[{'role':'user','content':"
          "'no'}]},'messages':[" TURNS("", "one") "]}", "or in another" },
        { "{'model':'m','messages':[" TURNS("", "one") "],'messages':["
          TURNS("", "two") "],'model':'n'}", "the first of equal members" },
        { "{'model':'m','messages':[{'role':'user','content':'one','x':"
          "[[[[[[{'role':'no','content':'no'}]]]]]],'y':{}}]}", "deep ones" },
        { "{'model':'m','prompt_cache_key':'','messages':["
          TURNS("", "one") "]}", "an empty cache key" },
        { "{'model':'m','messages':[" TURNS("", "one"), "what is cut off" },
        { "{'model':'m','messages':[" TURNS("", "one") "]}}],{'x",
          "what is behind it" }
    };

    for (i = 0; i < llm_nelems(alike); i++) {
        same(first, alike[i].text, alike[i].what);
    }

    differ(first, "{'model':'m','messages':[" TURNS("be kind", "two") "]}",
           "another first message");
    differ(first, "{'model':'n','messages':[" TURNS("be kind", "one") "]}",
           "another model");
    differ(first, "{'messages':[" TURNS("be kind", "one") "]}", "no model");
    differ(first, "{'model':'m','user':'u','messages':["
           TURNS("be kind", "one") "]}", "a user");
    differ("{'user':'u'}", "{'safety_identifier':'u'}", "by another name");
    differ(first, "{'model':'m'}", "no text");
    differ("{'messages':[{'role':'system','content':'a'}]}",
           "{'messages':[{'role':'system','content':'b'}]}",
           "system prompts without a user's message");
    same("{'messages':[{'role':'system','content':'a'},"
         "{'role':'assistant','content':'b'}]}",
         "{'messages':[{'role':'system','content':'a'}]}",
         "of which the first counts");
    same("{'messages':[{'role':'user','content':[{'type':'image'}]}]}",
         "{'messages':[{'role':'user','content':[{'type':'image'}]},"
         "{'role':'user','content':'b'}]}",
         "a first message without a text stays the first");
    differ("{'user':'ab'}", "{'user':'a','safety_identifier':'b'}",
           "texts are not run together");
}


static void
test_cache_key(void)
{
    same("{'model':'m','prompt_cache_key':'k','input':'a'}",
         "{'input':[{'role':'user','content':'b'}],'user':'u',"
         "'prompt_cache_key':'k','model':'m'}",
         "a cache key stands for all texts");
    differ("{'model':'m','prompt_cache_key':'k'}",
           "{'model':'n','prompt_cache_key':'k'}", "but not for the model");
    differ("{'model':'m','prompt_cache_key':'k'}",
           "{'model':'m','prompt_cache_key':'l'}", "another one");
    differ("{'prompt_cache_key':'k'}", "{'user':'k'}", "nor is it a user");
    same("{'prompt_cache_key':null,'input':'a'}", "{'input':'a'}",
         "null is none");
}


static void
test_prompts(void)
{
    same("{'prompt':'0123456789abcdef and'}",
         "{'prompt':'0123456789abcdef then'}",
         "prompts that begin alike");
    differ("{'prompt':'0123456789abcd'}", "{'prompt':'0123456789abce'}",
           "that do not");
    same("{'prompt':[11,12,13,14,15,16,17]}",
         "{'prompt':[11, 12, 13, 14, 15, 16, 18, 19]}", "of ids");
    differ("{'prompt':[11,12]}", "{'prompt':[11,13]}", "of other ids");
    same("{'prompt':['a','b'],'model':'m'}",
         "{'model':'m','prompt':['a','b']}", "of several");
    same("{'prompt':'a,b','model':'m'}", "{'model':'m','prompt':'a,b'}",
         "and no more than it");
    differ("{'input_prefix':'a'}", "{'input_prefix':'b'}", "of code");
    differ("{'query':'a','documents':['x']}", "{'query':'b'}", "queries");
    same("\xef\xbb\xbf{'prompt':'ab'}", "{'prompt':'ab'}",
         "a byte order mark");
    same("{'query':'a','documents':['x']}", "{'query':'a'}",
         "whatever the documents");
    same("{'input':['a','b']}", "{'input':'a'}", "texts to embed");
    differ("{'input':[1,2,3]}", "{'input':[1,2,4]}", "ids to embed");
    differ("{'input':[[1,2,3]]}", "{'input':[[1,2,4]]}", "in lists");
}


/* how many bytes count, to the byte */

static void
test_bytes(void)
{
    char      a[512], b[512];
    uint32_t  n, wrong;

    wrong = 0;

    for (n = 0; n < 100; n++) {
        snprintf(a, sizeof(a), "{\"messages\":[{\"role\":\"user\",\"content\":"
                 "[{\"text\":\"%.60s\"},{\"text\":\"%.*s%c\"}]}]}",
                 "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                 (int) n % 40, "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 'x');
        memcpy(b, a, sizeof(a));
        *strrchr(b, 'x') = 'y';

        wrong += (strcmp(key_of(a, strlen(a), 7, 60 + n % 40, 0, NONE,
                                NONE).hex,
                         key_of(b, strlen(b), 9, 60 + n % 40, 0, NONE,
                                NONE).hex) != 0);
        wrong += (strcmp(key_of(a, strlen(a), 7, 61 + n % 40, 0, NONE,
                                NONE).hex,
                         key_of(b, strlen(b), 9, 61 + n % 40, 0, NONE,
                                NONE).hex) == 0);
    }

    is_int(wrong, 0, "the first bytes of a message, and no more");

    is_str(key_of("{\"input\":\"a\"}", 13, 13, 0, 0, NONE, NONE).hex,
           key_of("{\"input\":\"b\"}", 13, 13, 0, 0, NONE, NONE).hex,
           "none at all");
}


static void
test_who(void)
{
    static const char  body[] = "{\"input\":\"a\"}";

    hex_t  ann, bob, secret, none;

    ann = key_of(body, 13, 13, 64, 64, llm_str("ann"), NONE);
    bob = key_of(body, 13, 13, 64, 64, llm_str("bob"), NONE);
    secret = key_of(body, 13, 13, 64, 64, NONE, llm_str("ann"));
    none = key_of(body, 13, 13, 64, 64, NONE, NONE);

    ok(strcmp(ann.hex, bob.hex) != 0, "two tenants with the same text");
    ok(strcmp(ann.hex, none.hex) != 0, "and nobody");
    ok(strcmp(ann.hex, secret.hex) != 0, "a secret is no tenant");
    is_int(strspn(ann.hex, "0123456789abcdef"), LLM_ROUTE_KEY_LEN,
           "a key is hexadecimal");
    is_str(ann.hex, "a112fa1025fdce585df198473d25792f",
           "and the same on every machine");
}


/* wherever the bytes are cut */

static void
test_pieces(void)
{
    char    *s;
    hex_t    whole;
    size_t   i, piece, wrong;

    static const char  first[] =
        "{'model':'a\\'b','messages':[{'role':'user','content':[{'text':"
        "'\\\\\\'x\\u00e9\\\\'}]}],'prompt':[1,'a\\'',{'b':2}],'user':'u'}";

    static const char  *texts[] = {
        first,
        "{'prompt':'\\'\\\\','input_prefix':'a\\\\','input':['\\\\'],'x':1}",
        "{'x':{'messages':[]},'messages':[{'content':'a','role':'user'}]}"
    };

    for (i = 0; i < llm_nelems(texts); i++) {
        s = json(texts[i]);
        whole = key_of(s, strlen(s), strlen(s), 64, 64, NONE, NONE);
        wrong = 0;

        for (piece = 1; piece < strlen(s); piece++) {
            wrong += strcmp(whole.hex, key_of(s, strlen(s), piece, 64, 64,
                                              NONE, NONE).hex) != 0;
        }

        is_int(wrong, 0, "text %zu in pieces of every size", i);
        free(s);
    }

    differ("{'input':'a\\'','user':'b'}", "{'input':'a\\\\','user':'b'}",
           "an escaped quote is none");
}


/* never an error, whatever it is: as nothing was sent, or what could be read */

static void
test_broken(void)
{
    size_t  i;
    hex_t   none;

    static const char  *texts[] = {
        "null", "[{'model':'m'}]", "'model'", "model=m", "}", "]]]]", ",",
        ":", " \r\n\t", "\\", "\x1f\x8b\x08\xff", "\xef\xbb{'model':'m'}",
        "{", "{}", "{]", "{'", "{'model'", "{'model':", "{:,:,}", "{'a':]}",
        "{'prompt'", "{'messages':[{'role':'user'", "{'messages':{}}",
        "{'messages':[[[[[[[[[[]]]]]]]]]]", "{{{{{{{{{{}}}}}}}}}}"
    };

    none = key_of("", 0, 1, 64, 16, NONE, NONE);

    for (i = 0; i < llm_nelems(texts); i++) {
        is_str(key(texts[i]).hex, none.hex, "no text: %s", texts[i]);
    }

    same("{'model':'m','messages':[{'role':'user','content':'a",
         "{'model':'m','messages':[{'role':'user','content':'a'}]}",
         "a message that has no end");
    same("{'model':'m','messages':[{'role':'user','content':'a'}],oops",
         "{'model':'m','messages':[{'role':'user','content':'a'}]}",
         "what was read before it broke");
}


/* a body of marks alone ends where too many have been seen, wherever it is
   cut */

static void
test_marks(void)
{
    char    *s;
    hex_t    none, whole;
    size_t   n, i, seen, wrong;

    n = 3 << 20;
    s = malloc(n);
    none = key_of("", 0, 1, 64, 16, NONE, NONE);
    seen = 0;
    wrong = 0;

    for (i = 0; i < 2; i++) {
        memset(s, ' ', n);
        s[0] = '{';
        memcpy(s + (i ? 2 << 20 : 1 << 19), "\"model\":\"m\"}", 13);

        whole = key_of(s, n, n, 64, 16, NONE, NONE);
        seen += strcmp(whole.hex, none.hex) != 0;
        wrong += strcmp(whole.hex, key_of(s, n, 4093, 64, 16, NONE,
                                          NONE).hex) != 0;
    }

    is_int(seen, 1, "a member behind two million marks does not count");
    is_int(wrong, 0, "nor in pieces");
    free(s);
}


/* what a worker's event loop does with the largest part of a body that it
   looks at, 4 MB of the dearest kind: printed, for it depends on the machine */

static void
test_cost(void)
{
    char             *s;
    size_t            i, k, n;
    double            us;
    struct timespec   a, b;

    static const struct {
        const char  *name;
        const char  *unit;
    } kinds[] = {
        { "plain text", "The quick brown fox jumps over the lazy dog. " },
        { "escapes", "\\n" },
        { "ids", "\",[1234,56,789],\"" },
        { "names", "\",\"a\":\"" },
        { "brackets", "\",[[],{}],\"" }
    };

    n = 4 << 20;
    s = malloc(n);

    for (i = 0; i < llm_nelems(kinds); i++) {
        memcpy(s, "{\"x\":\"", 6);

        for (k = 6; k < n; k++) {
            s[k] = kinds[i].unit[(k - 6) % strlen(kinds[i].unit)];
        }

        clock_gettime(CLOCK_MONOTONIC, &a);
        (void) key_of(s, n, 32768, 4096, 256, NONE, NONE);
        clock_gettime(CLOCK_MONOTONIC, &b);

        us = (double) (b.tv_sec - a.tv_sec) * 1e6
             + (double) (b.tv_nsec - a.tv_nsec) / 1e3;

        printf("# 4 MB of %s: %.0f us\n", kinds[i].name, us);
    }

    free(s);
}


int
main(void)
{
    test_turns();
    test_cache_key();
    test_prompts();
    test_bytes();
    test_who();
    test_pieces();
    test_broken();
    test_marks();
    test_cost();

    return done_testing();
}
