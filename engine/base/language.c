/*
 * The table of languages; see language.h.
 */

#include "engine/base/language.h"

#include <string.h>
#include <strings.h>


static const llm_language_t  llm_languages[LLM_LANGUAGES] = {
    { "en", "english" },
    { "zh", "chinese" },
    { "de", "german" },
    { "es", "spanish" },
    { "ru", "russian" },
    { "ko", "korean" },
    { "fr", "french" },
    { "ja", "japanese" },
    { "pt", "portuguese" },
    { "tr", "turkish" },
    { "pl", "polish" },
    { "ca", "catalan" },
    { "nl", "dutch" },
    { "ar", "arabic" },
    { "sv", "swedish" },
    { "it", "italian" },
    { "id", "indonesian" },
    { "hi", "hindi" },
    { "fi", "finnish" },
    { "vi", "vietnamese" },
    { "he", "hebrew" },
    { "uk", "ukrainian" },
    { "el", "greek" },
    { "ms", "malay" },
    { "cs", "czech" },
    { "ro", "romanian" },
    { "da", "danish" },
    { "hu", "hungarian" },
    { "ta", "tamil" },
    { "no", "norwegian" },
    { "th", "thai" },
    { "ur", "urdu" },
    { "hr", "croatian" },
    { "bg", "bulgarian" },
    { "lt", "lithuanian" },
    { "la", "latin" },
    { "mi", "maori" },
    { "ml", "malayalam" },
    { "cy", "welsh" },
    { "sk", "slovak" },
    { "te", "telugu" },
    { "fa", "persian" },
    { "lv", "latvian" },
    { "bn", "bengali" },
    { "sr", "serbian" },
    { "az", "azerbaijani" },
    { "sl", "slovenian" },
    { "kn", "kannada" },
    { "et", "estonian" },
    { "mk", "macedonian" },
    { "br", "breton" },
    { "eu", "basque" },
    { "is", "icelandic" },
    { "hy", "armenian" },
    { "ne", "nepali" },
    { "mn", "mongolian" },
    { "bs", "bosnian" },
    { "kk", "kazakh" },
    { "sq", "albanian" },
    { "sw", "swahili" },
    { "gl", "galician" },
    { "mr", "marathi" },
    { "pa", "punjabi" },
    { "si", "sinhala" },
    { "km", "khmer" },
    { "sn", "shona" },
    { "yo", "yoruba" },
    { "so", "somali" },
    { "af", "afrikaans" },
    { "oc", "occitan" },
    { "ka", "georgian" },
    { "be", "belarusian" },
    { "tg", "tajik" },
    { "sd", "sindhi" },
    { "gu", "gujarati" },
    { "am", "amharic" },
    { "yi", "yiddish" },
    { "lo", "lao" },
    { "uz", "uzbek" },
    { "fo", "faroese" },
    { "ht", "haitian creole" },
    { "ps", "pashto" },
    { "tk", "turkmen" },
    { "nn", "nynorsk" },
    { "mt", "maltese" },
    { "sa", "sanskrit" },
    { "lb", "luxembourgish" },
    { "my", "myanmar" },
    { "bo", "tibetan" },
    { "tl", "tagalog" },
    { "mg", "malagasy" },
    { "as", "assamese" },
    { "tt", "tatar" },
    { "haw", "hawaiian" },
    { "ln", "lingala" },
    { "ha", "hausa" },
    { "ba", "bashkir" },
    { "jw", "javanese" },
    { "su", "sundanese" },
    { "yue", "cantonese" }
};

/* further names, and codes that others use; each with the code above */
static const llm_language_t  llm_language_others[] = {
    { "my", "burmese" },
    { "ca", "valencian" },
    { "nl", "flemish" },
    { "ht", "haitian" },
    { "lb", "letzeburgesch" },
    { "ps", "pushto" },
    { "pa", "panjabi" },
    { "ro", "moldavian" },
    { "ro", "moldovan" },
    { "si", "sinhalese" },
    { "es", "castilian" },
    { "zh", "mandarin" },
    { "jw", "jv" },
    { "he", "iw" },
    { "no", "nb" },
    { "tl", "fil" }
};


const llm_language_t *
llm_language(size_t i)
{
    return &llm_languages[i];
}


static int
llm_language_is(const char *name, const char *text, size_t len)
{
    return strlen(name) == len && strncasecmp(name, text, len) == 0;
}


int
llm_language_find(const char *text, size_t len)
{
    size_t                 i;
    const llm_language_t  *o;

    for (i = 0; i < LLM_LANGUAGES; i++) {
        if (llm_language_is(llm_languages[i].code, text, len)
            || llm_language_is(llm_languages[i].name, text, len))
        {
            return (int) i;
        }
    }

    for (i = 0; i < sizeof(llm_language_others) / sizeof(*o); i++) {
        o = &llm_language_others[i];

        if (llm_language_is(o->name, text, len)) {
            return llm_language_find(o->code, strlen(o->code));
        }
    }

    return -1;
}
