/*
 * What is reasoning in an answer: the marks that are known by the template's
 * words alone, and what the end of a prompt says of them.
 */

#include "t/unit/heard.h"


/* a template that has nothing but the end of reasoning, which it cuts away */

static void
relatives(void)
{
    char               source[256], raw[256];
    size_t             i, k;
    heard_t            h;
    llm_str_t          s;
    llm_chat_t        *c;
    llm_tools_t        tools = { 0, NULL };
    llm_answer_opts_t  o;

    static const struct {
        const char  *open;
        const char  *close;
    } marks[] = {
        { "<think>", "</think>" },
        { "<thinking>", "</thinking>" },
        { "<thought>", "</thought>" },
        { "<reasoning>", "</reasoning>" },
        { "<seed:think>", "</seed:think>" },
        { "[THINK]", "[/THINK]" },
        { "<|START_THINKING|>", "<|END_THINKING|>" },
        { "<|inner_prefix|>", "<|inner_suffix|>" },
        { "<|begin_of_thought|>", "<|end_of_thought|>" },
        { "<|channel>thought", "<channel|>" },
        { "\342\227\201think\342\226\267", "\342\227\201/think\342\226\267" },
        { "Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]" }
    };

    for (i = 0; i < llm_nelems(marks); i++) {
        snprintf(source, sizeof(source), "{%% for m in messages %%}"
                 "<|turn|>{{ m.content.split('%s')[-1] }}{%% endfor %%}"
                 "<|turn|>", marks[i].close);

        c = chat(marks[i].open, source, strlen(source));

        if (!ok(c != NULL, "%s: the template", marks[i].open)) {
            continue;
        }

        o.format = llm_chat_format(c);
        o.tools = &tools;
        o.form = NULL;
        o.open = -1;

        for (k = 0; k < 2; k++) {
            o.flags = k ? 0 : LLM_ANSWER_REASONING;
            s.len = (size_t) snprintf(raw, sizeof(raw), "%s\nHm.\n%s\nYes.",
                                      marks[i].open, marks[i].close);
            s.data = raw;

            listen(&o, s, (int) s.len, &h);
            ok(!h.wrong && is(&h.content, k ? raw : "Yes.")
               && is(&h.reasoning, k ? "" : "Hm.") && cuts_agree(&o, s, &h),
               "%s, %s", marks[i].open, k ? "not looked for" : "reasoning");
            heard_free(&h);
        }

        llm_chat_free(c);
    }
}


/* what the end of a prompt says of reasoning */

static void
prompts(void)
{
    uint32_t      i;
    llm_format_t  f;

    static const struct {
        const char  *tail;
        int          open;
    } cases[] = {
        { "<|im_start|>assistant\n", LLM_ANSWER_UNOPENED },
        { "<|im_start|>assistant\n<think>\n", 0 },
        { "<|im_start|>assistant\n<think>\n\n</think>\n\n",
          LLM_ANSWER_CLOSED },
        { "</think>\n<|im_start|>assistant\n<think>\n", 0 },
        { "<reason><think></think>", 1 },
        { "<think></think><reason>", 1 },
        { "<think></think>\n<next>it", LLM_ANSWER_UNOPENED },
        { "<think></think>it<next>", LLM_ANSWER_CLOSED },
    };

    memset(&f, 0, sizeof(f));
    f.n_reasoning = 2;
    f.reasoning[0].open = (llm_str_t) { 7, "<think>" };
    f.reasoning[0].close = (llm_str_t) { 8, "</think>" };
    f.reasoning[1].open = (llm_str_t) { 8, "<reason>" };
    f.reasoning[1].close = (llm_str_t) { 9, "</reason>" };
    f.n_skipped = 1;
    f.skipped[0] = (llm_str_t) { 6, "<next>" };

    for (i = 0; i < llm_nelems(cases); i++) {
        ok(llm_answer_open(&f, (llm_str_t) { strlen(cases[i].tail),
                                             cases[i].tail })
           == cases[i].open, "a prompt's reasoning: case %u", i);
    }
}


int
main(void)
{
    srand(1);

    relatives();
    prompts();

    return done_testing();
}
