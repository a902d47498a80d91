/*
 * The table of kinds of media, and what this build reads of each; see decode.h.
 */

#include "engine/media/decoder/decode.h"


static const struct {
    uint32_t        kind;
    llm_decode_pt   decode;
    void          (*formats)(void);
} llm_kinds[] = {
    { LLM_MEDIA_IMAGE, llm_decode_image, llm_image_formats },
    { LLM_MEDIA_SOUND, llm_decode_sound, llm_sound_formats }
};


llm_decode_pt
llm_decode_find(uint32_t kind)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_kinds); i++) {
        if (llm_kinds[i].kind == kind) {
            return llm_kinds[i].decode;
        }
    }

    return NULL;
}


void
llm_decode_formats(void)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_kinds); i++) {
        llm_kinds[i].formats();
    }
}
