// Activations and their gradients: one read of each operand, one write. Numbers of an activation come as a, b and c.

#define ONE(name, formula)                                                          \
  struct name {                                                                     \
    template <class W> static __device__ __forceinline__ W of(W x, W a, W b, W c) { \
      return formula;                                                               \
    }                                                                               \
  };
#define TWO(name, formula)                                                               \
  struct name {                                                                          \
    template <class W> static __device__ __forceinline__ W of(W g, W x, W a, W b, W c) { \
      return formula;                                                                    \
    }                                                                                    \
  };

// exp(-x) overflows to infinity where the result is 0.
template <class W> __device__ __forceinline__ W sigmoid(W x) { return W(1) / (W(1) + exp(-x)); }
template <class W> __device__ __forceinline__ W logsigmoid(W x) {
  return (x < W(0) ? x : W(0)) - log1p(exp(-abs(x)));  // nan stays: the second term is nan too
}
template <class W> __device__ __forceinline__ W clipped(W x, W low, W high) {
  return x < low ? low : x > high ? high : x;
}
template <class W> __device__ __forceinline__ W below(W x) {  // the normal distribution function
  return W(0.5) * (W(1) + erf(x * W(0.70710678118654752)));
}
template <class W> __device__ __forceinline__ W density(W x) {
  return W(0.39894228040143268) * exp(W(-0.5) * x * x);
}
constexpr double kScale = 0.79788456080286536, kCubic = 0.044715;
template <class W> __device__ __forceinline__ W tanh_part(W x) {
  return tanh(W(kScale) * x * (W(1) + W(kCubic) * x * x));
}
template <class W> __device__ __forceinline__ W tanh_slope(W x) {
  W t = tanh_part(x);
  return W(0.5) * (W(1) + t + (W(1) - t * t) * x * W(kScale) * (W(1) + W(3 * kCubic) * x * x));
}
template <class W> __device__ __forceinline__ W silu_slope(W x) {
  W s = sigmoid(x);
  return s * (W(1) + x * (W(1) - s));
}
template <class W> __device__ __forceinline__ W mish_slope(W x) {
  W t = tanh(-logsigmoid(-x));
  return t + x * sigmoid(x) * (W(1) - t * t);
}

ONE(LeakyRelu, x > W(0) ? x : x * a)
ONE(Hardsigmoid, clipped(x + W(3), W(0), W(6)) / W(6))
ONE(Hardswish, x * clipped(x + W(3), W(0), W(6)) / W(6))
ONE(Elu, x > W(0) ? x * b : expm1((x < W(0) ? x : x * W(0)) * c) * (a * b))
ONE(Sigmoid, sigmoid(x))
ONE(Logsigmoid, logsigmoid(x))
ONE(Softplus, x *a > b ? x : -logsigmoid(-x * a) / a)
ONE(Mish, x *tanh(-logsigmoid(-x)))
ONE(Silu, x *sigmoid(x))
ONE(Gelu, x *below(x))
ONE(GeluTanh, x *W(0.5) * (W(1) + tanh_part(x)))

TWO(ReluGrad, x <= W(0) ? W(0) : g)
TWO(HardtanhGrad, a < x && x < b ? g : W(0))
TWO(LeakyReluGrad, x > W(0) ? g : g * a)
TWO(HardsigmoidGrad, W(-3) < x && x < W(3) ? g / W(6) : W(0))
TWO(HardswishGrad, x <= W(-3) ? W(0) : x < W(3) ? g * (x / W(3) + W(0.5)) : g)
TWO(EluGrad, g *(x <= W(0) ? exp(x * c) * (a * b * c) : b))
TWO(LogsigmoidGrad, g *sigmoid(-x))
TWO(SoftplusGrad, x *a > b ? g : g * sigmoid(x * a))
TWO(MishGrad, g *mish_slope(x))
TWO(SigmoidGrad, g *x * (W(1) - x))
TWO(TanhGrad, g *((W(1) - x) * (W(1) + x)))
TWO(SiluGrad, g *silu_slope(x))
TWO(GeluGrad, g *(below(x) + x * density(x)))
TWO(GeluTanhGrad, g *tanh_slope(x))

// A block takes one tile; a thread has several loads of 16 bytes under way.
template <class T, class Op> __global__ void one(const T *x, T *out, i64 n, double a, double b, double c) {
  typedef wide_t<T> W;
  over_tile<kLanes<T>, 4>(n, aligned(x) && aligned(out), [&](auto count, i64 i) { return load<count.value>(x + i); },
                          [&](auto count, i64 i, const auto &p) {
    Pack<T, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j) made.v[j] = narrow<T>(Op::of(W(widen(p.v[j])), W(a), W(b), W(c)));
    store(out + i, made);
  });
}

template <class T, class S, int N> struct Both {
  Pack<T, N> x;
  Pack<S, N> y;
};
template <class T, class Op>
__global__ void two(const T *g, const T *x, T *out, i64 n, double a, double b, double c) {
  typedef wide_t<T> W;
  over_tile<kLanes<T>, 2>(n, aligned(g) && aligned(x) && aligned(out), [&](auto count, i64 i) {
    return Both<T, T, count.value>{load<count.value>(g + i), load<count.value>(x + i)};
  }, [&](auto count, i64 i, const auto &p) {
    Pack<T, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      made.v[j] = narrow<T>(Op::of(W(widen(p.x.v[j])), W(widen(p.y.v[j])), W(a), W(b), W(c)));
    store(out + i, made);
  });
}

// keep has a byte for each element.
template <class T> __global__ void dropout(const T *x, const unsigned char *keep, T *out, i64 n, double scale) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  bool wide = aligned(x) && aligned(out) && reinterpret_cast<u64>(keep) % N == 0;
  W factor = widen(narrow<T>(W(scale)));
  over_tile<N, 2>(n, wide, [&](auto count, i64 i) {
    return Both<T, unsigned char, count.value>{load<count.value>(x + i), load<count.value>(keep + i)};
  }, [&](auto count, i64 i, const auto &p) {
    Pack<T, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j) made.v[j] = narrow<T>(W(widen(p.x.v[j])) * (p.y.v[j] ? factor : W(0)));
    store(out + i, made);
  });
}
