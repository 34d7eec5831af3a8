// Two by two tiles of sums, each of 16 rows and 16 columns, over tiles of 32 steps.
#include "tiles.hpp"

#include <immintrin.h>
#include <string.h>

#include "../isa.hpp"
#include "transpose.hpp"

#if defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mortice {

bool tiles_ready() {
#if defined(__linux__)
    static const bool ready = [] {
        unsigned a, b, c, d = 0;
        if (cpu_level() != LEVEL_AVX512 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
        constexpr unsigned BF16 = 1u << 22, TILE = 1u << 24;
        constexpr long ASK = 0x1023, TILE_DATA = 18;  // ARCH_REQ_XCOMP_PERM
        return (d & BF16) && (d & TILE) && syscall(SYS_arch_prctl, ASK, TILE_DATA) == 0;
    }();
    return ready;
#else
    return false;
#endif
}

void tiles_pack(TileSide s, int64_t k, bool rows, char *to) {
    alignas(64) uint32_t words[TILE_ROWS][16];
    const bool along = s.deep == 1;  // whether the elements of a vector lie side by side: it is a tile's row as it is
    for (int64_t l = 0; l < k; l += TILE_DEPTH, to += TILE_BYTES) {
        const int64_t depth = k - l < TILE_DEPTH ? k - l : TILE_DEPTH;
        const bhalf *from = s.data + l * s.deep;
        auto *at = along == rows ? reinterpret_cast<uint32_t(*)[16]>(to) : words;
        if (depth < TILE_DEPTH || s.count < TILE_ROWS) memset(at, 0, TILE_BYTES);
        if (along) {
            for (int64_t i = 0; i < s.count; i++, from += s.step) memcpy(at[i], from, 2 * static_cast<size_t>(depth));
        } else {
            for (int64_t p = 0; p < depth; p += 2, from += 2 * s.deep) {
                const bhalf *next = from + (p + 1 < depth ? s.deep : 0);
                const uint32_t high = p + 1 < depth ? 1u << 16 : 0;
                uint32_t *pair = at[p / 2];
                if (s.step == 1 && s.count == TILE_ROWS)
                    for (int i = 0; i < TILE_ROWS; i++) pair[i] = from[i].bits | next[i].bits * high;
                else
                    for (int64_t i = 0; i < s.count; i++) pair[i] = from[i * s.step].bits | next[i * s.step].bits * high;
            }
        }
        if (at == words) transpose().bytes4(to, 64, reinterpret_cast<const char *>(words), 64, 16, 16);
    }
}

// To the nearest, ties to even.
static inline void put(bhalf *to, const float *sums, const float *bias, __mmask16 used) {
    __m512 v = _mm512_loadu_ps(sums);
    if (bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(used, bias));
    const __m512i bits = _mm512_castps_si512(v), one = _mm512_set1_epi32(1);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), one);
    __m512i round = _mm512_srli_epi32(_mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd), 16);
    round = _mm512_mask_mov_epi32(round, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q),
                                  _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40)));
    _mm256_mask_storeu_epi16(to, used, _mm512_cvtepi32_epi16(round));
}

void tiles_multiply(int64_t m, int64_t n, int64_t k, const char *a, const char *b, const float *bias, bhalf *c, int64_t ldc) {
    struct alignas(64) Layout {
        uint8_t palette = 1, start = 0, zeros[14] = {};
        uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };
    static const Layout layout;
    _tile_loadconfig(&layout);
    const int64_t deep = (k + TILE_DEPTH - 1) / TILE_DEPTH, step = deep * TILE_BYTES;
    alignas(64) float sums[32][32];
    for (int64_t j = 0; j < n; j += 32, b += 2 * step) {
        // Of what is not there the first is taken, and dropped.
        const char *a0 = a, *a1 = m > 16 ? a + step : a, *b0 = b, *b1 = n - j > 16 ? b + step : b;
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
        for (int64_t l = 0; l < step; l += TILE_BYTES) {
            _tile_loadd(4, a0 + l, 64);
            _tile_loadd(6, b0 + l, 64);
            _tile_dpbf16ps(0, 4, 6);
            _tile_loadd(7, b1 + l, 64);
            _tile_dpbf16ps(1, 4, 7);
            _tile_loadd(5, a1 + l, 64);
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        _tile_stored(0, &sums[0][0], 128);
        _tile_stored(1, &sums[0][16], 128);
        _tile_stored(2, &sums[16][0], 128);
        _tile_stored(3, &sums[16][16], 128);
        for (int half = 0; half < 2; half++) {
            const int64_t from = j + 16 * half, left = n - from;
            if (left <= 0) break;
            const auto used = static_cast<__mmask16>(left >= 16 ? 0xffff : (1 << left) - 1);
            for (int64_t i = 0; i < m && i < 32; i++)
                put(c + i * ldc + from, &sums[i][16 * half], bias ? bias + from : nullptr, used);
        }
    }
    _tile_release();
}

}  // namespace mortice
