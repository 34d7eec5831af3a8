// What a Fourier transform does before and after: from lines in memory to lines side by side, and back.
#include "fft.hpp"
#include "squares.hpp"

namespace mortice::ISA {

template <class T> static void split(const T *pairs, int64_t n, T *__restrict re, T *__restrict im) {
    for (int64_t i = 0; i < n; i++) re[i] = pairs[2 * i], im[i] = pairs[2 * i + 1];
}
template <class T> static void join(const T *re, const T *im, int64_t n, T scale, T *__restrict pairs) {
    for (int64_t i = 0; i < n; i++) pairs[2 * i] = re[i] * scale, pairs[2 * i + 1] = im[i] * scale;
}
template <class T> static void reflect(const T *pairs, int64_t n, int64_t step, T *__restrict to) {
    for (int64_t i = 0; i < n; i++) to[2 * i] = pairs[i * step], to[2 * i + 1] = -pairs[i * step + 1];
}

// square(first line, first of its numbers) where both are enough, one(line, point) for the others.
template <class T, class Square, class One> INLINE void by_squares(int64_t many, int64_t points, Square square, One one) {
    constexpr int64_t SIDE = 32 / sizeof(T);
    const int64_t lines = many / SIDE * SIDE, numbers = 2 * points / SIDE * SIDE;
    for (int64_t b = 0; b < lines; b += SIDE)
        for (int64_t i = 0; i < numbers; i += SIDE) square(b, i);
    for (int64_t b = 0; b < many; b++)
        for (int64_t i = b < lines ? numbers / 2 : 0; i < points; i++) one(b, i);
}
template <class T> using Bits = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class T>
static void take(const T *lines, int64_t apart, int64_t many, int64_t points, T *__restrict re, T *__restrict im) {
    using Turned = Square<Bits<T>>;
    by_squares<T>(
        many, points,
        [=](int64_t b, int64_t i) {
            typename Turned::Row rows[Turned::SIDE];
#pragma GCC unroll 8
            for (int k = 0; k < Turned::SIDE; k++) __builtin_memcpy(&rows[k], lines + (b + k) * apart + i, 32);
            Turned::turn(rows);
#pragma GCC unroll 8
            for (int k = 0; k < Turned::SIDE; k++) __builtin_memcpy((k % 2 ? im : re) + (i + k) / 2 * many + b, &rows[k], 32);
        },
        [=](int64_t b, int64_t i) {
            re[i * many + b] = lines[b * apart + 2 * i];
            im[i * many + b] = lines[b * apart + 2 * i + 1];
        });
}
template <class T>
static void put(const T *re, const T *im, int64_t many, int64_t points, T scale, T *__restrict lines, int64_t apart) {
    using Turned = Square<Bits<T>>;
    by_squares<T>(
        many, points,
        [=](int64_t b, int64_t i) {
            typename Turned::Row rows[Turned::SIDE];
#pragma GCC unroll 8
            for (int k = 0; k < Turned::SIDE; k++) {
                T v __attribute__((vector_size(32)));
                __builtin_memcpy(&v, (k % 2 ? im : re) + (i + k) / 2 * many + b, 32);
                v *= scale;
                __builtin_memcpy(&rows[k], &v, 32);
            }
            Turned::turn(rows);
#pragma GCC unroll 8
            for (int k = 0; k < Turned::SIDE; k++) __builtin_memcpy(lines + (b + k) * apart + i, &rows[k], 32);
        },
        [=](int64_t b, int64_t i) {
            lines[b * apart + 2 * i] = re[i * many + b] * scale;
            lines[b * apart + 2 * i + 1] = im[i * many + b] * scale;
        });
}
template <class T>
static void unfold(const T *x_re, const T *x_im, int64_t n, int64_t many, const T *c, const T *s, T half, T *__restrict re, T *__restrict im) {
    for (int64_t k = 0; k <= n; k++) {
        const int64_t here = (k < n ? k : 0) * many, there = (k ? n - k : 0) * many;
        const T *pr = x_re + here, *pi = x_im + here, *qr = x_re + there, *qi = x_im + there;
        for (int64_t b = 0; b < many; b++) {
            const T odd_re = pi[b] + qi[b], odd_im = qr[b] - pr[b];
            re[k * many + b] = (pr[b] + qr[b] + c[k] * odd_re - s[k] * odd_im) * half;
            im[k * many + b] = (pi[b] - qi[b] + c[k] * odd_im + s[k] * odd_re) * half;
        }
    }
}
template <class T>
static void fold(const T *x_re, const T *x_im, int64_t n, int64_t many, const T *c, const T *s, T *__restrict re, T *__restrict im) {
    for (int64_t k = 0; k < n; k++) {
        const T *xr = x_re + k * many, *xi = x_im + k * many, *yr = x_re + (n - k) * many, *yi = x_im + (n - k) * many;
        for (int64_t b = 0; b < many; b++) {
            const T dr = xr[b] - yr[b], di = xi[b] + yi[b];
            re[k * many + b] = xr[b] + yr[b] - di * c[k] + dr * s[k];
            im[k * many + b] = xi[b] - yi[b] + dr * c[k] + di * s[k];
        }
    }
}

template <class T> static constexpr FFTLines<T> lines = {take<T>, put<T>, split<T>, join<T>, reflect<T>, unfold<T>, fold<T>};

extern const FFTLinesTable fft_lines_table;
const FFTLinesTable fft_lines_table = {lines<float>, lines<double>};

}  // namespace mortice::ISA
