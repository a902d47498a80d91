/*
 * llama.cpp's encoder of images, timed, as the peer of t/bench/media.py.
 *
 * usage: tower MMPROJ WIDTH HEIGHT
 *
 * Prints the milliseconds of clip_image_encode() of an image of this size, of
 * whose runs the first is not counted.  Built beside a llama.cpp whose target
 * "mtmd" was built, without shared libraries, in its folder build:
 *
 *     g++ -O2 -std=c++17 -I$L/tools/mtmd -I$L/ggml/include -I$L/include \
 *         -o tower t/peer/tower.cpp $L/build/tools/mtmd/libmtmd.a \
 *         $L/build/src/libllama.a $L/build/ggml/src/libggml.a \
 *         $L/build/ggml/src/libggml-cpu.a $L/build/ggml/src/libggml-base.a \
 *         -lgomp -lpthread -ldl -lm
 *
 *     TOWER_PEER=./tower ./build.sh bench media qwen3-vl-2b-f16
 */

#include "clip.h"
#include "clip-impl.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>


int
main(int argc, char **argv)
{
    int                  i, width, height, threads;
    double               ms;
    size_t               k;
    clip_ctx            *clip;
    std::vector<float>   pixels, rows;
    clip_context_params  params = {};

    if (argc != 4) {
        fprintf(stderr, "usage: tower MMPROJ WIDTH HEIGHT\n");
        return 2;
    }

    width = atoi(argv[2]);
    height = atoi(argv[3]);
    threads = (int) std::thread::hardware_concurrency();

    params.flash_attn_type = CLIP_FLASH_ATTN_TYPE_AUTO;
    params.image_min_tokens = params.image_max_tokens = -1;
    clip = clip_init(argv[1], params).ctx_v;

    if (clip == NULL) {
        return 1;
    }

    pixels.resize((size_t) 3 * width * height);

    for (k = 0; k < pixels.size(); k++) {
        pixels[k] = (float) (k * 7919 % 255) / 127.5f - 1;
    }

    for (i = 0, ms = 0; i < 2; i++) {
        clip_image_f32  image;

        image.set_size({ width, height }, false, false);
        image.cpy_buf(pixels);
        rows.resize((size_t) clip_n_output_tokens(clip, &image)
                    * clip_n_mmproj_embd(clip));

        auto  begin = std::chrono::steady_clock::now();

        if (!clip_image_encode(clip, threads, &image, rows)) {
            return 1;
        }

        ms = std::chrono::duration<double, std::milli>(
                 std::chrono::steady_clock::now() - begin).count();
    }

    printf("%.3f\n", ms);

    return 0;
}
