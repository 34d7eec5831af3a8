// What a Fourier transform does before and after: from lines in memory to lines side by side, and back.
#include "fft.hpp"
#include "simd.hpp"

namespace mortice::ISA {

template <class T> static void split(const T *pairs, int64_t n, T *__restrict re, T *__restrict im) {
    for (int64_t i = 0; i < n; i++) re[i] = pairs[2 * i], im[i] = pairs[2 * i + 1];
}
template <class T> static void join(const T *re, const T *im, int64_t n, T *__restrict pairs) {
    for (int64_t i = 0; i < n; i++) pairs[2 * i] = re[i], pairs[2 * i + 1] = im[i];
}
template <class T> static void deal(const T *rows, int64_t many, int64_t points, T *__restrict re, T *__restrict im) {
    if (many == 1) return split(rows, points, re, im);
    for (int64_t i = 0; i < points; i++, rows += 2 * many, re += many, im += many)
        for (int64_t b = 0; b < many; b++) re[b] = rows[b], im[b] = rows[many + b];
}
template <class T> static void collect(const T *re, const T *im, int64_t many, int64_t points, T scale, T *__restrict rows) {
    for (int64_t i = 0; i < points; i++, rows += 2 * many, re += many, im += many)
        for (int64_t b = 0; b < many; b++) rows[b] = re[b] * scale, rows[many + b] = im[b] * scale;
}
template <class T>
static void unfold(const T *re, const T *im, int64_t here, int64_t there, int64_t many, T c, T s, T half, T *__restrict row) {
    for (int64_t b = 0; b < many; b++) {
        const T pr = re[here + b], pi = im[here + b], qr = re[there + b], qi = im[there + b];
        const T odd_re = pi + qi, odd_im = qr - pr;
        row[b] = (pr + qr + c * odd_re - s * odd_im) * half;
        row[many + b] = (pi - qi + c * odd_im + s * odd_re) * half;
    }
}
template <class T>
static void fold(const T *x, const T *y, int64_t many, T c, T s, bool first, T *__restrict re, T *__restrict im) {
    for (int64_t b = 0; b < many; b++) {
        const T xr = x[b], yr = y[b], xi = first ? T(0) : x[many + b], yi = first ? T(0) : -y[many + b];
        const T dr = xr - yr, di = xi - yi;
        re[b] = xr + yr - di * c + dr * s;
        im[b] = xi + yi + dr * c + di * s;
    }
}

template <class T> static constexpr FFTLines<T> lines = {deal<T>, collect<T>, split<T>, join<T>, unfold<T>, fold<T>};

extern const FFTLinesTable fft_lines_table;
const FFTLinesTable fft_lines_table = {lines<float>, lines<double>};

}  // namespace mortice::ISA
