/*
 * Activations on the device: llm_glu_t's functions of one value.
 */

#ifndef LLM_CUDA_VALUES_H
#define LLM_CUDA_VALUES_H

#include "kernels/cuda/internal.h"


static __device__ __forceinline__ float
llm_xielu(const float *p, float x)
{
    return x > 0.0f
           ? p[0] * x * x + p[2] * x
           : p[1] * (expm1f(fminf(x, p[3])) - x) + p[2] * x;
}


static __device__ __forceinline__ float
llm_act_one(const llm_act_fn_t &fn, float x)
{
    float  t;

    switch (fn.kind) {

    case LLM_GLU_SILU:
        return x / (1.0f + expf(-x));

    case LLM_GLU_GELU:
        t = 0.7978845608028654f * (x + 0.044715f * x * x * x);
        return 0.5f * x * (1.0f + tanhf(t));

    case LLM_GLU_GELU_ERF:
        return 0.5f * x * (1.0f + erff(x * 0.7071067811865476f));

    case LLM_GLU_RELU2:
        return x > 0.0f ? x * x : 0.0f * x;

    case LLM_GLU_XIELU:
        return llm_xielu(fn.xielu, x);

    case LLM_GLU_CLAMPED:
        x = x > 7.0f ? 7.0f : x;
        return x / (1.0f + expf(-1.702f * x));

    case LLM_GLU_SIGMOID:
        return 1.0f / (1.0f + expf(-x));

    case LLM_GLU_LINEAR:
        return x;

    case LLM_GLU_BOUND:
        return x > fn.bound ? fn.bound : x < fn.least ? fn.least : x;

    case LLM_GLU_QUICK:
        return x / (1.0f + expf(-1.702f * x));
    }

    return 0.0f;
}


/* act(gate) * up; an activation without a gate passes its input as gate, and 1
   as up */

static __device__ __forceinline__ float
llm_glu_one(const llm_act_fn_t &fn, float gate, float up)
{
    if (fn.kind == LLM_GLU_CLAMPED) {
        up = (up > 7.0f ? 7.0f : up < -7.0f ? -7.0f : up) + 1.0f;
    }

    return llm_act_one(fn, gate) * up;
}

#endif /* LLM_CUDA_VALUES_H */
