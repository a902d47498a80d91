/*
 * The table of pre-tokenizers: names that GGUF files use and the regular
 * expressions of the models' tokenizer.json, in the order in which these files
 * apply them.
 *
 * In the terms of PCRE2: \s is spelled out, since PCRE2 counts U+180E as white
 * space and Unicode no longer does; a script is sc:, since a bare name means
 * its extensions as well; classes with an intersection are written as the
 * complement of what they lack.
 */

#include "engine/text/vocab/pretok.h"

/* for classes: Unicode's White_Space; newlines; and variants */
#define S        "\\t-\\r\\x{85}\\p{Z}"
#define NL       "\\r\\n"
#define LN       "\\p{L}\\p{N}"

#define SPACE    "[" S "]"
#define BLANKS   SPACE "+(?![^" S "])|" SPACE "+"
#define LINES    SPACE "*[" NL "]+"
#define SHORT    "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define PREFIX   "[^" NL LN "]?"

#define GPT2     "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+" \
                 "| ?[^" S LN "]+|" BLANKS

/* cl100k and its derivatives, which differ only in how numbers are cut */
#define CL100K(digits) \
    SHORT "|" PREFIX "\\p{L}+|" digits "| ?[^" S LN "]+[" NL "]*|" LINES "|" \
    BLANKS

/* o200k: two kinds of words, so that camelCase is cut */
#define UPPER    "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define LOWER    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define O200K(upper, lower, tail, digits, newlines) \
    PREFIX upper "*" lower "+" tail "|" PREFIX upper "+" lower "*" tail "|" \
    digits "| ?[^" S LN "]+[" newlines "]*|" LINES "|" BLANKS

/* UPPER and LOWER without Han */
#define NO_LETTER     "\\p{C}\\p{N}\\p{P}\\p{S}\\p{Z}"
#define NO_HAN_UPPER  "[^\\p{sc:Han}\\p{Ll}" NO_LETTER "]"
#define NO_HAN_LOWER  "[^\\p{sc:Han}\\p{Lu}\\p{Lt}" NO_LETTER "]"

#define HAN_KANA "\\x{4e00}-\\x{9fa5}\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}"
#define EAST     "\\x{800}-\\x{9fa5}\\x{ac00}-\\x{d7ff}"

/* deepseek-v3 and its derivatives, after numbers and Han */
#define DEEPSEEK(punct) \
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+" \
    "|[^" NL "\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+" punct \
    "|" BLANKS

/* deepseek-llm's list of cased letters */
#define CASED \
    "A-Za-z\\x{b5}\\x{c0}-\\x{d6}\\x{d8}-\\x{f6}\\x{f8}-\\x{1ba}" \
    "\\x{1bc}-\\x{1bf}\\x{1c4}-\\x{293}\\x{295}-\\x{2af}\\x{370}-\\x{373}" \
    "\\x{376}\\x{377}\\x{37b}-\\x{37d}\\x{37f}\\x{386}\\x{388}-\\x{38a}" \
    "\\x{38c}\\x{38e}-\\x{3a1}\\x{3a3}-\\x{3f5}\\x{3f7}-\\x{481}" \
    "\\x{48a}-\\x{52f}\\x{531}-\\x{556}\\x{10a0}-\\x{10c5}" \
    "\\x{13a0}-\\x{13f5}\\x{13f8}-\\x{13fd}\\x{1c90}-\\x{1cba}" \
    "\\x{1cbd}-\\x{1cbf}\\x{1d00}-\\x{1d2b}\\x{1d6b}-\\x{1d77}" \
    "\\x{1d79}-\\x{1d9a}\\x{1e00}-\\x{1f15}\\x{1f18}-\\x{1f1d}" \
    "\\x{1f20}-\\x{1f45}\\x{1f48}-\\x{1f4d}\\x{1f50}-\\x{1f57}\\x{1f59}" \
    "\\x{1f5b}\\x{1f5d}\\x{1f5f}-\\x{1f7d}\\x{1f80}-\\x{1fb4}" \
    "\\x{1fb6}-\\x{1fbc}\\x{1fbe}\\x{1fc2}-\\x{1fc4}\\x{1fc6}-\\x{1fcc}" \
    "\\x{1fd0}-\\x{1fd3}\\x{1fd6}-\\x{1fdb}\\x{1fe0}-\\x{1fec}" \
    "\\x{1ff2}-\\x{1ff4}\\x{1ff6}-\\x{1ffc}\\x{2102}\\x{2107}" \
    "\\x{210a}-\\x{2113}\\x{2115}\\x{2119}-\\x{211d}\\x{2124}\\x{2126}" \
    "\\x{2128}\\x{212a}-\\x{212d}\\x{212f}-\\x{2134}\\x{2139}" \
    "\\x{213c}-\\x{213f}\\x{2145}-\\x{2149}\\x{214e}\\x{2183}\\x{2184}" \
    "\\x{2c00}-\\x{2c7b}\\x{2c7e}-\\x{2ce4}\\x{2ceb}-\\x{2cee}\\x{2cf2}" \
    "\\x{2cf3}\\x{a640}-\\x{a66d}\\x{a680}-\\x{a69b}\\x{a722}-\\x{a76f}" \
    "\\x{a771}-\\x{a787}\\x{a78b}-\\x{a78e}\\x{ab70}-\\x{abbf}" \
    "\\x{fb00}-\\x{fb06}\\x{fb13}-\\x{fb17}\\x{ff21}-\\x{ff3a}" \
    "\\x{ff41}-\\x{ff5a}\\x{10400}-\\x{1044f}\\x{104b0}-\\x{104d3}" \
    "\\x{104d8}-\\x{104fb}\\x{10c80}-\\x{10cb2}\\x{10cc0}-\\x{10cf2}" \
    "\\x{118a0}-\\x{118df}\\x{1e900}-\\x{1e943}"

#define BLOOM \
    " ?[^(" S "|.,!?\\x{2026}\\x{3002}\\x{ff0c}\\x{3001}\\x{964}\\x{6d4}" \
    "\\x{60c})]+"


static const llm_pretok_row_t  llm_pretok_rows[] = {

    /* llama.cpp's rule for a model that names no pre-tokenizer; first, because
       it is the fallback */
    { "default", 0,
      { { "[\\p{P}$+<=>^~|]+", 0 }, { GPT2, 0 }, { "\\p{N}+", 0 },
        { "[0-9][0-9][0-9]", 0 } } },

    { "gpt-2 gpt2 phi-2 jina-es jina-de jina-v2-es jina-v2-de jina-v1-en "
      "jina-v2-code roberta-bpe gigachat a.x-4.0 mellum modern-bert mpt olmo "
      "jais trillion granite-docling exaone4", 0,
      { { GPT2, 0 } } },

    { "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 "
      "jina-v5-nano", LLM_PRETOK_MERGES|LLM_PRETOK_BOS,
      { { CL100K("\\p{N}{1,3}"), 0 } } },

    { "dbrx smaug-bpe chatglm-bpe", 0,
      { { CL100K("\\p{N}{1,3}"), 0 } } },

    { "glm4 glm5", LLM_PRETOK_MERGES,
      { { CL100K("\\p{N}{1,3}"), 0 } } },

    { "minicpm5", LLM_PRETOK_MERGES,
      { { "\\p{N}{1,3}", 0 }, { CL100K("\\p{N}+"), 0 } } },

    { "qwen2 deepseek-r1-qwen stablelm2 hunyuan megrez solar-open grok-2 "
      "kormo f2llmv2", 0,
      { { CL100K("\\p{N}"), 0 } } },

    { "laguna", 0,
      { { "[^\\n]+|\\n+", 0 }, { CL100K("\\p{N}"), 0 } } },

    { "ufakzeka", 0,
      { { PREFIX "\\p{L}+|\\p{N}| ?[^" S LN "]+[" NL "]*|" LINES "|" BLANKS,
          0 } } },

    { "qwen35", 0,
      { { SHORT "|" PREFIX "[\\p{L}\\p{M}]+|\\p{N}"
          "| ?[^" S LN "\\p{M}]+[" NL "]*|" LINES "|" BLANKS, 0 } } },

    /*
     * After a blank that ends a match the run has no more newlines: the
     * look-behind avoids searching long runs for one.
     */
    { "jais-2", 0,
      { { SHORT "|" PREFIX "\\p{L}+|\\p{N}{1,3}| ?[^" S LN "]+[" NL "]*|"
          "(?<![\\t\\x0b\\f\\x{85}\\p{Z}])" LINES "|"
          SPACE "{512}(?![^" S "])|" SPACE "{256}(?![^" S "])|"
          SPACE "{128}(?![^" S "])|" SPACE "{64}(?![^" S "])|"
          SPACE "{32}(?![^" S "])|" SPACE "{16}(?![^" S "])|"
          SPACE "{8}(?![^" S "])|" SPACE "{4}(?![^" S "])|"
          SPACE "{1,2}(?![^" S "])|" SPACE, 0 } } },

    { "bailingmoe bailingmoe2 llada-moe", 0,
      { { "'(?i:[sdmt]|ll|ve|re)|" PREFIX "\\p{L}+|\\p{N}"
          "| ?[^" S LN "]+[" NL "]*|" SPACE "*[" NL "]|" BLANKS, 0 } } },

    { "seed-coder", 0,
      { { SHORT "|" PREFIX "\\p{L}+|\\p{N}| ?[^" S LN NL "]+|" LINES "|"
          BLANKS, 0 } } },

    /* (?:L M*(?: L M*)*)+ without its nesting */
    { "exaone-moe", 0,
      { { SHORT "|" PREFIX "\\p{L}\\p{M}*+(?: ?\\p{L}\\p{M}*+)*+|\\p{N}"
          "| ?[^" S LN "]+[" NL "/]?|" SPACE "*[" NL "]|" BLANKS, 0 } } },

    { "starcoder refact command-r smollm codeshell exaone minerva-7b mellum2",
      0,
      { { "\\p{N}", 0 }, { GPT2, 0 } } },

    { "falcon", 0,
      { { "[\\p{P}$+<=>^~|`]+", 0 }, { GPT2, 0 },
        { "[0-9][0-9][0-9]", 0 } } },

    /*
     * U+3000 is also in the published class of punctuation; llama.cpp treats
     * it as white space only, and so do its ids.  The look-behind keeps the
     * last blanks of a piece from taking quadratic time.
     */
    { "deepseek-llm", 0,
      { { "[" NL "]", 0 },
        { SPACE "?[" CASED "]+", 0 },
        { SPACE "?[!-/:-~\\x{ff01}-\\x{ff0f}\\x{ff1a}-\\x{ff5e}"
          "\\x{2018}-\\x{201f}\\x{3001}\\x{3002}]+", 0 },
        { "(?<!" SPACE ")" SPACE "++\\z", 0 },
        { "[" EAST "]+", 0 },
        { "\\p{N}+", 0 } } },

    { "deepseek-coder", 0,
      { { "[" NL "]", 0 },
        { SPACE "?\\p{L}+", 0 },
        { SPACE "?\\p{P}+", 0 },
        { "[" EAST "]+", 0 },
        { "\\p{N}", 0 } } },

    { "deepseek-v3 hunyuan-dense joyai-llm hy_v4", 0,
      { { "\\p{N}{1,3}", 0 },
        { "[" HAN_KANA "]+", 0 },
        { DEEPSEEK("[" NL "]*|" LINES), 0 } } },

    { "spark2_5", 0,
      { { "\\p{N}{1,3}", 0 },
        { "[" HAN_KANA "]+", 0 },
        { DEEPSEEK("|[" NL "]"), 0 },
        { "\\p{N}", 0 } } },

    { "afmoe", 0,
      { { "\\p{Nd}+", 1 },
        { "[\\x{4e00}-\\x{9fff}\\x{3400}-\\x{4dbf}\\x{f900}-\\x{faff}"
          "\\x{3040}-\\x{309f}\\x{30a0}-\\x{30ff}\\x{ff65}-\\x{ff9f}"
          "\\x{2f00}-\\x{2fdf}\\x{e40}-\\x{e7f}\\x{e80}-\\x{eff}"
          "\\x{1780}-\\x{17ff}\\x{1000}-\\x{109f}\\x{aa60}-\\x{aa7f}"
          "\\x{a9e0}-\\x{a9ff}\\x{ac00}-\\x{d7af}\\x{1100}-\\x{11ff}]+", 0 },
        { DEEPSEEK("[" NL "]*|" LINES), 0 } } },

    { "youtu", LLM_PRETOK_MERGES,
      { { "[\\x{ac00}-\\x{d7a3}\\x{3131}-\\x{318e}]+"
          "|[\\x{ff01}\\x{2026}\\x{201c}\\x{201d}\\x{2018}\\x{2019}\\x{2014}"
          "\\x{ff1a}\\x{ff1b}\\x{ff0c}\\x{3001}-\\x{303f}"
          "\\x{fe30}-\\x{fe4f}]+|[\\x{3105}-\\x{312f}]+|[" HAN_KANA "]+", 0 },
        { O200K(UPPER, LOWER, SHORT "?", "\\p{N}", NL "/"), 0 } } },

    { "tekken", LLM_PRETOK_MERGES|LLM_PRETOK_BOS,
      { { O200K(UPPER, LOWER, "", "\\p{N}", NL "/"), 0 } } },

    { "gpt-4o llama4 kanana2 talkie minimax-m2", 0,
      { { O200K(UPPER, LOWER, SHORT "?", "\\p{N}{1,3}", NL "/"), 0 } } },

    { "granite-embed-multi-97m", LLM_PRETOK_MERGES,
      { { O200K(UPPER, LOWER, SHORT "?", "\\p{N}{1,3}", NL "/"), 0 } } },

    { "tiny_aya cohere2moe", 0,
      { { "(?<!\\p{Nd})\\p{Nd}++(?![\\p{L}\\p{N}\\p{Mn}\\p{Pc}])", 1 },
        { O200K(UPPER, LOWER, SHORT "?", "\\p{N}{1,3}", NL "/"), 0 } } },

    { "kimi-k2", 0,
      { { "\\p{sc:Han}+|" O200K(NO_HAN_UPPER, NO_HAN_LOWER, SHORT "?",
                             "\\p{N}{1,3}", NL), 0 } } },

    { "superbpe", 0,
      { { "\\p{N}+", 0 }, { "\\p{Nd}+", 1 } } },

    { "bloom poro-chat gpt3-finnish", 0,
      { { BLOOM, 0 } } },

    { "viking", 0,
      { { BLOOM, 0 }, { "\\p{N}", 0 } } },

    { "chameleon", LLM_PRETOK_BOS,
      { { "<sentinel:[0-9]+>", 0 },
        { "IMGIMG[A-I]{1,4}Z", 0 },
        { "[\\t\\n]|    |  ", 0 },
        { "\\p{N}", 0 },
        { "[\\p{P}!-/:-@\\[-`{-~]", 0 },
        { GPT2, 0 } } },

    { "gemma4 granite-embed-multi-311m", LLM_PRETOK_RAW|LLM_PRETOK_BOS,
      { { "[^\\n]+|\\n+", 0 } } },

    { "sarvam-moe", LLM_PRETOK_RAW,
      { { "[^\\n]+|\\n+", 0 } } }
};


const llm_pretok_row_t *
llm_pretok_find(llm_str_t name)
{
    size_t       i, len;
    const char  *p;

    for (i = 0; i < llm_nelems(llm_pretok_rows); i++) {

        for (p = llm_pretok_rows[i].names; *p; p += len + (p[len] == ' ')) {
            len = strcspn(p, " ");

            if (len == name.len && memcmp(p, name.data, len) == 0) {
                return &llm_pretok_rows[i];
            }
        }
    }

    return NULL;
}
