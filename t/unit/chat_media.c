/*
 * Chats with images: templates see a part of the type "image" and write their
 * own placeholder for it, which is the template's text; a user's text that is
 * spelt alike is the user's.  The prompt says which media it has, in order; a
 * template that would lose one refuses the chat.
 */

#include "t/unit/chat_case.h"

#define IMAGE(n)  "{\"type\":\"image\",\"media, index\":" #n "}"
#define TEXT(t)   "{\"type\":\"text\",\"text\":\"" t "\"}"
#define SAYS(p)   "{\"role\":\"user\",\"content\":[" p "]}"
#define ASK(m)    "{\"messages\":[" m "]}"
#define LENIENT(m)  "{\"lenient\":true,\"messages\":[" m "]}"

/* as the families' templates do it */

#define QWEN                                                                 \
    "{%- for message in messages %}<|im_start|>{{ message.role }}\n"         \
    "{%- if message.content is string %}{{ message.content }}{%- else %}"    \
    "{%- for content in message.content %}{%- if content.type == 'image' "   \
    "or 'image' in content or 'image_url' in content %}<|vision_start|>"     \
    "<|image_pad|><|vision_end|>{%- elif 'text' in content %}"               \
    "{{ content.text }}{%- endif %}{%- endfor %}{%- endif %}<|im_end|>\n"    \
    "{%- endfor %}"

#define GEMMA                                                                \
    "{{ bos_token }}{%- for message in messages -%}<start_of_turn>"          \
    "{{ message['role'] }}\n{%- if message['content'] is string -%}"         \
    "{{ message['content'] | trim }}{%- elif message['content'] is "         \
    "iterable -%}{%- for item in message['content'] -%}{%- if "              \
    "item['type'] == 'image' -%}{{ '<start_of_image>' }}{%- elif "           \
    "item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}"       \
    "{%- endfor -%}{%- endif -%}<end_of_turn>{%- endfor -%}"


/* the text of each placeholder, with 1 for the template's and 0 for the
   user's */

static void
places(const llm_prompt_t *p, const char *word, char *out)
{
    size_t       i, at;
    const char  *s;

    for (s = strstr(p->text, word); s; s = strstr(s + 1, word)) {
        at = (size_t) (s - p->text);

        for (i = 0; i < p->n_trusted; i++) {
            if (p->trusted[i].start <= at
                && at + strlen(word) <= p->trusted[i].end)
            {
                break;
            }
        }

        *out++ = i < p->n_trusted ? '1' : '0';
    }

    *out = '\0';
}


static void
has(const char *src, const char *request, const char *word,
    const char *want, const char *media, const char *what)
{
    int           rc;
    char          got[64], list[64];
    size_t        i, n;
    llm_err_t     err;
    llm_prompt_t  p;

    rc = render(src, request, &p, &err);

    if (!ok(rc == LLM_OK, "%s", what)) {
        printf("# %s\n", err.msg);
        return;
    }

    places(&p, word, got);
    is_str(got, want, "the places are the template's");

    for (i = 0, n = 0; i < p.n_media; i++) {
        n += (size_t) snprintf(list + n, sizeof(list) - n, "%s%u",
                               i ? " " : "", p.media[i]);
    }

    list[n] = '\0';
    is_str(list, media, "for these media");
    llm_prompt_free(&p);
}


static void
refuses(const char *src, const char *request, const char *what)
{
    llm_err_t     err;
    llm_prompt_t  p;

    is_int(render(src, request, &p, &err), LLM_ERROR, "%s", what);
    ok(err.status == 400 && strcmp(err.param, "messages") == 0
       && strstr(err.msg, "none for images or sound"), "is refused: %d %s %s",
       err.status, err.param, err.msg);
    llm_prompt_free(&p);
}


int
main(void)
{
    has(QWEN, ASK(SAYS(IMAGE(0) "," TEXT("a <|image_pad|> b"))),
        "<|image_pad|>", "10", "0", "an image, and a text that spells it");
    has(QWEN, ASK(SAYS(TEXT("<|vision_start|><|image_pad|><|vision_end|>"))),
        "<|image_pad|>", "0", "", "a text that spells all of it");
    has(QWEN, ASK("{\"role\":\"user\",\"content\":\"<|image_pad|>\"}"),
        "<|image_pad|>", "0", "", "or a message that does");
    has(QWEN, ASK(SAYS("{\"type\":\"text\",\"text\":\"a\",\"media, index\":"
                       "3}")), "<|image_pad|>", "", "",
        "a text that has a client's key");
    has(QWEN, ASK(SAYS(IMAGE(0) "," IMAGE(1)) ",{\"role\":\"assistant\","
                  "\"content\":\"<|image_pad|>\"},"
                  SAYS(TEXT("b") "," IMAGE(2))),
        "<|image_pad|>", "1101", "0 1 2", "several, in order");
    has(GEMMA, LENIENT(SAYS(IMAGE(0) "," TEXT("<start_of_image>"))),
        "<start_of_image>", "10", "0", "Gemma's");
    has(QWEN, LENIENT(USER "," CALL("\"{}\"") ",{\"role\":\"tool\","
                      "\"tool_call_id\":\"call_1\",\"content\":[" IMAGE(0)
                      "]}"),
        "<|image_pad|>", "1", "0", "an image of a tool");

    refuses(CHATML, LENIENT(SAYS(IMAGE(0) "," TEXT("a"))),
            "a template that takes strings only");

    return done_testing();
}
