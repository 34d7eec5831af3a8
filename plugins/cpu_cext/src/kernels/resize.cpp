#include "resize.hpp"

#include "simd.hpp"

namespace mortice::ISA {

// Lanes at[i] - first of the two vectors at p.
#if defined(__AVX512F__)
#define HAS_PICK 1
INLINE vf pick(const float *p, const int32_t *at, int32_t first) {
    __m512i index = _mm512_sub_epi32(_mm512_loadu_si512(at), _mm512_set1_epi32(first));
    return (vf)_mm512_permutex2var_ps((__m512)load(p), index, (__m512)load(p + 16));
}
INLINE vd pick(const double *p, const int32_t *at, int32_t first) {
    __m512i index = _mm512_maskz_cvtepi32_epi64((__mmask8)-1, _mm256_sub_epi32(_mm256_loadu_si256((const __m256i *)at), _mm256_set1_epi32(first)));
    return (vd)_mm512_permutex2var_pd((__m512d)load(p), index, (__m512d)load(p + 8));
}
#endif

template <class T> static void row_along(const ResizePlan<T> &p, const T *from, T *out) {
    const ResizeAxis<T> &a = p.axis[2];
    if (!a.taps) {
        INDEPENDENT for (int64_t i = 0; i < a.count; i++) out[i] = from[i];
        return;
    }
    int64_t i = 0;
    for (; i < a.count;) {
#ifdef HAS_PICK
        constexpr int L = LANES<T>;
        if (i + L <= a.count && p.narrow[i / L]) {
            vec<T> sum = vec<T>{};
            for (int64_t t = 0; t < a.taps; t++) {
                const int32_t *at = a.at + t * a.count + i;
                int32_t first = at[0] < a.size - 2 * L ? at[0] : static_cast<int32_t>(a.size - 2 * L);
                sum = fma(load(a.weight + t * a.count + i), pick(from + first, at, first), sum);
            }
            store(out + i, sum);
            i += L;
            continue;
        }
#endif
        int64_t n = LANES<T> < a.count - i ? LANES<T> : a.count - i;
        for (int64_t j = i; j < i + n; j++) {
            T sum = T(0);
            for (int64_t t = 0; t < a.taps; t++) sum += a.weight[t * a.count + j] * from[a.at[t * a.count + j]];
            out[j] = sum;
        }
        i += n;
    }
}

// All rows of one slice of outputs.
template <class T> static void run(const ResizePlan<T> &p, T *room, int64_t task) {
    const ResizeAxis<T> &az = p.axis[0], &ay = p.axis[1], &ax = p.axis[2];
    int64_t z = task % az.count, plane = task / az.count, slices = az.taps ? az.taps : 1, rows = ay.taps ? ay.taps : 1;
    const T *from = p.from + plane * az.size * ay.size * ax.size;
    T *out = p.out + task * ay.count * ax.count;
    for (int64_t y = 0; y < ay.count; y++, out += ax.count) {
        const T *row = nullptr;
        int64_t used = 0;
        for (int64_t i = 0; i < slices; i++) {
            int64_t iz = az.taps ? az.at[i * az.count + z] : z;
            T wz = az.taps ? az.weight[i * az.count + z] : T(1);
            for (int64_t j = 0; j < rows; j++) {
                int64_t iy = ay.taps ? ay.at[j * ay.count + y] : y;
                T w = wz * (ay.taps ? ay.weight[j * ay.count + y] : T(1));
                const T *own = from + (iz * ay.size + iy) * ax.size;
                if (slices * rows == 1 && w == T(1)) {
                    row = own;
                } else if (used++ == 0) {
                    INDEPENDENT for (int64_t x = 0; x < ax.size; x++) room[x] = w * own[x];
                    row = room;
                } else {
                    INDEPENDENT for (int64_t x = 0; x < ax.size; x++) room[x] += w * own[x];
                }
            }
        }
        row_along(p, row, out);
    }
}

template <class T> static void add(T *into, const T *from, int64_t n) {
    INDEPENDENT for (int64_t i = 0; i < n; i++) into[i] += from[i];
}

// Part of a row, of n <= 64 bytes: 64 as a constant is a few vectors.
INLINE void some_bytes(const int32_t *at, const int32_t *weight, int64_t taps, int64_t step, int bits, const uint8_t *from,
                              uint8_t *out, int64_t width, int64_t n) {
    int32_t sums[64];
    for (int64_t j = 0; j < n; j++) sums[j] = 1 << (bits - 1);
    for (int64_t t = 0; t < taps; t++) {
        const uint8_t *row = from + at[t * step] * width;
        int32_t w = weight[t * step];
        for (int64_t j = 0; j < n; j++) sums[j] += w * row[j];
    }
    for (int64_t j = 0; j < n; j++) {
        int32_t sum = sums[j] >> bits;
        out[j] = static_cast<uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
    }
}

static void bytes(const int32_t *at, const int32_t *weight, int64_t taps, int64_t step, int bits, const uint8_t *from, uint8_t *out,
                  int64_t width) {
    if (width < 64) return some_bytes(at, weight, taps, step, bits, from, out, width, width);
    for (int64_t x = 0; x < width; x += 64) {
        int64_t start = x + 64 <= width ? x : width - 64;
        some_bytes(at, weight, taps, step, bits, from + start, out + start, width, 64);
    }
}

template <class T> static constexpr ResizeSet<T> SET = {LANES<T>, run<T>, add<T>};

extern const ResizeTable resize_table;
const ResizeTable resize_table = {SET<float>, SET<double>, bytes};

}  // namespace mortice::ISA
