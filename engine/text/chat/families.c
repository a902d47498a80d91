/*
 * Knowledge about models by name: families whose templates do not show how the
 * model itself writes calls or reasoning.  They are recognised by words in the
 * template's source.
 */

#include "engine/text/chat/format.h"

#define LLM_FAMILY_FORM(...)                                                 \
    do {                                                                     \
        static const llm_form_t  form_ = { __VA_ARGS__ };                    \
        llm_family_add(f, &form_);                                           \
    } while (0)

#define S(lit)  { sizeof(lit) - 1, (lit) }


static int
llm_family_has(llm_str_t src, const char *word)
{
    return memmem(src.data, src.len, word, strlen(word)) != NULL;
}


/* adds a form unless there is an equal one */

static void
llm_family_add(llm_format_t *f, const llm_form_t *form)
{
    uint32_t           i;
    const llm_form_t  *has;

    for (i = 0; i < f->n_forms; i++) {
        has = &f->forms[i];

        if (has->kind == form->kind && has->bare >= form->bare
            && llm_str_eq(has->open, form->open)
            && llm_str_eq(has->begin, form->begin)
            && llm_str_eq(has->name_end, form->name_end)
            && llm_str_eq(has->key, form->key))
        {
            return;
        }
    }

    if (f->n_forms < LLM_FORMAT_FORMS) {
        f->forms[f->n_forms++] = *form;
    }
}


/*
 * gpt-oss, the harmony format: each message has a channel, and a call is a
 * message to a function.  The model writes the recipient after the channel,
 * the template before it.
 */

static void
llm_family_harmony(llm_format_t *f)
{
    f->harmony = 1;
    f->n_reasoning = 1;
    f->reasoning[0].open = llm_str("<|channel|>analysis<|message|>");
    f->reasoning[0].close = llm_str("<|end|>");
    f->reasoning[0].ending = llm_str("<|end|><|start|>assistant"
                                     "<|channel|>final<|message|>");

    f->n_content = 3;
    f->content[0] = llm_str("<|channel|>final<|message|>");
    f->content[1] = llm_str("<|channel|>commentary<|message|>");
    f->content[2] = llm_str("<|channel|>final\001<|message|>");

    f->n_content_end = 2;
    f->content_end[0] = llm_str("<|end|>");
    f->content_end[1] = llm_str("<|return|>");

    f->n_skipped = 1;
    f->skipped[0] = llm_str("<|start|>assistant");

    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .begin = S("<|channel|>commentary to=functions."),
                    .name_end = S("\001<|message|>"),
                    .any = S("<|constrain|>"),
                    .end = S("<|call|>"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .begin = S("<|channel|>analysis to=functions."),
                    .name_end = S("\001<|message|>"),
                    .any = S("<|constrain|>"),
                    .end = S("<|call|>"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .begin = S("to=functions."),
                    .name_end = S("<|channel|>\001<|message|>"),
                    .end = S("<|call|>"));
}


int
llm_chat_family(llm_format_t *f, llm_str_t src)
{
    if (llm_family_has(src, "<|channel|>") && llm_family_has(src, "<|message|>")
        && llm_family_has(src, "analysis"))
    {
        llm_family_harmony(f);
        return 1;
    }

    return 0;
}


void
llm_chat_family_reasoning(llm_format_t *f, llm_str_t src)
{
    size_t  i;

    static const llm_pair_t  pairs[] = {
        { S("<think>"), S("</think>"), S("") },
        { S("<thinking>"), S("</thinking>"), S("") },
        { S("<thought>"), S("</thought>"), S("") },
        { S("<reasoning>"), S("</reasoning>"), S("") },
        { S("<seed:think>"), S("</seed:think>"), S("") },
        { S("[THINK]"), S("[/THINK]"), S("") },
        { S("<|START_THINKING|>"), S("<|END_THINKING|>"), S("") },
        { S("<|inner_prefix|>"), S("<|inner_suffix|>"), S("") },
        { S("<|begin_of_thought|>"), S("<|end_of_thought|>"), S("") },
        { S("<|channel>thought"), S("<channel|>"), S("") },
        { S("\342\227\201think\342\226\267"),
          S("\342\227\201/think\342\226\267"), S("") },
        { S("Here are my reasoning steps:"),
          S("[BEGIN FINAL RESPONSE]"), S("") }
    };

    /* the end mark alone is enough: the model may write the begin itself */

    for (i = 0; i < llm_nelems(pairs); i++) {
        if (llm_family_has(src, pairs[i].close.data)) {
            llm_chat_add_pair(f, pairs[i].open, pairs[i].close);
        }
    }
}


static void
llm_family_hermes(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .begin = S("<tool_call>"),
                    .end = S("</tool_call>"));
}


static void
llm_family_qwen_coder(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_PARAMS,
                    .begin = S("<tool_call>\n<function="),
                    .name_end = S(">"), .key = S("<parameter="),
                    .key_end = S(">"), .value_end = S("</parameter>"),
                    .end = S("</function>\n</tool_call>"),
                    .value_lead = S("\n"), .value_tail = S("\n"));
}


static void
llm_family_deepseek(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .open = S("<｜tool▁calls▁begin｜>"),
                    .close = S("<｜tool▁calls▁end｜>"),
                    .begin = S("<｜tool▁call▁begin｜>function<｜tool▁sep｜>"),
                    .name_end = S("\n```json\n"),
                    .end = S("```<｜tool▁call▁end｜>"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .open = S("<｜tool▁calls▁begin｜>"),
                    .close = S("<｜tool▁calls▁end｜>"),
                    .begin = S("<｜tool▁call▁begin｜>"),
                    .name_end = S("<｜tool▁sep｜>"),
                    .end = S("<｜tool▁call▁end｜>"));
}


static void
llm_family_kimi(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .open = S("<|tool_calls_section_begin|>"),
                    .close = S("<|tool_calls_section_end|>"),
                    .begin = S("<|tool_call_begin|>functions."),
                    .name_end = S(":\001<|tool_call_argument_begin|>"),
                    .end = S("<|tool_call_end|>"));
}


/* variants that the models write now and then: ids without the name's space or
   number, and the section's mark without its s */

static void
llm_family_kimi_near(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .open = S("<|tool_calls_section_begin|>"),
                    .close = S("<|tool_calls_section_end|>"),
                    .begin = S("<|tool_call_begin|>"),
                    .name_end = S("\001<|tool_call_argument_begin|>"),
                    .end = S("<|tool_call_end|>"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED,
                    .open = S("<|tool_call_section_begin|>"),
                    .close = S("<|tool_call_section_end|>"),
                    .begin = S("<|tool_call_begin|>"),
                    .name_end = S("\001<|tool_call_argument_begin|>"),
                    .end = S("<|tool_call_end|>"));
}


static void
llm_family_mistral(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .begin = S("[TOOL_CALLS]"),
                    .list = 1);
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED, .begin = S("[TOOL_CALLS]"),
                    .name_end = S("[ARGS]"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED, .begin = S("[TOOL_CALLS]"),
                    .name_end = S("[CALL_ID]\001[ARGS]"));
}


/* Llama: JSON, with or without the tag, and calls in Python's manner */

static void
llm_family_llama(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .bare = 1,
                    .begin = S("<|python_tag|>"), .between = S(";"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_PYTHON, .begin = S("<|python_tag|>"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_PYTHON, .bare = 1);
}


static void
llm_family_functionary(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_NAMED, .begin = S("<function="),
                    .name_end = S(">"), .end = S("</function>"));
}


static void
llm_family_lfm(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_PYTHON,
                    .begin = S("<|tool_call_start|>"),
                    .end = S("<|tool_call_end|>"));
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT,
                    .begin = S("<|tool_call_start|>"),
                    .end = S("<|tool_call_end|>"));
}


/* Granite's list has no end mark, Phi's has one */

static void
llm_family_granite(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .begin = S("<|tool_call|>"),
                    .end = S("<|/tool_call|>"), .list = 1);
}


static void
llm_family_cohere(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .begin = S("<|START_ACTION|>"),
                    .end = S("<|END_ACTION|>"), .list = 1);
}


static void
llm_family_cohere_plus(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .begin = S("Action:\n```json"),
                    .end = S("```"), .list = 1);
}


static void
llm_family_minimax(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_PARAMS,
                    .open = S("<minimax:tool_call>"),
                    .close = S("</minimax:tool_call>"),
                    .begin = S("<invoke name=\""), .name_end = S("\">"),
                    .key = S("<parameter name=\""), .key_end = S("\">"),
                    .value_end = S("</parameter>"), .end = S("</invoke>"));
}


static void
llm_family_glm(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_PARAMS, .begin = S("<tool_call>"),
                    .key = S("<arg_key>"),
                    .key_end = S("</arg_key>\n<arg_value>"),
                    .value_end = S("</arg_value>"), .end = S("</tool_call>"));
}


static void
llm_family_functools(llm_format_t *f)
{
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .begin = S("functools"),
                    .list = 1);
}


void
llm_chat_family_told(llm_format_t *f)
{
    llm_family_hermes(f);
}


/* forms that a model may use that was trained for none of the known ones */

static void
llm_family_any(llm_format_t *f)
{
    llm_family_hermes(f);
    llm_family_lfm(f);
    llm_family_granite(f);
    llm_family_functionary(f);
    LLM_FAMILY_FORM(.kind = LLM_FORM_OBJECT, .bare = 1);
}


void
llm_chat_family_calls(llm_format_t *f, llm_str_t src)
{
    size_t    i;
    uint32_t  n;

    /* forms added in any case, also to those that the template shows, because
       models of several generations have the same marks */

    static const struct {
        const char  *word;
        int          always;
        void       (*add)(llm_format_t *f);
    } families[] = {
        { "<arg_key>", 0, llm_family_glm },
        { "<function=", 0, llm_family_functionary },
        { "<parameter=", 0, llm_family_qwen_coder },
        { "minimax:tool_call", 0, llm_family_minimax },
        { "<tool_call>", 1, llm_family_hermes },
        { "<｜tool▁call▁begin｜>", 0, llm_family_deepseek },
        { "<|tool_call_begin|>", 0, llm_family_kimi },
        { "<|tool_calls_section_begin|>", 1, llm_family_kimi_near },
        { "[TOOL_CALLS]", 1, llm_family_mistral },
        { "<|python_tag|>", 1, llm_family_llama },
        { "ipython", 1, llm_family_llama },
        { "<|START_ACTION|>", 0, llm_family_cohere },
        { "Action: ```json", 0, llm_family_cohere_plus },
        { "<|tool_call|>", 0, llm_family_granite },
        { "<|tool_list_start|>", 0, llm_family_lfm },
        { "functools", 0, llm_family_functools }
    };

    n = f->n_forms;

    for (i = 0; i < llm_nelems(families); i++) {
        if ((n == 0 || families[i].always)
            && llm_family_has(src, families[i].word))
        {
            families[i].add(f);
        }
    }

    if (f->n_forms == 0) {
        llm_family_any(f);
    }
}
