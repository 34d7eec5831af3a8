// Normalisation of channels over the batch, and of groups of channels. Long channels are read piece by piece, each piece
// again for its squares while it is in the nearest cache; short ones lie beside each other in vectors.
#include "channels.hpp"

#include "rows.hpp"

namespace mortice::ISA {
namespace {

// Functions worth a call of their own.
#define WHOLE static __attribute__((noinline))

// ---- statistics of long channels ----

constexpr int64_t PIECE = 4096;  // elements whose mean and squares are joined to those before

struct Moments {
    double count = 0, mean = 0, squares = 0;

    // Join the moments of other elements (Chan, Golub and LeVeque's formula).
    void join(double n, double m, double s) {
        const double all = count + n, apart = m - mean;
        mean += apart * (n / all);
        squares += s + apart * apart * (count * n / all);
        count = all;
    }
};

// Two sums over rows, `stride` apart, that together are about a block: `of(element number, left, first, second)` adds to both.
template <class T, class F>
INLINE void sums_over_rows(int64_t rows, int64_t stride, int64_t length, double &first, double &second, F &&of) {
    constexpr int L = LANES<T>;
    vec<T> a{}, b{}, c{}, d{};
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = r * stride;
        int64_t i = 0;
        for (; i + 2 * L <= length; i += 2 * L) {
            of(at + i, L, a, b);
            of(at + i + L, L, c, d);
        }
        if (i + L <= length) {
            of(at + i, L, a, b);
            i += L;
        }
        if (i < length) of(at + i, length - i, c, d);
    }
    first += total<T>(a + c);
    second += total<T>(b + d);
}

// Join the moments of rows, taken about a number near their mean; it moves to the mean so far.
template <class T> WHOLE void join_rows(const T *x, int64_t rows, int64_t stride, int64_t length, T &about, Moments &all) {
    const vec<T> center = splat(about);
    double sum = 0, squares = 0;
    sums_over_rows<T>(rows, stride, length, sum, squares, [&](int64_t i, int64_t left, vec<T> &a, vec<T> &b) {
        const vec<T> v = get(x + i, left, about) - center;
        a += v;
        b = fma(v, v, b);
    });
    const double count = static_cast<double>(rows * length), own = squares - sum * sum / count;
    all.join(count, static_cast<double>(about) + sum / count, own > 0 || own != own ? own : 0);
    about = static_cast<T>(all.mean);
}

template <class T> WHOLE void piece_moments(const T *x, int64_t n, Moments &all) {
    const double mean = sum_along<T>(n, [&](int64_t i, int64_t left) { return get(x + i, left); }) / static_cast<double>(n);
    const T about = static_cast<T>(mean);
    const double squares = sum_along<T>(n, [&](int64_t i, int64_t left) {
        const vec<T> v = get(x + i, left, about) - splat(about);
        return v * v;
    });
    all.join(static_cast<double>(n), mean, squares);
}

// out = (x - mean) * scale + bias
template <class T> WHOLE void affine_row(const T *x, T *out, int64_t n, T mean, T scale, T bias) {
    const vec<T> m = splat(mean), s = splat(scale), b = splat(bias);
    along<T>(n, [&](int64_t i, int64_t left) { put(out + i, fma(get(x + i, left) - m, s, b), left); });
}
// What takes gradients back: out = (g - level + (x - mean) * tilt) * slope. The level, g's mean, is taken off first, so that
// what cancels does so exactly.
template <class T> struct Pull {
    T mean, level, tilt, slope;
};
template <class T> WHOLE void pull_row(const T *g, const T *x, T *out, int64_t n, Pull<T> p) {
    const vec<T> mean = splat(p.mean), level = splat(p.level), tilt = splat(p.tilt), slope = splat(p.slope);
    along<T>(n, [&](int64_t i, int64_t left) {
        put(out + i, fma(get(x + i, left) - mean, tilt, get(g + i, left) - level) * slope, left);
    });
}
// The gradient times the weight: g is multiplied first.
template <class T> WHOLE void pull_row(const T *g, T weight, const T *x, T *out, int64_t n, Pull<T> p) {
    const vec<T> mean = splat(p.mean), level = splat(p.level), tilt = splat(p.tilt), slope = splat(p.slope), w = splat(weight);
    along<T>(n, [&](int64_t i, int64_t left) {
        put(out + i, fma(get(x + i, left) - mean, tilt, get(g + i, left) * w - level) * slope, left);
    });
}
template <class T> WHOLE void pull_sums(const T *g, const T *x, int64_t n, T mean, double &sum, double &with_x) {
    const vec<T> m = splat(mean);
    sums_along<T>(n, sum, with_x, [&](int64_t i, int64_t left, vec<T> &a, vec<T> &b) {
        const vec<T> v = get(g + i, left);
        a += v;
        b = fma(v, get(x + i, left) - m, b);
    });
}

// ---- long channels: a few beside each other at once, so that memory is read in long runs ----

constexpr int64_t RUN_BYTES = 1 << 15;
constexpr int64_t MOST_TOGETHER = 64;

template <class T> INLINE int64_t together(int64_t length) {
    const int64_t n = RUN_BYTES / (length * static_cast<int64_t>(sizeof(T)));
    return n < 1 ? 1 : n < MOST_TOGETHER ? n : MOST_TOGETHER;
}

// Call f(channel, offset, rows, length) for blocks of at most about PIECE elements that cover the channels once.
template <class F> INLINE void over_blocks(ChannelShape s, int64_t c0, int64_t count, F &&f) {
    const int64_t each = PIECE / s.length + 1, stride = s.channels * s.length;
    for (int64_t n = 0; n < s.samples; n += each) {
        const int64_t rows = s.samples - n < each ? s.samples - n : each;
        for (int64_t c = 0; c < count; c++)
            for (int64_t i = 0; i < s.length; i += PIECE)
                f(c, n * stride + (c0 + c) * s.length + i, rows, s.length - i < PIECE ? s.length - i : PIECE);
    }
}

template <class T>
WHOLE void forward_long(const T *x, const T *weight, const T *bias, T *out, T *mean, T *var, ChannelShape s, int64_t c0,
                         int64_t count, double eps) {
    const int64_t stride = s.channels * s.length;
    Moments moments[MOST_TOGETHER];
    T about[MOST_TOGETHER], scale[MOST_TOGETHER];
    for (int64_t c = 0; c < count; c++) {
        const int64_t n = s.length < PIECE ? s.length : PIECE;
        const T *first = x + (c0 + c) * s.length;
        about[c] = static_cast<T>(sum_along<T>(n, [&](int64_t i, int64_t left) { return get(first + i, left); }) /
                                  static_cast<double>(n));
    }
    over_blocks(s, c0, count, [&](int64_t c, int64_t at, int64_t rows, int64_t length) {
        join_rows(x + at, rows, stride, length, about[c], moments[c]);
    });
    for (int64_t c = 0; c < count; c++) {
        const double spread = moments[c].squares / moments[c].count;
        mean[c0 + c] = about[c];
        var[c0 + c] = static_cast<T>(spread);
        scale[c] = static_cast<T>((weight ? static_cast<double>(weight[c0 + c]) : 1.0) / sqrt(spread + eps));
    }
    // Backwards, since what was read last is nearest.
    for (int64_t n = s.samples - 1; n >= 0; n--)
        for (int64_t c = 0; c < count; c++) {
            const int64_t at = n * stride + (c0 + c) * s.length;
            affine_row(x + at, out + at, s.length, about[c], scale[c], bias ? bias[c0 + c] : T(0));
        }
}

template <class T> WHOLE Pull<T> pull_of(T mean, double rstd, double weight, double level, double with_x) {
    return {mean, static_cast<T>(level), static_cast<T>(-rstd * rstd * with_x), static_cast<T>(weight * rstd)};
}

template <class T>
WHOLE void backward_long(const T *g, const T *x, const T *weight, const T *mean, const T *var, T *d_x, T *d_weight, T *d_bias,
                          ChannelShape s, int64_t c0, int64_t count, double eps) {
    const int64_t stride = s.channels * s.length;
    double sums[MOST_TOGETHER] = {}, with_x[MOST_TOGETHER] = {};
    over_blocks(s, c0, count, [&](int64_t c, int64_t at, int64_t rows, int64_t length) {
        const vec<T> m = splat(mean[c0 + c]);
        sums_over_rows<T>(rows, stride, length, sums[c], with_x[c], [&](int64_t i, int64_t left, vec<T> &a, vec<T> &b) {
            const vec<T> v = get(g + at + i, left);
            a += v;
            b = fma(v, get(x + at + i, left) - m, b);
        });
    });
    Pull<T> pull[MOST_TOGETHER];
    const double all = static_cast<double>(s.samples * s.length);
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = c0 + i;
        const double rstd = 1 / sqrt(static_cast<double>(var[c]) + eps);
        if (d_weight) d_weight[c] = static_cast<T>(with_x[i] * rstd);
        if (d_bias) d_bias[c] = static_cast<T>(sums[i]);
        pull[i] = pull_of(mean[c], rstd, weight ? static_cast<double>(weight[c]) : 1.0, sums[i] / all, with_x[i] / all);
    }
    for (int64_t n = s.samples - 1; d_x && n >= 0; n--)
        for (int64_t c = 0; c < count; c++) {
            const int64_t at = n * stride + (c0 + c) * s.length;
            pull_row(g + at, x + at, d_x + at, s.length, pull[c]);
        }
}

// ---- short channels: strips of as many whole channels as fit ----

template <class T> INLINE T folded(const T *sums, int64_t channel, int64_t length) {
    T all = 0;
    for (int64_t i = 0; i < length; i++) all += sums[channel * length + i];
    return all;
}
template <class T> INLINE void spread_out(T *strip, int64_t channel, int64_t length, T value) {
    for (int64_t i = 0; i < length; i++) strip[channel * length + i] = value;
}

template <class T>
WHOLE void forward_strip(const T *x, const T *weight, const T *bias, T *out, T *mean, T *var, ChannelShape s, int64_t c0,
                          int64_t channels, double eps) {
    const int64_t stride = s.channels * s.length, at = c0 * s.length, width = channels * s.length;
    const double count = static_cast<double>(s.samples * s.length);
    Strip<T> sums, means, scales, shifts;
    column_sums<T>(s.samples, width, sums.at, [&](int64_t n, int64_t j, int64_t left) { return get(x + at + n * stride + j, left); });
    for (int64_t c = 0; c < channels; c++) {
        mean[c0 + c] = static_cast<T>(static_cast<double>(folded(sums.at, c, s.length)) / count);
        spread_out(means.at, c, s.length, mean[c0 + c]);
    }
    column_sums<T>(s.samples, width, sums.at, [&](int64_t n, int64_t j, int64_t left) {
        const vec<T> v = get(x + at + n * stride + j, left) - get(means.at + j, left);
        return v * v;
    });
    for (int64_t c = 0; c < channels; c++) {
        const double spread = static_cast<double>(folded(sums.at, c, s.length)) / count;
        var[c0 + c] = static_cast<T>(spread);
        const double scale = (weight ? static_cast<double>(weight[c0 + c]) : 1.0) / sqrt(spread + eps);
        spread_out(scales.at, c, s.length, static_cast<T>(scale));
        spread_out(shifts.at, c, s.length, bias ? bias[c0 + c] : T(0));
    }
    for (int64_t n = 0; n < s.samples; n++) {
        const T *from = x + at + n * stride;
        T *to = out + at + n * stride;
        along<T>(width, [&](int64_t j, int64_t left) {
            put(to + j, fma(get(from + j, left) - get(means.at + j, left), get(scales.at + j, left), get(shifts.at + j, left)),
                left);
        });
    }
}

template <class T>
WHOLE void backward_strip(const T *g, const T *x, const T *weight, const T *mean, const T *var, T *d_x, T *d_weight, T *d_bias,
                           ChannelShape s, int64_t c0, int64_t channels, double eps) {
    const int64_t stride = s.channels * s.length, at = c0 * s.length, width = channels * s.length;
    const double count = static_cast<double>(s.samples * s.length);
    Strip<T> sums, products, means, slopes;
    for (int64_t c = 0; c < channels; c++) spread_out(means.at, c, s.length, mean[c0 + c]);
    column_sums<T>(s.samples, width, sums.at, [&](int64_t n, int64_t j, int64_t left) { return get(g + at + n * stride + j, left); });
    column_sums<T>(s.samples, width, products.at, [&](int64_t n, int64_t j, int64_t left) {
        const int64_t i = at + n * stride + j;
        return get(g + i, left) * (get(x + i, left) - get(means.at + j, left));
    });
    for (int64_t c = 0; c < channels; c++) {
        const double sum = static_cast<double>(folded(sums.at, c, s.length)),
                     with_x = static_cast<double>(folded(products.at, c, s.length)),
                     rstd = 1 / sqrt(static_cast<double>(var[c0 + c]) + eps),
                     slope = weight ? static_cast<double>(weight[c0 + c]) * rstd : rstd;
        if (d_weight) d_weight[c0 + c] = static_cast<T>(with_x * rstd);
        if (d_bias) d_bias[c0 + c] = static_cast<T>(sum);
        spread_out(slopes.at, c, s.length, static_cast<T>(slope));
        spread_out(products.at, c, s.length, static_cast<T>(-rstd * rstd * with_x / count));
        spread_out(sums.at, c, s.length, static_cast<T>(sum / count));
    }
    if (!d_x) return;
    for (int64_t n = 0; n < s.samples; n++) {
        const int64_t row = at + n * stride;
        along<T>(width, [&](int64_t j, int64_t left) {
            const vec<T> centred = get(x + row + j, left) - get(means.at + j, left);
            const vec<T> level = get(g + row + j, left) - get(sums.at + j, left);
            put(d_x + row + j, fma(centred, get(products.at + j, left), level) * get(slopes.at + j, left), left);
        });
    }
}

// Call f(first, count) for channels c0 to c1, `each` at once.
template <class F> INLINE void over_channels(int64_t each, int64_t c0, int64_t c1, F &&f) {
    for (int64_t c = c0; c < c1; c += each) f(c, c1 - c < each ? c1 - c : each);
}

// ---- the kernels ----

template <class T>
void forward(const T *x, const T *weight, const T *bias, T *out, T *mean, T *var, ChannelShape s, int64_t c0, int64_t c1,
             double eps) {
    if (s.length >= SHORT_CHANNEL)
        over_channels(together<T>(s.length), c0, c1, [&](int64_t c, int64_t count) {
            forward_long(x, weight, bias, out, mean, var, s, c, count, eps);
        });
    else
        over_channels(STRIP / s.length, c0, c1, [&](int64_t c, int64_t count) {
            forward_strip(x, weight, bias, out, mean, var, s, c, count, eps);
        });
}

template <class T>
void backward(const T *g, const T *x, const T *weight, const T *mean, const T *var, T *d_x, T *d_weight, T *d_bias,
              ChannelShape s, int64_t c0, int64_t c1, double eps) {
    if (s.length >= SHORT_CHANNEL)
        over_channels(together<T>(s.length), c0, c1, [&](int64_t c, int64_t count) {
            backward_long(g, x, weight, mean, var, d_x, d_weight, d_bias, s, c, count, eps);
        });
    else
        over_channels(STRIP / s.length, c0, c1, [&](int64_t c, int64_t count) {
            backward_strip(g, x, weight, mean, var, d_x, d_weight, d_bias, s, c, count, eps);
        });
}

template <class T>
void apply(const T *x, const T *mean, const T *scale, const T *bias, T *out, ChannelShape s, int64_t r0, int64_t r1) {
    for (int64_t r = r0; r < r1; r++) {
        const int64_t c = r % s.channels;
        affine_row(x + r * s.length, out + r * s.length, s.length, mean ? mean[c] : T(0), scale[c], bias ? bias[c] : T(0));
    }
}

template <class T>
void apply_columns(const T *x, const T *mean, const T *scale, const T *bias, T *out, ChannelShape s, int64_t n0, int64_t n1) {
    for (int64_t n = n0; n < n1; n++) {
        const T *from = x + n * s.channels;
        T *to = out + n * s.channels;
        along<T>(s.channels, [&](int64_t j, int64_t left) {
            vec<T> v = get(from + j, left);
            if (mean) v -= get(mean + j, left);
            v *= get(scale + j, left);
            put(to + j, bias ? v + get(bias + j, left) : v, left);
        });
    }
}

template <class T>
void group_forward(const T *x, const T *weight, const T *bias, T *out, T *mean, T *rstd, ChannelShape s, int64_t each,
                   int64_t r0, int64_t r1, double eps) {
    const int64_t row = each * s.length, groups = s.channels / each;
    for (int64_t r = r0; r < r1; r++) {
        Moments m;
        for (int64_t i = 0; i < row; i += PIECE) piece_moments(x + r * row + i, row - i < PIECE ? row - i : PIECE, m);
        mean[r] = static_cast<T>(m.mean);
        rstd[r] = static_cast<T>(1 / sqrt(m.squares / m.count + eps));
        const int64_t c = r % groups * each;
        for (int64_t i = 0; i < each; i++) {
            const int64_t at = r * row + i * s.length;
            affine_row(x + at, out + at, s.length, mean[r], weight ? rstd[r] * weight[c + i] : rstd[r],
                       bias ? bias[c + i] : T(0));
        }
    }
}

template <class T>
void group_backward(const T *g, const T *x, const T *weight, const T *mean, const T *rstd, T *d_x, T *sums, T *products,
                    ChannelShape s, int64_t each, int64_t r0, int64_t r1) {
    const int64_t row = each * s.length, groups = s.channels / each;
    const double count = static_cast<double>(row);
    for (int64_t r = r0; r < r1; r++) {
        const int64_t c = r % groups * each;
        double all = 0, all_with_x = 0;
        for (int64_t i = 0; i < each; i++) {
            const int64_t at = r * row + i * s.length;
            double sum = 0, with_x = 0;
            pull_sums(g + at, x + at, s.length, mean[r], sum, with_x);
            if (sums) sums[r * each + i] = static_cast<T>(sum);
            if (products) products[r * each + i] = static_cast<T>(with_x);
            const double w = weight ? static_cast<double>(weight[c + i]) : 1.0;
            all += w * sum;
            all_with_x += w * with_x;
        }
        if (!d_x) continue;
        const double slope = static_cast<double>(rstd[r]);
        const Pull<T> pull{mean[r], static_cast<T>(all / count), static_cast<T>(-slope * slope * all_with_x / count), rstd[r]};
        for (int64_t i = 0; i < each; i++) {
            const int64_t at = r * row + i * s.length;
            if (weight)
                pull_row(g + at, weight[c + i], x + at, d_x + at, s.length, pull);
            else
                pull_row(g + at, x + at, d_x + at, s.length, pull);
        }
    }
}

template <class T> constexpr ChannelKernels<T> KERNELS = {
    forward<T>, backward<T>, apply<T>, apply_columns<T>, group_forward<T>, MORTICE_UP_TO_AVX2(group_backward<T>),  // without it 15 % faster
};

}  // namespace

const ChannelTable channel_kernels_table = {KERNELS<float>, MORTICE_UP_TO_AVX2(KERNELS<double>)};

}  // namespace mortice::ISA
