/*
 * GPT-2's alphabet of bytes; see alphabet.h.  Bytes that are printable in
 * Latin-1 stand for themselves; characters from U+0100 on stand for 0 to 0x20,
 * 0x7f to 0xa0, and 0xad.
 */

#include "engine/base/alphabet.h"
#include "engine/base/utf8.h"


static int
llm_byte_is_self(uint32_t c)
{
    return (c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xac)
           || (c >= 0xae && c <= 0xff);
}


int
llm_char_byte(uint32_t cp)
{
    if (cp < 0x100) {
        return llm_byte_is_self(cp) ? (int) cp : -1;
    }

    cp -= 0x100;

    if (cp <= 0x20) {
        return (int) cp;
    }

    if (cp <= 0x20 + 0x22) {
        return (int) (0x7f + cp - 0x21);
    }

    return cp == 0x43 ? 0xad : -1;
}


size_t
llm_byte_char(char *out, unsigned char byte)
{
    uint32_t  cp;

    if (llm_byte_is_self(byte)) {
        cp = byte;

    } else if (byte <= 0x20) {
        cp = 0x100u + byte;

    } else {
        cp = byte == 0xad ? 0x143 : 0x100u + 0x21 + byte - 0x7f;
    }

    return llm_utf8_encode(out, cp);
}
