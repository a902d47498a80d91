/*
 * A tiny Whisper model, written as whisper.cpp's .bin file and as a folder of
 * Hugging Face's, and what it should compute, in double and as plain loops.
 */

#ifndef LLM_T_WHISPER_BUILD_H
#define LLM_T_WHISPER_BUILD_H

#include "engine/base/alphabet.h"
#include "engine/base/base.h"

#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#define W_VOCAB    51864                /* English: the smallest one */
#define W_TEXT     50256
#define W_CTX      40                   /* rows of the encoder */
#define W_FRAMES   (2 * W_CTX)
#define W_TEXT_CTX 32
#define W_EMBD     8
#define W_HEADS    2
#define W_HEAD     (W_EMBD / W_HEADS)
#define W_FF       (4 * W_EMBD)
#define W_MELS     6
#define W_AUDIO    2                    /* layers */
#define W_LAYERS   2
#define W_MAX      128                  /* tensors */

typedef struct {
    const char  *name;                  /* OpenAI's, owned */
    char        *hub;                   /* Hugging Face's, owned */
    uint32_t     n_dims;
    uint32_t     ne[3];                 /* rows first */
    size_t       n;
    float       *data;
} w_tensor_t;

typedef struct {
    w_tensor_t   t[W_MAX];
    size_t       n;
    uint64_t     seed;
} w_model_t;


static inline float
w_random(w_model_t *m)
{
    m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;

    return (float) ((double) (m->seed >> 40) / (1 << 24) - 0.5);
}


/* values around `mean`; n dimensions, rows first */

static inline void
w_add(w_model_t *m, const char *name, const char *hub, uint32_t n_dims,
    uint32_t a, uint32_t b, uint32_t c, float mean, float scale)
{
    size_t       i;
    w_tensor_t  *t = &m->t[m->n++];

    t->name = strdup(name);
    t->hub = strdup(hub);
    t->n_dims = n_dims;
    t->ne[0] = a;
    t->ne[1] = b;
    t->ne[2] = c;
    t->n = (size_t) a * b * c;
    t->data = malloc(t->n * sizeof(float));

    for (i = 0; i < t->n; i++) {
        t->data[i] = mean + scale * w_random(m);
    }
}


static inline void
w_add_norm(w_model_t *m, const char *name, const char *hub)
{
    char  a[160], b[160];

    snprintf(a, sizeof(a), "%s.weight", name);
    snprintf(b, sizeof(b), "%s.weight", hub);
    w_add(m, a, b, 1, W_EMBD, 1, 1, 1, 0.5f);
    snprintf(a, sizeof(a), "%s.bias", name);
    snprintf(b, sizeof(b), "%s.bias", hub);
    w_add(m, a, b, 1, W_EMBD, 1, 1, 0, 0.5f);
}


static inline void
w_add_matrix(w_model_t *m, const char *name, const char *hub, uint32_t in,
    uint32_t out, int bias)
{
    char  a[160], b[160];

    snprintf(a, sizeof(a), "%s.weight", name);
    snprintf(b, sizeof(b), "%s.weight", hub);
    w_add(m, a, b, 2, in, out, 1, 0, 2);

    if (bias) {
        snprintf(a, sizeof(a), "%s.bias", name);
        snprintf(b, sizeof(b), "%s.bias", hub);
        w_add(m, a, b, 1, out, 1, 1, 0, 0.5f);
    }
}


static inline void
w_add_attention(w_model_t *m, const char *name, const char *hub,
    const char *norm, const char *hub_norm)
{
    size_t  i;
    char    a[128], b[128];

    static const char  *const parts[4][2] = {
        { "query", "q_proj" }, { "key", "k_proj" }, { "value", "v_proj" },
        { "out", "out_proj" }
    };

    w_add_norm(m, norm, hub_norm);

    for (i = 0; i < 4; i++) {
        snprintf(a, sizeof(a), "%s.%s", name, parts[i][0]);
        snprintf(b, sizeof(b), "%s.%s", hub, parts[i][1]);
        w_add_matrix(m, a, b, W_EMBD, W_EMBD, i != 1);
    }
}


static inline void
w_add_layer(w_model_t *m, const char *side, uint32_t i, int cross)
{
    char  a[4][80], b[4][80];

    snprintf(a[0], 80, "%s.blocks.%u", side, i);
    snprintf(b[0], 80, "model.%s.layers.%u", side, i);

#define W_NAME(k, x, y)                                                      \
    snprintf(a[k], 80, "%.40s.%s", a[0], x);                                 \
    snprintf(b[k], 80, "%.40s.%s", b[0], y)

    W_NAME(1, "attn", "self_attn");
    W_NAME(2, "attn_ln", "self_attn_layer_norm");
    w_add_attention(m, a[1], b[1], a[2], b[2]);

    if (cross) {
        W_NAME(1, "cross_attn", "encoder_attn");
        W_NAME(2, "cross_attn_ln", "encoder_attn_layer_norm");
        w_add_attention(m, a[1], b[1], a[2], b[2]);
    }

    W_NAME(1, "mlp_ln", "final_layer_norm");
    w_add_norm(m, a[1], b[1]);
    W_NAME(1, "mlp.0", "fc1");
    w_add_matrix(m, a[1], b[1], W_EMBD, W_FF, 1);
    W_NAME(1, "mlp.2", "fc2");
    w_add_matrix(m, a[1], b[1], W_FF, W_EMBD, 1);
#undef W_NAME
}


static inline void
w_make(w_model_t *m, uint64_t seed)
{
    uint32_t  i;

    memset(m, 0, sizeof(*m));
    m->seed = seed;

    w_add(m, "encoder.positional_embedding",
          "model.encoder.embed_positions.weight", 2, W_EMBD, W_CTX, 1, 0, 1);
    w_add(m, "encoder.conv1.weight", "model.encoder.conv1.weight", 3, 3,
          W_MELS, W_EMBD, 0, 1);
    w_add(m, "encoder.conv1.bias", "model.encoder.conv1.bias", 1, W_EMBD, 1,
          1, 0, 0.5f);
    w_add(m, "encoder.conv2.weight", "model.encoder.conv2.weight", 3, 3,
          W_EMBD, W_EMBD, 0, 1);
    w_add(m, "encoder.conv2.bias", "model.encoder.conv2.bias", 1, W_EMBD, 1,
          1, 0, 0.5f);

    for (i = 0; i < W_AUDIO; i++) {
        w_add_layer(m, "encoder", i, 0);
    }

    w_add_norm(m, "encoder.ln_post", "model.encoder.layer_norm");
    w_add(m, "decoder.token_embedding.weight",
          "model.decoder.embed_tokens.weight", 2, W_EMBD, W_VOCAB, 1, 0, 2);
    w_add(m, "decoder.positional_embedding",
          "model.decoder.embed_positions.weight", 2, W_EMBD, W_TEXT_CTX, 1,
          0, 1);

    for (i = 0; i < W_LAYERS; i++) {
        w_add_layer(m, "decoder", i, 1);
    }

    w_add_norm(m, "decoder.ln", "model.decoder.layer_norm");
}


static inline void
w_free(w_model_t *m)
{
    size_t  i;

    for (i = 0; i < m->n; i++) {
        free((char *) m->t[i].name);
        free(m->t[i].hub);
        free(m->t[i].data);
    }
}


static const float *
w_find(const w_model_t *m, const char *name)
{
    size_t  i;

    for (i = 0; i < m->n; i++) {
        if (strcmp(m->t[i].name, name) == 0) {
            return m->t[i].data;
        }
    }

    return NULL;
}


/* ---- files ---- */

/* the raw bytes of an ordinary token; returns their number */

static inline size_t
w_token(uint32_t i, unsigned char *out)
{
    if (i < 256) {
        out[0] = (unsigned char) i;
        return 1;
    }

    i -= 256;
    out[0] = (unsigned char) ('a' + i % 26);
    out[1] = (unsigned char) ('a' + i / 26 % 26);
    out[2] = (unsigned char) ('a' + i / 676 % 26);
    out[3] = (unsigned char) ('a' + i / 17576);

    return i < 676 ? 2 : 4;
}


static void
w_i32(llm_buf_t *b, int32_t v)
{
    (void) llm_buf_add(b, &v, sizeof(v));
}


/* the head of a .bin file: sizes, filters, vocabulary */

static inline void
w_bin_head(llm_buf_t *b)
{
    uint32_t       i, n;
    unsigned char  text[4];

    static const int32_t  sizes[] = {
        0x67676d6c, W_VOCAB, W_CTX, W_EMBD, W_HEADS, W_AUDIO, W_TEXT_CTX,
        W_EMBD, W_HEADS, W_LAYERS, W_MELS, 0
    };

    (void) llm_buf_add(b, sizes, sizeof(sizes));
    w_i32(b, W_MELS);
    w_i32(b, 2);

    for (i = 0; i < W_MELS * 2; i++) {
        w_i32(b, 0);
    }

    w_i32(b, W_TEXT);

    for (i = 0; i < W_TEXT; i++) {
        n = (uint32_t) w_token(i, text);
        w_i32(b, (int32_t) n);
        (void) llm_buf_add(b, text, n);
    }
}


static inline void
w_bin_tensor(llm_buf_t *b, const w_tensor_t *t)
{
    uint32_t  k;

    w_i32(b, (int32_t) t->n_dims);
    w_i32(b, (int32_t) strlen(t->name));
    w_i32(b, 0);

    for (k = 0; k < t->n_dims; k++) {
        w_i32(b, (int32_t) t->ne[k]);
    }

    (void) llm_buf_adds(b, t->name);
    (void) llm_buf_add(b, t->data, t->n * sizeof(float));
}


static inline void
w_bin(llm_buf_t *b, const w_model_t *m)
{
    size_t  i;

    w_bin_head(b);

    for (i = 0; i < m->n; i++) {
        w_bin_tensor(b, &m->t[i]);
    }
}


static inline int
w_write(const char *path, const void *data, size_t len)
{
    int    rc;
    FILE  *f;

    f = fopen(path, "wb");

    if (f == NULL) {
        return 0;
    }

    rc = fwrite(data, 1, len, f) == len;

    return fclose(f) == 0 && rc;
}


/* a safetensors file of tensors from, ..., to - 1 */

static inline void
w_safetensors(llm_buf_t *b, const w_model_t *m, size_t from, size_t to)
{
    size_t      i, at;
    uint32_t    k;
    uint64_t    len;
    llm_buf_t   h;

    llm_buf_init(&h, 0);
    (void) llm_buf_adds(&h, "{\"__metadata__\":{\"format\":\"pt\"}");

    for (i = from, at = 0; i < to; i++) {
        (void) llm_buf_addf(&h, ",\"%s\":{\"dtype\":\"F32\",\"shape\":[",
                            m->t[i].hub);

        for (k = m->t[i].n_dims; k > 0; k--) {
            (void) llm_buf_addf(&h, "%u%s", m->t[i].ne[k - 1],
                                k > 1 ? "," : "");
        }

        (void) llm_buf_addf(&h, "],\"data_offsets\":[%zu,%zu]}", at,
                            at + m->t[i].n * sizeof(float));
        at += m->t[i].n * sizeof(float);
    }

    (void) llm_buf_adds(&h, "}");
    len = h.len;
    (void) llm_buf_add(b, &len, sizeof(len));
    (void) llm_buf_add(b, h.data, h.len);
    llm_buf_free(&h);

    for (i = from; i < to; i++) {
        (void) llm_buf_add(b, m->t[i].data, m->t[i].n * sizeof(float));
    }
}


static inline void
w_config(llm_buf_t *b)
{
    (void) llm_buf_addf(b, "{\"model_type\":\"whisper\",\"d_model\":%d,"
        "\"encoder_layers\":%d,\"encoder_attention_heads\":%d,"
        "\"decoder_layers\":%d,\"decoder_attention_heads\":%d,"
        "\"encoder_ffn_dim\":%d,\"decoder_ffn_dim\":%d,"
        "\"max_source_positions\":%d,\"max_target_positions\":%d,"
        "\"num_mel_bins\":%d,\"vocab_size\":%d,"
        "\"activation_function\":\"gelu\",\"dropout\":0.0,\"more\":[1,{\"a\":"
        "null}]}\n", W_EMBD, W_AUDIO, W_HEADS, W_LAYERS, W_HEADS, W_FF, W_FF,
        W_CTX, W_TEXT_CTX, W_MELS, W_VOCAB);
}


static inline void
w_vocab_json(llm_buf_t *b)
{
    char           text[16];
    size_t         k, n, len;
    uint32_t       i;
    unsigned char  raw[4];

    for (i = 0; i < W_TEXT; i++) {
        n = w_token(i, raw);
        (void) llm_buf_adds(b, i ? ",\"" : "{\"");

        for (k = 0; k < n; k++) {
            len = llm_byte_char(text, raw[k]);

            if (text[0] == '"' || text[0] == '\\') {
                (void) llm_buf_addc(b, '\\');
            }

            (void) llm_buf_add(b, text, len);
        }

        (void) llm_buf_addf(b, "\":%u", i);
    }

    (void) llm_buf_adds(b, ",\"<|endoftext|>\":50256}");
}


/* ---- the right answers ---- */

static inline void
w_norm(const w_model_t *m, const char *name, const double *x, double *y)
{
    int           i;
    char          s[128];
    double        mean, var;
    const float  *w, *b;

    snprintf(s, sizeof(s), "%s.weight", name);
    w = w_find(m, s);
    snprintf(s, sizeof(s), "%s.bias", name);
    b = w_find(m, s);

    for (i = 0, mean = 0; i < W_EMBD; i++) {
        mean += x[i] / W_EMBD;
    }

    for (i = 0, var = 0; i < W_EMBD; i++) {
        var += (x[i] - mean) * (x[i] - mean) / W_EMBD;
    }

    for (i = 0; i < W_EMBD; i++) {
        y[i] = (x[i] - mean) / sqrt(var + 1e-5) * (double) w[i]
               + (double) b[i];
    }
}


static inline void
w_product(const w_model_t *m, const char *name, int in, int out,
    const double *x, double *y)
{
    int           i, k;
    char          s[128];
    const float  *w, *b;

    snprintf(s, sizeof(s), "%s.weight", name);
    w = w_find(m, s);
    snprintf(s, sizeof(s), "%s.bias", name);
    b = w_find(m, s);

    for (i = 0; i < out; i++) {
        y[i] = b ? (double) b[i] : 0;

        for (k = 0; k < in; k++) {
            y[i] += (double) w[i * in + k] * x[k];
        }
    }
}


static inline double
w_gelu(double x)
{
    return x / 2 * (1 + erf(x / sqrt(2)));
}


/* attention of one row over n rows of k and v; weights [W_HEADS][n] or NULL */

static inline void
w_attend(const double *q, double (*k)[W_EMBD], double (*v)[W_EMBD], int n,
    double *out, double *weights)
{
    int     h, i, d;
    double  s[W_CTX], max, sum;

    for (h = 0; h < W_HEADS; h++) {
        for (i = 0, max = -INFINITY; i < n; i++) {
            for (d = 0, s[i] = 0; d < W_HEAD; d++) {
                s[i] += q[h * W_HEAD + d] * k[i][h * W_HEAD + d];
            }

            s[i] /= sqrt(W_HEAD);
            max = fmax(max, s[i]);
        }

        for (i = 0, sum = 0; i < n; i++) {
            s[i] = exp(s[i] - max);
            sum += s[i];
        }

        for (d = 0; d < W_HEAD; d++) {
            out[h * W_HEAD + d] = 0;
        }

        for (i = 0; i < n; i++) {
            for (d = 0; d < W_HEAD; d++) {
                out[h * W_HEAD + d] += s[i] / sum * v[i][h * W_HEAD + d];
            }

            if (weights) {
                weights[h * n + i] = s[i] / sum;
            }
        }
    }
}


static inline void
w_feed(const w_model_t *m, const char *layer, double *x)
{
    int     i;
    char    s[96];
    double  h[W_EMBD], f[W_FF], y[W_EMBD];

    snprintf(s, sizeof(s), "%s.mlp_ln", layer);
    w_norm(m, s, x, h);
    snprintf(s, sizeof(s), "%s.mlp.0", layer);
    w_product(m, s, W_EMBD, W_FF, h, f);

    for (i = 0; i < W_FF; i++) {
        f[i] = w_gelu(f[i]);
    }

    snprintf(s, sizeof(s), "%s.mlp.2", layer);
    w_product(m, s, W_FF, W_EMBD, f, y);

    for (i = 0; i < W_EMBD; i++) {
        x[i] += y[i];
    }
}


/* x += attention of all rows; causal or not; `to`: rows of k and v if these are
   given, as in cross-attention; weights [n][W_HEADS][W_CTX] or NULL */

static inline void
w_attention(const w_model_t *m, const char *layer, const char *what,
    double (*x)[W_EMBD], int n, int causal, double (*given)[W_EMBD], int to,
    double *weights)
{
    int            i, d;
    char           s[96], p[96];
    double         h[W_EMBD], o[W_EMBD], y[W_EMBD];
    static double  q[W_CTX][W_EMBD], k[W_CTX][W_EMBD], v[W_CTX][W_EMBD];

    for (i = 0; i < n; i++) {
        snprintf(s, sizeof(s), "%s.%s_ln", layer, what);
        w_norm(m, s, x[i], h);
        snprintf(p, sizeof(p), "%s.%s.query", layer, what);
        w_product(m, p, W_EMBD, W_EMBD, h, q[i]);

        if (given == NULL) {
            snprintf(p, sizeof(p), "%s.%s.key", layer, what);
            w_product(m, p, W_EMBD, W_EMBD, h, k[i]);
            snprintf(p, sizeof(p), "%s.%s.value", layer, what);
            w_product(m, p, W_EMBD, W_EMBD, h, v[i]);
        }
    }

    for (i = 0; given && i < to; i++) {
        snprintf(p, sizeof(p), "%s.%s.key", layer, what);
        w_product(m, p, W_EMBD, W_EMBD, given[i], k[i]);
        snprintf(p, sizeof(p), "%s.%s.value", layer, what);
        w_product(m, p, W_EMBD, W_EMBD, given[i], v[i]);
    }

    for (i = 0; i < n; i++) {
        w_attend(q[i], k, v, given ? to : causal ? i + 1 : n, o,
                 weights ? weights + (size_t) i * W_HEADS * to : NULL);
        snprintf(p, sizeof(p), "%s.%s.out", layer, what);
        w_product(m, p, W_EMBD, W_EMBD, o, y);

        for (d = 0; d < W_EMBD; d++) {
            x[i][d] += y[d];
        }
    }
}


/* a convolution, three wide; in [n][channels] */

static inline void
w_convolve(const w_model_t *m, const char *name, const double *in, int n,
    int channels, int stride, double (*out)[W_EMBD])
{
    int           t, o, c, k, at;
    char          s[96];
    double        sum;
    const float  *w, *b;

    snprintf(s, sizeof(s), "%s.weight", name);
    w = w_find(m, s);
    snprintf(s, sizeof(s), "%s.bias", name);
    b = w_find(m, s);

    for (t = 0; t < n / stride; t++) {
        for (o = 0; o < W_EMBD; o++) {
            sum = (double) b[o];

            for (c = 0; c < channels; c++) {
                for (k = 0; k < 3; k++) {
                    at = t * stride + k - 1;
                    sum += at < 0 || at >= n ? 0
                           : (double) w[(o * channels + c) * 3 + k]
                             * in[at * channels + c];
                }
            }

            out[t][o] = w_gelu(sum);
        }
    }
}


/* mel [W_MELS][W_FRAMES] */

static inline void
w_encode(const w_model_t *m, const float *mel, double (*out)[W_EMBD])
{
    int            i, d;
    char           layer[64];
    const float   *pos;
    double         x[W_CTX][W_EMBD];
    static double  in[W_FRAMES * W_MELS], mid[W_FRAMES][W_EMBD];

    for (i = 0; i < W_FRAMES; i++) {
        for (d = 0; d < W_MELS; d++) {
            in[i * W_MELS + d] = (double) mel[d * W_FRAMES + i];
        }
    }

    w_convolve(m, "encoder.conv1", in, W_FRAMES, W_MELS, 1, mid);
    w_convolve(m, "encoder.conv2", &mid[0][0], W_FRAMES, W_EMBD, 2, x);
    pos = w_find(m, "encoder.positional_embedding");

    for (i = 0; i < W_CTX; i++) {
        for (d = 0; d < W_EMBD; d++) {
            x[i][d] += (double) pos[i * W_EMBD + d];
        }
    }

    for (i = 0; i < W_AUDIO; i++) {
        snprintf(layer, sizeof(layer), "encoder.blocks.%d", i);
        w_attention(m, layer, "attn", x, W_CTX, 0, NULL, 0, NULL);

        for (d = 0; d < W_CTX; d++) {
            w_feed(m, layer, x[d]);
        }
    }

    for (i = 0; i < W_CTX; i++) {
        w_norm(m, "encoder.ln_post", x[i], out[i]);
    }
}


/* logits [n][W_VOCAB]; weights of cross-attention in the last layer, [n]
   [W_HEADS][W_CTX] */

static inline void
w_decode(const w_model_t *m, double (*states)[W_EMBD], const int32_t *ids,
    int n, double *logits, double *weights)
{
    int           i, d, t;
    char          layer[64];
    double        x[W_CTX][W_EMBD], h[W_EMBD], sum;
    const float  *pos, *embd;

    pos = w_find(m, "decoder.positional_embedding");
    embd = w_find(m, "decoder.token_embedding.weight");

    for (i = 0; i < n; i++) {
        for (d = 0; d < W_EMBD; d++) {
            x[i][d] = (double) embd[ids[i] * W_EMBD + d]
                      + (double) pos[i * W_EMBD + d];
        }
    }

    for (i = 0; i < W_LAYERS; i++) {
        snprintf(layer, sizeof(layer), "decoder.blocks.%d", i);
        w_attention(m, layer, "attn", x, n, 1, NULL, 0, NULL);
        w_attention(m, layer, "cross_attn", x, n, 0, states, W_CTX,
                    i == W_LAYERS - 1 ? weights : NULL);

        for (t = 0; t < n; t++) {
            w_feed(m, layer, x[t]);
        }
    }

    for (i = 0; i < n; i++) {
        w_norm(m, "decoder.ln", x[i], h);

        for (t = 0; t < W_VOCAB; t++) {
            for (d = 0, sum = 0; d < W_EMBD; d++) {
                sum += h[d] * (double) embd[t * W_EMBD + d];
            }

            logits[(size_t) i * W_VOCAB + t] = sum;
        }
    }
}

#endif /* LLM_T_WHISPER_BUILD_H */
