/*
 * Images and sound in the requests of all dialects: where the bytes come from,
 * what is refused, what becomes a placeholder; what the engine gets; and that
 * nothing stays in the memory for media of a request that is refused.
 *
 * In bodies ' stands for ".
 */

#include "t/unit/api_talk.h"

#include <sys/mman.h>

#define HOLDER  7
#define CHUNKS  16

/* a PNG's first bytes, and some that are nothing */
#define PNG     "iVBORw0KGgo="
#define BARE    "iVBORw0KGgo"
#define DATA    "data:image/png;base64," PNG
#define IMG(u)  "{'type':'image_url','image_url':{'url':'" u "'}}"
#define WAV     "{'type':'input_audio','input_audio':{'data':'UklG','format':" \
                "'wav'}}"
#define USER(p) "{'messages':[{'role':'user','content':[" p "]}]}"
#define TEXT    "{'type':'text','text':'a'}"

static llm_api_model_t  sees[4];
static llm_api_conf_t   with;


static uint64_t
used(void)
{
    llm_media_stats_t  st;

    llm_zone_media_stats(with.zone, &st);

    return st.used;
}


static void
open_zone(void)
{
    void              *mem;
    llm_zone_t        *z;
    llm_zone_model_t   m = { .parallel = 1 };

    mem = mmap(NULL, llm_zone_size(1, 1, 1 << 17), PROT_READ|PROT_WRITE,
               MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    z = llm_zone_init(mem, 1, &m, 1, 1 << 17, 8);
    mem = mmap(NULL, llm_media_size(CHUNKS << 14), PROT_READ|PROT_WRITE,
               MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);
    llm_zone_set_media(z, mem, CHUNKS << 14);

    memcpy(sees, models, sizeof(sees));
    sees[0].media = LLM_MEDIUM_IMAGE;
    sees[1].media = LLM_MEDIUM_IMAGE|LLM_MEDIUM_AUDIO;

    with = conf;
    with.models = sees;
    with.zone = z;
    with.holder = HOLDER;
    with.media.most = 3;
    with.media.max_size = 200000;
    with.media.max_pixels = 1000000;
    with.media.fetch = 1;
}


/* what the engine gets of media */

static void
dump_media(const llm_request_t *r, llm_buf_t *to)
{
    uint32_t            i;
    const llm_media_ref_t  *m;

    m = llm_ref_data(r, r->media);

    for (i = 0; i < r->media.len; i++) {
        llm_buf_addf(to, "(%u,%u,%u %.*s", m[i].kind, m[i].type, m[i].detail,
                     (int) m[i].place.len,
                     (const char *) llm_ref_data(r, m[i].place));

        if (m[i].url.len) {
            llm_buf_addf(to, " <%.*s>", (int) m[i].url.len,
                         (const char *) llm_ref_data(r, m[i].url));
        }

        if (m[i].block.n) {
            llm_buf_addf(to, " %llu bytes, %02x",
                         (unsigned long long) m[i].block.len,
                         *(unsigned char *) llm_media_data(with.zone,
                                                           &m[i].block));
        }

        llm_buf_addc(to, ')');
    }

    llm_buf_adds(to, " ");
    dump_flat(llm_flat_get(llm_ref_data(r, r->chat), "messages"), to);
}


static void
is_read(const llm_api_endpoint_t *ep, const llm_api_conf_t *c,
    const char *text, const char *want, const char *what)
{
    llm_buf_t  dump;

    llm_buf_init(&dump, 0);

    if (ask(ep, c, text) == LLM_OK) {
        dump_media((llm_request_t *) msg.data, &dump);
        llm_media_release(with.zone, HOLDER, (llm_request_t *) msg.data);

    } else {
        llm_buf_addf(&dump, "%s: %s", err.param, err.msg);
    }

    is_str(dump.data, want, "%s", what);
    is_int(used(), 0, "nothing is left of it");
    llm_buf_free(&dump);
    hang_up();
}


#define PART  "[{'role':'user','content':[{'type':'image','media, index':0}]}]"

static void
test_sources(void)
{
    size_t  i;

    static const struct {
        const llm_api_endpoint_t  *ep;
        const char                *what, *body, *want;
    } cases[] = {
        { CHAT, "a data: URL", USER(IMG(DATA)),
          "(1,1,0 messages[0].content[0] 8 bytes, 89) " PART },

        { CHAT, "without padding, and a type in capitals",
          USER(IMG("DATA:IMAGE/JPEG;base64," BARE)),
          "(1,2,0 messages[0].content[0] 8 bytes, 89) " PART },

        { CHAT, "with the line breaks of MIME, and spaces",
          USER(IMG("data:image/png;base64, iVBO\\r\\nRw\\t0K\\r\\n Ggo=\\n")),
          "(1,1,0 messages[0].content[0] 8 bytes, 89) " PART },

        { CHAT, "a BMP file",
          USER(IMG("data:image/bmp;base64," PNG) ","
               IMG("data:image/x-ms-bmp;base64," PNG)),
          "(1,9,0 messages[0].content[0] 8 bytes, 89)"
          "(1,9,0 messages[0].content[1] 8 bytes, 89) "
          "[{'role':'user','content':[{'type':'image','media, index':0},"
          "{'type':'image','media, index':1}]}]" },

        { CHAT, "without a type, with parameters",
          USER(IMG("data:;name=a.png;base64," PNG)),
          "(1,0,0 messages[0].content[0] 8 bytes, 89) " PART },

        { CHAT, "detail", USER("{'type':'image_url','image_url':{'url':'" DATA
                               "','detail':'low'}}"),
          "(1,1,1 messages[0].content[0] 8 bytes, 89) " PART },

        { CHAT, "a URL alone, with detail beside it",
          USER("{'type':'image_url','image_url':'" DATA "','detail':'high'}"),
          "(1,1,2 messages[0].content[0] 8 bytes, 89) " PART },

        { CHAT, "a URL to be fetched; its fragment stays here",
          USER(IMG("https://a.example/b.png?c=%20d#e")),
          "(1,0,0 messages[0].content[0] <https://a.example/b.png?c=%20d>) "
          PART },

        { CHAT, "several, in order, with texts",
          USER(IMG(DATA) "," TEXT "," IMG("http://x/")),
          "(1,1,0 messages[0].content[0] 8 bytes, 89)"
          "(1,0,0 messages[0].content[2] <http://x/>) "
          "[{'role':'user','content':[{'type':'image','media, index':0},"
          TEXT ",{'type':'image','media, index':1}]}]" },

        { CHAT, "an image that was answered is an image",
          "{'messages':[{'role':'user','content':[" IMG(DATA) "]},"
          "{'role':'assistant','content':'A dog.'},{'role':'user','content':"
          "'What?'}]}",
          "(1,1,0 messages[0].content[0] 8 bytes, 89) "
          "[{'role':'user','content':[{'type':'image','media, index':0}]},"
          "{'role':'assistant','content':'A dog.'},{'role':'user','content':"
          "'What?'}]" },

        { CHAT, "one that was answered and cannot be read is a placeholder",
          "{'messages':[{'role':'user','content':[" IMG("data:image/bmp,x")
          "]},{'role':'assistant','content':'A dog.'},{'role':'user',"
          "'content':'What?'}]}",
          " [{'role':'user','content':[{'type':'text','text':'[image]'}]},"
          "{'role':'assistant','content':'A dog.'},{'role':'user','content':"
          "'What?'}]" },

        { CHAT, "text that spells what the parts for the engine are",
          USER("{'type':'text','text':'<|image_pad|>','media, index':5}"),
          " [{'role':'user','content':[{'type':'text','text':"
          "'<|image_pad|>','media, index':5}]}]" },

        { CHAT, "an image of a tool",
          "{'messages':[{'role':'user','content':'a'},{'role':'assistant',"
          "'tool_calls':[{'id':'c','type':'function','function':{'name':'f',"
          "'arguments':''}}]},{'role':'tool','tool_call_id':'c','content':["
          IMG(DATA) "]}]}",
          "(1,1,0 messages[2].content[0] 8 bytes, 89) [{'role':'user',"
          "'content':'a'},{'role':'assistant','tool_calls':[{'id':'c','type':"
          "'function','function':{'name':'f','arguments':'','arguments, "
          "read':{}}}],'content':null},{'role':'tool','tool_call_id':'c',"
          "'content':[{'type':'image','media, index':0}]}]" },

        { CHAT, "sound",
          "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          "{'type':'input_audio','input_audio':{'data':'UklGRg','format':"
          "'wav'}}]}]}",
          "(2,5,0 messages[0].content[0] 4 bytes, 52) [{'role':'user',"
          "'content':[{'type':'audio','media, index':0}]}]" },

        { CHAT, "sound by a URL, as vLLM has it",
          "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          "{'type':'audio_url','audio_url':{'url':'data:audio/mpeg;base64,"
          "UklGRg=='}},{'type':'audio_url','audio_url':'https://x/a.ogg'}]}]}",
          "(2,6,0 messages[0].content[0] 4 bytes, 52)(2,0,0 "
          "messages[0].content[1] <https://x/a.ogg>) [{'role':'user',"
          "'content':[{'type':'audio','media, index':0},{'type':'audio',"
          "'media, index':1}]}]" },

        { &llm_api_messages, "sound in a block of Messages",
          "{'model':'Big-Llm7','max_tokens':9,'messages':[{'role':'user',"
          "'content':[{'type':'audio','source':{'type':'base64','media_type':"
          "'audio/flac','data':'UklGRg=='}},{'type':'audio','source':{'type':"
          "'url','url':'http://x/y'}}]}]}",
          "(2,7,0 messages[0].content[0] 4 bytes, 52)(2,0,0 "
          "messages[0].content[1] <http://x/y>) [{'role':'user','content':["
          "{'type':'audio','media, index':0},{'type':'audio','media, index':"
          "1}]}]" },

        { &llm_api_responses, "Responses' input_image",
          "{'input':[{'role':'user','content':[{'type':'input_text','text':"
          "'a'},{'type':'input_image','image_url':'" DATA "','detail':"
          "'original'}]}]}",
          "(1,1,2 input[0].content[1] 8 bytes, 89) [{'role':'user','content':["
          TEXT ",{'type':'image','media, index':0}]}]" },

        { &llm_api_responses, "alone, and a screenshot",
          "{'input':[{'role':'user','content':[{'type':'input_image',"
          "'image_url':'" DATA "'}]},{'type':'computer_call','call_id':'c',"
          "'action':{'type':'wait'}},{'type':'computer_call_output','call_id':"
          "'c','output':{'type':'computer_screenshot','image_url':"
          "'https://x/y'}}]}",
          "(1,1,0 input[0].content[0] 8 bytes, 89)(1,0,0 input[2].output "
          "<https://x/y>) [{'role':'user','content':[{'type':'image',"
          "'media, index':0}]},{'role':'assistant','content':null,"
          "'tool_calls':[{'id':'c','type':'function','function':{'name':"
          "'computer','arguments':'{\"type\":\"wait\"}',"
          "'arguments, read':{'type':'wait'}}}]},{'role':'tool',"
          "'content':[{'type':'image','media, index':1}],'tool_call_id':"
          "'c'}]" },

        { &llm_api_messages, "Anthropic's blocks, and a tool's result",
          "{'max_tokens':9,'messages':[{'role':'user','content':[{'type':"
          "'image','source':{'type':'base64','media_type':'image/webp','data':"
          "'" PNG "'}},{'type':'image','source':{'type':'url','url':"
          "'http://x/y'}}]},{'role':'assistant','content':[{'type':"
          "'tool_use','id':'t','name':'f','input':{}}]},{'role':'user',"
          "'content':[{'type':'tool_result','tool_use_id':'t','content':["
          "{'type':'image','source':{'type':'base64','media_type':'image/gif',"
          "'data':'" PNG "'}}]}]}]}",
          "(1,3,0 messages[0].content[0] 8 bytes, 89)(1,0,0 "
          "messages[0].content[1] <http://x/y>)(1,4,0 "
          "messages[2].content[0].content[0] 8 bytes, 89) [{'role':'user',"
          "'content':[{'type':'image','media, index':0},{'type':'image',"
          "'media, index':1}]},{'role':'assistant','content':null,"
          "'tool_calls':[{'id':'t','type':'function','function':{'name':'f',"
          "'arguments':'{}','arguments, read':{}}}]},{'role':'tool',"
          "'content':[{'type':'image','media, index':2}],'tool_call_id':"
          "'t'}]" },

        { &llm_api_ollama_chat, "Ollama's images come before the text",
          "{'messages':[{'role':'user','content':'a','images':['" PNG "','"
          BARE "']}]}",
          "(1,0,0 messages[0].images[0] 8 bytes, 89)(1,0,0 "
          "messages[0].images[1] 8 bytes, 89) [{'role':'user','content':["
          "{'type':'image','media, index':0},{'type':'image','media, index':"
          "1}," TEXT "]}]" },

        { &llm_api_ollama_generate, "and those of a prompt",
          "{'prompt':'a','images':['" PNG "']}",
          "(1,0,0 images[0] 8 bytes, 89) [{'role':'user','content':["
          "{'type':'image','media, index':0}," TEXT "]}]" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        is_read(cases[i].ep, &with, cases[i].body, cases[i].want,
                cases[i].what);
    }
}


static void
is_refused(const llm_api_endpoint_t *ep, const llm_api_conf_t *c,
    const char *text, const char *param, const char *words)
{
    is_int(ask(ep, c, text), LLM_ERROR, "refused: %.120s", text);
    ok(err.status == 400 && strcmp(err.param, param) == 0
       && strstr(err.msg, words), "names '%s': %s (%s)", param, err.msg,
       err.param);
    is_int(used(), 0, "and nothing is left");
    hang_up();
}


static void
test_errors(void)
{
    size_t  i;

    static const struct {
        const llm_api_endpoint_t  *ep;
        const char                *body, *param, *words;
    } cases[] = {
        { CHAT, USER("{'type':'image_url'}"), "messages[0].content[0]."
          "image_url", "Missing" },
        { CHAT, USER("{'type':'image_url','image_url':{}}"),
          "messages[0].content[0].image_url.url", "Missing" },
        { CHAT, USER("{'type':'image_url','image_url':5}"),
          "messages[0].content[0].image_url", "string" },
        { CHAT, USER(IMG("")), "messages[0].content[0].image_url.url",
          "begins with 'data:'" },
        { CHAT, USER(IMG("file:///etc/passwd")),
          "messages[0].content[0].image_url.url", "begins with 'data:'" },
        { CHAT, USER(IMG("ftp://a/b")),
          "messages[0].content[0].image_url.url", "begins with 'data:'" },
        { CHAT, USER(IMG("data:image/png;base64")),
          "messages[0].content[0].image_url.url", "TYPE;base64,DATA" },
        { CHAT, USER(IMG("data:image/png,abc")),
          "messages[0].content[0].image_url.url", "TYPE;base64,DATA" },
        { CHAT, USER(IMG("data:text/html;base64," PNG)),
          "messages[0].content[0].image_url.url", "'text/html'" },
        { CHAT, USER(IMG("data:image/tiff;base64," PNG)),
          "messages[0].content[0].image_url.url", "and image/bmp." },
        { CHAT, USER(IMG("data:audio/wav;base64," PNG)),
          "messages[0].content[0].image_url.url", "'audio/wav'" },
        { CHAT, USER(IMG("data:image/png;base64,")),
          "messages[0].content[0].image_url.url", "empty" },
        { CHAT, USER(IMG("data:image/png;base64,abcde")),
          "messages[0].content[0].image_url.url", "Invalid base64" },
        { CHAT, USER(IMG("data:image/png;base64,ab-_")),
          "messages[0].content[0]", "Invalid base64" },
        { CHAT, USER(IMG("data:image/png;base64,ab=d")),
          "messages[0].content[0]", "Invalid base64" },
        { CHAT, USER(TEXT "," IMG(DATA) "," IMG("data:image/png;base64,a b%d"
                                                "eee")),
          "messages[0].content[2]", "Invalid base64" },
        { CHAT, USER("{'type':'image_url','image_url':{'url':'" DATA
                     "','detail':'tiny'}}"),
          "messages[0].content[0].image_url.detail", "'tiny'" },
        { CHAT, USER(IMG("http://")), "messages[0].content[0].image_url.url",
          "no host" },
        { CHAT, USER(IMG("https:///a")),
          "messages[0].content[0].image_url.url", "no host" },
        { CHAT, USER(IMG("http://a/b c")),
          "messages[0].content[0].image_url.url", "printable ASCII" },
        { CHAT, USER(IMG("http://a/\\r\\nHost: b")),
          "messages[0].content[0].image_url.url", "printable ASCII" },
        { CHAT, USER(IMG(DATA) "," IMG(DATA) "," IMG(DATA) "," IMG(DATA)),
          "messages[0].content[3]", "Too many images: this server takes at "
          "most 3" },
        { CHAT, "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          WAV "," WAV "," WAV "," WAV "]}]}", "messages[0].content[3]",
          "Too many sounds: " },
        { CHAT, "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          WAV "," IMG(DATA) "," WAV "," WAV "]}]}", "messages[0].content[3]",
          "Too many images and sounds: " },
        { CHAT, USER("{'type':'input_audio','input_audio':{'data':'UklG',"
                     "'format':'wav'}}"),
          "messages[0].content[0].type", "takes text and images" },
        { CHAT, USER("{'type':'input_file','file':{}}"),
          "messages[0].content[0].type", "takes text and images" },
        { CHAT, "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          "{'type':'input_audio','input_audio':{'data':'UklG','format':"
          "'midi'}}]}]}", "messages[0].content[0].input_audio.format",
          "'audio/midi'" },
        { CHAT, "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          "{'type':'audio_url','audio_url':{'url':'" DATA "'}}]}]}",
          "messages[0].content[0].audio_url.url", "'image/png'" },
        { CHAT, "{'model':'Big-Llm7','messages':[{'role':'user','content':["
          "{'type':'audio','source':{'type':'base64','media_type':'image/png',"
          "'data':'" PNG "'}}]}]}",
          "messages[0].content[0].source.media_type", "audio/wav" },
        { CHAT, USER("{'type':'audio_url','audio_url':{'url':'http://x/'}}"),
          "messages[0].content[0].type", "takes text and images" },
        { CHAT, "{'model':'big-tiny','messages':[{'role':'user','content':["
          IMG(DATA) "]}]}", "messages[0].content[0].type",
          "takes text only" },
        { CHAT, USER(IMG(DATA) ",{'type':'image','media, index':0}"),
          "messages[0].content[1].source", "Missing" },
        { &llm_api_responses, "{'input':[{'role':'user','content':[{'type':"
          "'input_image','file_id':'file-1'}]}]}",
          "input[0].content[0].file_id", "this server stores none" },
        { &llm_api_messages, "{'max_tokens':9,'messages':[{'role':'user',"
          "'content':[{'type':'image','source':{'type':'file','file_id':"
          "'f'}}]}]}", "messages[0].content[0].source.file_id",
          "stores none" },
        { &llm_api_messages, "{'max_tokens':9,'messages':[{'role':'user',"
          "'content':[{'type':'image','source':{'type':'base64','data':'"
          PNG "'}}]}]}", "messages[0].content[0].source.media_type",
          "Missing" },
        { &llm_api_ollama_chat, "{'messages':[{'role':'user','content':'a',"
          "'images':['" PNG "','!']}]}", "messages[0].images[1]",
          "Invalid base64" },
        { &llm_api_ollama_generate, "{'prompt':'a','raw':true,'images':['"
          PNG "']}", "images", "not together with 'raw'" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        is_refused(cases[i].ep, &with, cases[i].body, cases[i].param,
                   cases[i].words);
    }
}


/* a body with a data: URL of n bytes */

static char *
large(size_t n)
{
    char  *text;

    text = malloc(n * 4 / 3 + 200);
    n = n * 4 / 3;
    strcpy(text, "{'messages':[{'role':'user','content':[{'type':'image_url',"
                 "'image_url':'data:;base64,");
    memset(strchr(text, '\0'), 'A', n + 1);
    strcpy(strchr(text, 'A') + n, "'}]}]}");

    return text;
}


/* asks with n images of eight bytes */

static int
many_small(const llm_api_conf_t *c, uint32_t n)
{
    int        rc;
    uint32_t   i;
    llm_buf_t  text;

    llm_buf_init(&text, 0);
    llm_buf_adds(&text, "{'messages':[{'role':'user','content':[");

    for (i = 0; i < n; i++) {
        llm_buf_addf(&text, "%s" IMG(DATA), i ? "," : "");
    }

    llm_buf_adds(&text, "]}]}");
    rc = ask(CHAT, c, text.data);
    llm_buf_free(&text);

    return rc;
}


static void
test_room(void)
{
    char            *text;
    llm_chunk_t      b;
    llm_api_conf_t   c;

    /* the limit of an image, to the byte */

    c = with;
    c.media.max_size = 120;
    text = large(120);
    is_int(ask(CHAT, &c, text), LLM_OK, "an image of the largest size");
    llm_media_release(c.zone, HOLDER, (llm_request_t *) msg.data);
    hang_up();

    c.media.max_size = 119;
    is_int(ask(CHAT, &c, text), LLM_ERROR, "one byte more is refused");
    ok(err.status == 400 && strcmp(err.code, "media_too_large") == 0
       && strstr(err.msg, "llm_max_image_size"), "by its size: %s", err.msg);
    hang_up();
    free(text);

    /* the memory of all */

    c = with;
    c.media.max_size = 10 << 20;
    text = large((CHUNKS << 14) + 2);
    is_int(ask(CHAT, &c, text), LLM_ERROR, "an image larger than the memory");
    ok(err.status == 400 && strstr(err.msg, "llm_media_memory"),
       "will never fit: %s", err.msg);
    hang_up();
    free(text);

    (void) llm_media_alloc(c.zone, 1, (CHUNKS - 2) << 14, &b);
    text = large(3 << 14);
    is_int(ask(CHAT, &c, text), LLM_ERROR, "an image, and no room now");
    ok(err.status == 429 && strcmp(err.code, "media_memory_full") == 0,
       "may come again: %d %s", err.status, err.msg);
    hang_up();
    llm_media_free(c.zone, 1, &b);
    is_int(ask(CHAT, &c, text), LLM_OK, "it fits later");
    is_int(used(), 3 << 14, "and has its place");
    llm_media_release(c.zone, HOLDER, (llm_request_t *) msg.data);
    hang_up();
    free(text);
    is_int(used(), 0, "that is given back");

    c.media.most = 2 * CHUNKS;
    is_int(many_small(&c, CHUNKS), LLM_OK, "an image for each chunk");
    is_int(used(), CHUNKS << 14, "take all of the memory");
    llm_media_release(c.zone, HOLDER, (llm_request_t *) msg.data);
    hang_up();
    is_int(many_small(&c, CHUNKS + 1), LLM_ERROR, "one more of eight bytes");
    ok(err.status == 400 && strstr(err.msg, "The images of this request")
       && strstr(err.msg, "llm_media_memory"), "will never fit: %s", err.msg);
    hang_up();
    is_int(used(), 0, "and nothing is left");
}


static void
test_rules(void)
{
    int             i;
    llm_buf_t       text;
    llm_api_conf_t  c;

    /* no fetching */

    c = with;
    c.media.fetch = 0;
    is_refused(CHAT, &c, USER(IMG("https://a/b")),
               "messages[0].content[0].image_url.url", "llm_fetch");
    is_read(CHAT, &c, "{'messages':[{'role':'user','content':["
            IMG("https://a/b") "]},{'role':'assistant','content':'A'},"
            "{'role':'user','content':'B'}]}",
            " [{'role':'user','content':[{'type':'text','text':'[image]'}]},"
            "{'role':'assistant','content':'A'},{'role':'user','content':"
            "'B'}]", "a URL that was answered is a placeholder");

    /* many URLs */

    c = with;
    c.media.most = 1000;
    llm_buf_init(&text, 0);
    llm_buf_adds(&text, "{'messages':[{'role':'user','content':[");

    for (i = 0; i < 65; i++) {
        llm_buf_addf(&text, "%s" IMG("https://a/%d"), i ? "," : "", i);
    }

    llm_buf_adds(&text, "]}]}");
    is_refused(CHAT, &c, text.data, "messages[0].content[64]",
               "Too many URLs");
    llm_buf_free(&text);

    /* no tower */

    c = with;
    c.media.skip = 1;
    is_read(CHAT, &c, "{'model':'big-tiny','messages':[{'role':'user',"
            "'content':[" IMG(DATA) "," TEXT "]}]}",
            " [{'role':'user','content':[{'type':'text','text':'[image]'},"
            TEXT "]}]", "skip: a placeholder");
    is_read(&llm_api_messages, &c, "{'model':'big-tiny','max_tokens':9,"
            "'messages':[{'role':'user','content':[{'type':'image','source':"
            "{}}]}]}", " [{'role':'user','content':'[image]'}]",
            "in blocks, too");
    is_read(&llm_api_ollama_chat, &c, "{'model':'big-tiny','messages':["
            "{'role':'user','content':'a','images':['x']}]}",
            " [{'role':'user','content':[{'type':'text','text':'[image]'},"
            TEXT "]}]", "and Ollama's");
    is_refused(CHAT, &c, "{'model':'big-tiny','messages':[{'role':'user',"
               "'content':[{'type':'input_audio','input_audio':{}}]}]}",
               "messages[0].content[0].type", "text only");

    /* a model that does not exist is more important than its images */

    is_int(ask(CHAT, &with, "{'model':'none','messages':[{'role':'user',"
               "'content':[" IMG(DATA) "]}]}"), LLM_ERROR, "no such model");
    is_int(err.status, 404, "is said first");
    hang_up();
    is_int(ask(&llm_api_messages, &with, "{'model':'none','max_tokens':9,"
               "'messages':[{'role':'user','content':[{'type':'image',"
               "'source':{'type':'base64','media_type':'image/png','data':'"
               PNG "'}}]}]}"), LLM_ERROR, "in Messages, too");
    is_int(err.status, 404, "is said");
    hang_up();
    is_int(used(), 0, "and nothing is left");
}


static void
test_base64(void)
{
    char           text[64];
    size_t         i, n, bare, bad;
    llm_buf_t      b;
    llm_base64_t   e;
    unsigned char  bytes[40], got[40];

    for (i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char) (i * 37 + 200);
    }

    bad = 0;

    for (n = 0; n < sizeof(bytes); n++) {
        memset(&e, 0, sizeof(e));
        llm_buf_init(&b, 0);
        llm_base64_add(&e, &b, bytes, n);
        llm_base64_end(&e, &b);

        for (bare = 0; bare < 2; bare++) {
            i = b.len;

            while (bare && i && b.data[i - 1] == '=') {
                i--;
            }

            memcpy(text, n ? b.data : "", i);
            memset(got, 0xee, sizeof(got));
            bad += llm_base64_size(text, i) != n
                   || llm_base64_read(got, text, i) != LLM_OK
                   || memcmp(got, bytes, n) != 0
                   || (n < sizeof(got) && got[n] != 0xee);
        }

        llm_buf_free(&b);
    }

    is_int(bad, 0, "base64 of any length, with and without padding");
    ok(llm_base64_size("a", 1) == SIZE_MAX
       && llm_base64_size("abcd=", 5) == SIZE_MAX
       && llm_base64_read(got, "a===", 4) == LLM_ERROR
       && llm_base64_read(got, "ab-c", 4) == LLM_ERROR
       && llm_base64_read(got, "ab\0c", 4) == LLM_ERROR
       && llm_base64_read(got, "ab=\v=", 5) == LLM_ERROR
       && llm_base64_read(got, "\xff\xff\xff\xff", 4) == LLM_ERROR,
       "and what is none");
}


/* white space before, in and after digits and padding: the bytes are those of
   the text without it */

static void
test_blanks(void)
{
    size_t               i, n, at, end, bad;
    char                 text[400];
    unsigned char        want[64], got[400];
    static const char    digits[] = "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVphYmNk"
                                    "ZWZnaGlqa2xtbm9wcXJzdHV2d3h5ejAxMg==";
    static const char    blanks[] = " \t\r\n\f";

    n = llm_base64_size(digits, sizeof(digits) - 1);
    is_int((int64_t) n, 55, "the bytes of a text");
    (void) llm_base64_read(want, digits, sizeof(digits) - 1);
    bad = 0;

    for (at = 1; at < sizeof(digits) + 1; at++) {
        for (i = 0, end = 0; i < sizeof(digits) - 1; i++) {
            if (i % at == at - 1) {
                text[end++] = blanks[i % 5];
                text[end++] = blanks[(i + at) % 5];
            }

            text[end++] = digits[i];
        }

        text[end++] = '\n';
        memset(got, 0xee, sizeof(got));
        bad += llm_base64_size(text, end) != n
               || llm_base64_read(got, text, end) != LLM_OK
               || memcmp(got, want, n) != 0 || got[n] != 0xee;
    }

    is_int((int64_t) bad, 0, "and with white space in any places");
    is_int((int64_t) llm_base64_size(" \r\n", 3), 0, "which is nothing alone");
}


int
main(void)
{
    open_zone();
    test_base64();
    test_blanks();
    test_sources();
    test_errors();
    test_room();
    test_rules();

    return done_testing();
}
