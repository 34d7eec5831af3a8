// Elementwise kernels of operands that lie in order, or that repeat in a plain way; the rest is CuPy's. A block takes one
// tile and a thread has several loads of 16 bytes under way.

// How numbers come: floats as double, integers as i64.
template <class T> struct Number {
  typedef i64 type;
};
template <> struct Number<half_t> {
  typedef double type;
};
template <> struct Number<bf16_t> {
  typedef double type;
};
template <> struct Number<float> {
  typedef double type;
};
template <> struct Number<double> {
  typedef double type;
};
template <class T> constexpr bool kShort = false;
template <> constexpr bool kShort<half_t> = true;
template <> constexpr bool kShort<bf16_t> = true;
template <class T> using number_t = typename Number<T>::type;
template <class T> __device__ __forceinline__ T from_number(number_t<T> x) { return Close<T>::from(work_t<T>(x)); }

// Division of 64 bits takes long, and few arrays need it: kept out of the way.
static __device__ __noinline__ i64 far_place(i64 i, i64 inner, i64 period) { return i / inner % period; }

// An operand: all its elements in order (kFull), one for all, one that repeats with a period after `inner` equal ones, or a
// number.
enum Kind { kFull, kOne, kRepeated, kNumber };
template <class T> struct Operand {
  const T *at;
  i64 kind, inner, period;
  T one;
  __device__ __forceinline__ Operand(const T *at, i64 kind, i64 inner, i64 period, T number)
      : at(at), kind(kind), inner(inner), period(period), one(kind == kOne ? *at : number) {}
  // Whether N elements from a multiple of N on are equal, or in order and aligned.
  template <int N> __device__ __forceinline__ bool wide() const {
    bool here = reinterpret_cast<u64>(at) % (N * sizeof(T)) == 0;
    return kind == kFull ? here : kind != kRepeated || (inner == 1 ? here && period % N == 0 : inner % N == 0);
  }
  template <int N> __device__ __forceinline__ Pack<T, N> load(i64 i) const {
    if (kind == kFull) return ::load<N>(at + i);
    if (kind == kRepeated) {
      i64 j = (i | inner | period) >> 31 ? far_place(i, inner, period) : i64(unsigned(i) / unsigned(inner) % unsigned(period));
      if (inner == 1) return ::load<N>(at + j);
      return all<N>(at[j]);
    }
    return all<N>(one);
  }
  template <int N> static __device__ __forceinline__ Pack<T, N> all(T value) {
    Pack<T, N> pack;
#pragma unroll
    for (int j = 0; j < N; ++j) pack.v[j] = value;
    return pack;
  }
};
template <class T, class U, int N> struct Two {
  Pack<T, N> x;
  Pack<U, N> y;
};

// Whole powers of 2 are exact, on which the bodies of frexp and nextafter rely; CUDA's functions may be off by a few ulp.
template <class W> __device__ __forceinline__ W power_of_two(W x) {
  return x == rint(x) && abs(x) < W(4096) ? ldexp(W(1), int(x)) : exp2(x);
}

#define UNARY(name, formula)                                        \
  struct name {                                                     \
    template <class W> static __device__ __forceinline__ auto of(W x) { return formula; } \
  };
#define BINARY(name, formula)                                            \
  struct name {                                                          \
    template <class W> static __device__ __forceinline__ auto of(W x, W y) { return formula; } \
  };

UNARY(Negative, -x)
UNARY(Abs, abs(x))
UNARY(Sign, x != x ? x : W(W(x > W(0)) - W(x < W(0))))
UNARY(Exp, exp(x))
UNARY(Log, log(x))
UNARY(Log1p, log1p(x))
UNARY(Expm1, expm1(x))
UNARY(Sqrt, sqrt(x))
UNARY(Rsqrt, W(1) / sqrt(x))
UNARY(Reciprocal, W(1) / x)
UNARY(Square, x *x)
UNARY(Sin, sin(x))
UNARY(Cos, cos(x))
UNARY(Tanh, tanh(x))
UNARY(Erf, erf(x))
UNARY(Floor, floor(x))
UNARY(Ceil, ceil(x))
UNARY(Relu, x > W(0) || x != x ? x : W(0))
UNARY(Tan, tan(x))
UNARY(Asin, asin(x))
UNARY(Acos, acos(x))
UNARY(Atan, atan(x))
UNARY(Sinh, sinh(x))
UNARY(Cosh, cosh(x))
UNARY(Asinh, asinh(x))
UNARY(Acosh, acosh(x))
UNARY(Atanh, atanh(x))
UNARY(Exp2, power_of_two(x))
UNARY(Log2, log2(x))
UNARY(Log10, log10(x))
UNARY(Trunc, trunc(x))
UNARY(IsNan, x != x)
UNARY(IsFinite, x - x == W(0))
UNARY(LogicalNot, x == W(0))

BINARY(Add, W(x + y))
BINARY(Subtract, W(x - y))
BINARY(Multiply, W(x *y))
BINARY(Divide, x / y)
BINARY(Rdivide, W(1) / y * x)
BINARY(Maximum, x > y || x != x ? x : y)
BINARY(Minimum, x < y || x != x ? x : y)
BINARY(Pow, x == W(2) ? power_of_two(y) : pow(x, y))
BINARY(Atan2, atan2(x, y))
BINARY(Hypot, hypot(x, y))
BINARY(Equal, x == y)
BINARY(NotEqual, x != y)
BINARY(Less, x < y)
BINARY(LessEqual, x <= y)
BINARY(Greater, x > y)
BINARY(GreaterEqual, x >= y)
BINARY(LogicalAnd, x && y)
BINARY(LogicalOr, x || y)

// x - floor(x / y) * y: for floats by fmod, which is exact; the result has the divisor's sign, a zero too.
template <class W> __device__ __forceinline__ W modulo(W x, W y) {
  W rest = fmod(x, y);
  if (rest == W(0)) return copysign(rest, y);
  return (rest < W(0)) != (y < W(0)) ? rest + y : rest;
}
// floor(x / y) of what the remainder leaves: x / y itself may have been rounded up to a whole number.
template <class W> __device__ __forceinline__ W quotient(W x, W y) {
  W rest = fmod(x, y), ratio = x / y;
  if (y == W(0)) return ratio;
  W whole = (x - rest) / y;
  if (rest != W(0) && (rest < W(0)) != (y < W(0))) whole -= W(1);
  whole = rint(whole);
  return whole == W(0) ? copysign(whole, ratio) : whole;
}
BINARY(Remainder, modulo(x, y))
BINARY(FloorDivide, quotient(x, y))

template <class T, class R, class Op> __global__ void unary(const T *x, R *out, i64 n) {
  constexpr int N = kLanes<T>;
  over_tile<N, 4>(n, aligned(x) && aligned(out), [&](auto count, i64 i) { return load<count.value>(x + i); },
                  [&](auto count, i64 i, const auto &p) {
    Pack<R, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j) made.v[j] = Close<R>::from(Op::of(opened(p.v[j])));
    store(out + i, made);
  });
}

// kinds: that of x, and 4 times that of y; each with the elements in a row that are equal and their period.
template <class T, class R, class Op>
__global__ void binary(const T *x, const T *y, R *out, i64 n, i64 kinds, i64 inner_x, i64 period_x, i64 inner_y,
                       i64 period_y, number_t<T> number) {
  constexpr int N = kLanes<T>;
  // What is computed in float32 has the number in full: 1e5 * 0.5 is no infinity of float16. Comparisons take it rounded.
  const bool full_x = kShort<T> && kShort<R> && (kinds & 3) == kNumber, full_y = kShort<T> && kShort<R> && kinds >> 2 == kNumber;
  const work_t<T> full = work_t<T>(number);
  auto finish = [&](auto count, i64 i, const auto &p) {
    Pack<R, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      made.v[j] = Close<R>::from(Op::of(full_x ? full : opened(p.x.v[j]), full_y ? full : opened(p.y.v[j])));
    store(out + i, made);
  };
  if (kinds == 0) {
    over_tile<N, 2>(n, aligned(x) && aligned(y) && aligned(out), [&](auto count, i64 i) {
      return Two<T, T, count.value>{load<count.value>(x + i), load<count.value>(y + i)};
    }, finish);
    return;
  }
  const T one = from_number<T>(number);
  const Operand<T> left(x, kinds & 3, inner_x, period_x, one), right(y, kinds >> 2, inner_y, period_y, one);
  bool wide = left.template wide<N>() && right.template wide<N>() && aligned(out);
  over_tile<N, 2>(n, wide, [&](auto count, i64 i) {
    constexpr int M = count.value;
    return Two<T, T, M>{left.template load<M>(i), right.template load<M>(i)};
  }, finish);
}

// Limits that are numbers, to low and then to high.
template <class T> __global__ void clip(const T *x, T *out, i64 n, number_t<T> low, number_t<T> high) {
  constexpr int N = kLanes<T>;
  const work_t<T> least = opened(from_number<T>(low)), most = opened(from_number<T>(high));
  over_tile<N, 4>(n, aligned(x) && aligned(out), [&](auto count, i64 i) { return load<count.value>(x + i); },
                  [&](auto count, i64 i, const auto &p) {
    Pack<T, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      work_t<T> v = opened(p.v[j]);
      v = v > least || v != v ? v : least;
      made.v[j] = Close<T>::from(v < most || v != v ? v : most);
    }
    store(out + i, made);
  });
}

// Sums with products and quotients of arrays that all lie in order; b is a number where it is no array.
struct AddProduct {
  template <class W> static __device__ __forceinline__ W of(W x, W a, W b, W value) { return x + a * b * value; }
};
struct AddQuotient {
  template <class W> static __device__ __forceinline__ W of(W x, W a, W b, W value) { return x + a / b * value; }
};
template <class T, class Op>
__global__ void blended(const T *x, const T *a, const T *b, T *out, i64 n, number_t<T> number, number_t<T> value) {
  constexpr int N = kLanes<T>;
  const work_t<T> one = work_t<T>(number), times = work_t<T>(value);
  over_tile<N, 2>(n, aligned(x) && aligned(a) && aligned(b) && aligned(out), [&](auto count, i64 i) {
    constexpr int M = count.value;
    struct Three {
      Pack<T, M> x, a, b;
    };
    return Three{load<M>(x + i), load<M>(a + i), b ? load<M>(b + i) : Pack<T, M>{}};
  }, [&](auto count, i64 i, const auto &p) {
    Pack<T, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      made.v[j] = Close<T>::from(Op::of(opened(p.x.v[j]), opened(p.a.v[j]), b ? opened(p.b.v[j]) : one, times));
    store(out + i, made);
  });
}

// Conversion as in C; what does not fit an integer is what the device makes of it, as everywhere.
template <class T, class R> __global__ void cast(const T *x, R *out, i64 n) {
  constexpr int N = kLanes<T> < kLanes<R> ? kLanes<T> : kLanes<R>;
  over_tile<N, 4>(n, aligned(x) && aligned(out), [&](auto count, i64 i) { return load<count.value>(x + i); },
                  [&](auto count, i64 i, const auto &p) {
    Pack<R, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j) made.v[j] = Close<R>::from(opened(p.v[j]));
    store(out + i, made);
  });
}

// Words of the elements' size: choosing and filling do not look at the bits.
template <class T>
__global__ void choose(const bool *condition, const T *x, const T *y, T *out, i64 n, i64 kinds, i64 inner_c, i64 period_c,
                       i64 inner_x, i64 period_x, i64 inner_y, i64 period_y, u64 number_x, u64 number_y) {
  constexpr int N = kLanes<T> < 4 ? kLanes<T> : 4;
  const Operand<bool> which(condition, kinds & 3, inner_c, period_c, false);
  const Operand<T> yes(x, kinds >> 2 & 3, inner_x, period_x, T(number_x)), no(y, kinds >> 4, inner_y, period_y, T(number_y));
  bool wide = which.template wide<N>() && yes.template wide<N>() && no.template wide<N>() && aligned(out);
  over_tile<N, 1>(n, wide, [&](auto count, i64 i) {
    constexpr int M = count.value;
    struct Three {
      Pack<bool, M> c;
      Pack<T, M> x, y;
    };
    return Three{which.template load<M>(i), yes.template load<M>(i), no.template load<M>(i)};
  }, [&](auto count, i64 i, const auto &p) {
    Pack<T, count.value> made;
#pragma unroll
    for (int j = 0; j < count.value; ++j) made.v[j] = p.c.v[j] ? p.x.v[j] : p.y.v[j];
    store(out + i, made);
  });
}
template <class T> __global__ void fill(T *out, i64 n, u64 word) {
  constexpr int N = kLanes<T>;
  const T value = T(word);
  over_tile<N, 4>(n, aligned(out), [&](auto count, i64 i) { return Operand<T>::template all<count.value>(value); },
                  [&](auto count, i64 i, const auto &p) { store(out + i, p); });
}
