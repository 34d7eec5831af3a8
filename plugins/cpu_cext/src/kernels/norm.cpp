// Normalisation of contiguous rows: by mean and deviation, or by the root mean square. A row is read again for each step
// while it is in the nearest cache, so variances are those of two passes.
#include "norm.hpp"

#include "rows.hpp"
#include "vmath.hpp"

namespace mortice::ISA {
namespace {

template <class T, bool CENTRED> INLINE void statistics(const T *x, int64_t n, double eps, T &mean, T &rstd) {
    const double count = n ? static_cast<double>(n) : 1;
    mean = 0;
    if constexpr (CENTRED)
        mean = static_cast<T>(sum_along<T>(n, [&](int64_t i, int64_t left) { return get(x + i, left); }) / count);
    const vec<T> m = splat(mean);
    const T about = mean;  // lanes that are not there are no further away than this
    const double squares = sum_along<T>(n, [&](int64_t i, int64_t left) {
        const vec<T> v = get(x + i, left, about) - m;
        return v * v;
    });
    rstd = static_cast<T>(1 / sqrt(squares / count + eps));
}

// out = (x - mean) * rstd [* weight] [+ bias]
template <class T> INLINE void affine(const T *x, const T *weight, const T *bias, T *out, int64_t n, T mean, T rstd) {
    const vec<T> m = splat(mean), s = splat(rstd);
    if (weight && bias)
        along<T>(n, [&](int64_t i, int64_t left) {
            put(out + i, fma((get(x + i, left) - m) * s, get(weight + i, left), get(bias + i, left)), left);
        });
    else if (weight)
        along<T>(n, [&](int64_t i, int64_t left) { put(out + i, (get(x + i, left) - m) * s * get(weight + i, left), left); });
    else if (bias)
        along<T>(n, [&](int64_t i, int64_t left) { put(out + i, fma(get(x + i, left) - m, s, get(bias + i, left)), left); });
    else
        along<T>(n, [&](int64_t i, int64_t left) { put(out + i, (get(x + i, left) - m) * s, left); });
}

template <class T, bool CENTRED>
void forward(const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd, int64_t r0, int64_t r1, int64_t n,
             int64_t groups, double eps) {
    for (int64_t r = r0; r < r1; r++) {
        T m, s;
        statistics<T, CENTRED>(x + r * n, n, eps, m, s);
        if (CENTRED) mean[r] = m;
        rstd[r] = s;
        const int64_t group = r % groups * n;
        if (out) affine(x + r * n, weight ? weight + group : nullptr, bias ? bias + group : nullptr, out + r * n, n, m, s);
    }
}

template <class T, bool CENTRED, bool WEIGHTED>
INLINE void backward_row(const T *g, const T *x, const T *weight, T *out, int64_t n, T mean, T rstd) {
    const vec<T> m = splat(mean);
    const auto pulled = [&](int64_t i, int64_t left) {
        const vec<T> v = get(g + i, left);
        return WEIGHTED ? v * get(weight + i, left) : v;
    };
    const vec<T> s = splat(rstd);
    const auto normal = [&](int64_t i, int64_t left) {
        const vec<T> v = get(x + i, left);
        return (CENTRED ? v - m : v) * s;
    };
    double sum = 0, with_normal = 0;
    sums_along<T>(n, sum, with_normal, [&](int64_t i, int64_t left, vec<T> &a, vec<T> &b) {
        const vec<T> v = pulled(i, left);
        a += v;
        b += v * normal(i, left);
    });
    // In the order of the default body, each step rounded: in short rows nearly all cancels.
    const double count = static_cast<double>(n);
    const vec<T> level = splat(CENTRED ? static_cast<T>(sum / count) : T(0)), tilt = splat(static_cast<T>(with_normal / count));
    along<T>(n, [&](int64_t i, int64_t left) {
        put(out + i, (pulled(i, left) - level - normal(i, left) * tilt) * s, left);
    });
}

template <class T, bool CENTRED>
void backward(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *out, int64_t r0, int64_t r1,
              int64_t n, int64_t groups) {
    for (int64_t r = r0; r < r1; r++) {
        const T m = CENTRED ? mean[r] : T(0);
        const int64_t at = r * n;
        if (weight)
            backward_row<T, CENTRED, true>(g + at, x + at, weight + r % groups * n, out + at, n, m, rstd[r]);
        else
            backward_row<T, CENTRED, false>(g + at, x + at, nullptr, out + at, n, m, rstd[r]);
    }
}

constexpr int64_t TOGETHER = 8;  // rows summed in registers before they are added to what is in memory

// Rows `groups` apart share weights: those from r on that are below `end`, at most TOGETHER.
template <class T, bool CENTRED>
INLINE void weight_rows(const T *g, const T *x, const T *mean, const T *rstd, T *weight, T *bias, int64_t r, int64_t count,
                        int64_t n, int64_t groups) {
    along<T>(n, [&](int64_t i, int64_t left) {
        vec<T> w{}, b{};
        for (int64_t j = 0; j < count; j++) {
            const int64_t row = r + j * groups;
            const vec<T> v = get(g + row * n + i, left);
            b += v;
            if (!weight) continue;
            vec<T> c = get(x + row * n + i, left);
            if (CENTRED) c -= splat(mean[row]);
            w = fma(v, c * splat(rstd[row]), w);
        }
        if (weight) put(weight + i, get(weight + i, left) + w, left);
        if (bias) put(bias + i, get(bias + i, left) + b, left);
    });
}

template <class T, bool CENTRED>
void backward_weight(const T *g, const T *x, const T *mean, const T *rstd, T *weight, T *bias, int64_t r0, int64_t r1,
                     int64_t n, int64_t groups) {
    for (int64_t first = r0; first < r1; first += TOGETHER * groups)
        for (int64_t r = first; r < first + groups && r < r1; r++) {
            const int64_t all = (r1 - r + groups - 1) / groups, count = all < TOGETHER ? all : TOGETHER, at = r % groups * n;
            weight_rows<T, CENTRED>(g, x, mean, rstd, weight ? weight + at : nullptr, bias ? bias + at : nullptr, r, count, n,
                                    groups);
        }
}

template <class T> void add(T *to, const T *from, int64_t n) {
    along<T>(n, [&](int64_t i, int64_t left) { put(to + i, get(to + i, left) + get(from + i, left), left); });
}

template <class T> INLINE vec<T> size_of(vec<T> v) { return v < vec<T>{} ? -v : v; }
template <class T> double squares(const T *x, int64_t n) {
    return sum_along<T>(n, [&](int64_t i, int64_t left) {
        const vec<T> v = get(x + i, left);
        return v * v;
    });
}
template <class T> double sizes(const T *x, int64_t n) {
    return sum_along<T>(n, [&](int64_t i, int64_t left) { return size_of<T>(get(x + i, left)); });
}
template <class T> double largest_size(const T *x, int64_t n) {
    vec<T> top{}, odd{};
    along<T>(n, [&](int64_t i, int64_t left) {
        const vec<T> v = size_of<T>(get(x + i, left));
        top = vmax(top, v == v ? v : vec<T>{});
        odd = v == v ? odd : v;
    });
    const T nan = total<T>(odd);
    return static_cast<double>(nan == nan ? largest<T>(top) : nan);
}

enum Norm { SQUARES, SIZES, LARGEST };

template <Norm NORM, class V> INLINE V joined(V a, V b) {
    if constexpr (NORM == LARGEST) return (b > a) | (b != b) ? b : a;
    else return a + b;
}

template <class T, Norm NORM>
void distances(const T *x, const T *others, T *out, int64_t rows, int64_t n, int64_t width, int64_t step) {
    constexpr int64_t L = LANES<T>, V = 4, TOGETHER = 64;  // sums of so many are added up: roundings grow slowly
    for (int64_t r = 0; r < rows; r++, x += n, out += step) {
        vec<T> all[V] = {};
        for (int64_t low = 0; low < n; low += TOGETHER) {
            vec<T> part[V] = {};
            for (int64_t i = low; i < n && i < low + TOGETHER; i++)
#pragma GCC unroll 4
                for (int v = 0; v < V; v++) {
                    const vec<T> by = splat(x[i]) - load(others + (i * V + v) * L);
                    if constexpr (NORM == SQUARES) part[v] = fma(by, by, part[v]);
                    else part[v] = joined<NORM>(part[v], size_of<T>(by));
                }
#pragma GCC unroll 4
            for (int v = 0; v < V; v++) all[v] = joined<NORM>(all[v], part[v]);
        }
#pragma GCC unroll 4
        for (int v = 0; v < V; v++)
            if (v * L < width) put(out + v * L, NORM == SQUARES ? v_sqrt(all[v]) : all[v], width - v * L);
    }
}

template <class T, bool CENTRED>
constexpr RowNormKernels<T> ROWS = {forward<T, CENTRED>, backward<T, CENTRED>, backward_weight<T, CENTRED>};
template <class T> constexpr NormKernels<T> KERNELS = {ROWS<T, true>, ROWS<T, false>, add<T>, squares<T>, sizes<T>, largest_size<T>,
                                                        4 * LANES<T>, {distances<T, SQUARES>, distances<T, SIZES>, distances<T, LARGEST>}};

}  // namespace

const NormTable norm_kernels_table = {KERNELS<float>, KERNELS<double>};

}  // namespace mortice::ISA
