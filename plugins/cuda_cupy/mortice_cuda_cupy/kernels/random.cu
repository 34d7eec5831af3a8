// The Philox4x64-10 stream and draws from it, to the bit as in mortice.backends.philox: each rounding of float64 is
// kept by the intrinsics, which no compiler fuses. A thread makes a whole block of four words.

struct Words {
  u64 v[4];
};
__device__ __forceinline__ Words philox(u64 counter, u64 seed) {
  u64 a = counter, b = 0, c = 0, d = 0, key0 = seed, key1 = 0;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    u64 high0 = __umul64hi(a, 0xD2E7470EE14C6C93ull), low0 = a * 0xD2E7470EE14C6C93ull;
    u64 high1 = __umul64hi(c, 0xCA5A826395121157ull), low1 = c * 0xCA5A826395121157ull;
    a = high1 ^ b ^ key0, b = low1, c = high0 ^ d ^ key1, d = low0;
    key0 += 0x9E3779B97F4A7C15ull, key1 += 0xBB67AE8584CAA73Bull;
  }
  return {{a, b, c, d}};
}

// Where a draw begins: seed and offset, or where work is captured a cell that holds both for each replay, and the place of
// the draw after it.
struct Place {
  u64 seed, offset;
};
__device__ __forceinline__ Place place(u64 seed, u64 offset, const u64 *cell) {
  return cell ? Place{cell[0], cell[1] + offset} : Place{seed, offset};
}
__global__ void set_cell(u64 *cell, u64 seed, u64 offset) { cell[0] = seed, cell[1] = offset; }

// Call f(i, word) for the elements of a result: element i takes word offset + i of the stream, that is lane % 4 of block
// (offset + i) / 4, whose counter is one more.
template <class F> __device__ __forceinline__ void each_word(Place at, i64 n, F f) {
  u64 seed = at.seed, offset = at.offset;
  int skip = int(offset & 3);
  i64 blocks = (n + skip + 3) / 4;
  for (i64 b = thread_of_grid(); b < blocks; b += threads_of_grid()) {
    Words words = philox(offset / 4 + u64(b) + 1, seed);
#pragma unroll
    for (int lane = 0; lane < 4; ++lane) {
      i64 i = b * 4 + lane - skip;
      if (i >= 0 && i < n) f(i, words.v[lane]);
    }
  }
}

__device__ __forceinline__ double sum(double x, double y) { return __dadd_rn(x, y); }
__device__ __forceinline__ double times(double x, double y) { return __dmul_rn(x, y); }
template <int N> __device__ __forceinline__ double polynomial(double x, const double (&c)[N]) {
  double result = sum(times(x, c[N - 1]), c[N - 2]);
#pragma unroll
  for (int i = N - 3; i >= 0; --i) result = sum(times(result, x), c[i]);
  return result;
}

__device__ __forceinline__ double normal(u64 word) {
  const double top[] = {2.506628274630997, 41.610024223070944, 699.5294491076273, 7537.374555685381,
                        64140.241267262885, 430809.54424461897, 2240105.7098528417, 9014238.549845701,
                        28736077.077634394, 73629719.93826562, 61669567.52989514, -89168847.79872355,
                        -243988112.49771804, 161201971.9512388};
  const double bottom[] = {1.0, -0.15516286804290316, 219.91484869490563, -36.39518557998456, 15925.751732967647,
                           -4784.370427590704, 434697.29352078, -178485.48220446563, 4528057.629661268,
                           -2577199.882885755, 8837773.747934662, -22756416.223380495, 11736616.753918856};
  i64 steps = i64(word >> 10 | 1) - (1ll << 53);
  double q = times(double(steps), 0x1p-54);
  double p = times(double((1ll << 53) - (steps < 0 ? -steps : steps)), 0x1p-54);
  double root = times(p, sum(times(q < 0 ? -q : q, 4.0), 2.0));
#pragma unroll
  for (int i = 0; i < 6; ++i) root = sqrt(root);
  double d = __dsub_rn(1.0, root);
  return times(q, polynomial(d, top) / polynomial(d, bottom));
}

__device__ __forceinline__ double exponential(u64 word) {
  const double atanh[] = {1.0, 0.333333333333209, 0.20000000004237664, 0.14285713730722088, 0.11111147425932162,
                          0.09089579432616766, 0.07720723739890376, 0.0631712834555425, 0.08129664303566268};
  i64 steps = i64(word >> 11 | 1);
  double u = times(double(steps), 0x1p-53), root = times(double((1ll << 53) - steps), 0x1p-53), product = 2.0;
#pragma unroll
  for (int i = 0; i < 6; ++i) root = sqrt(root), product = times(sum(root, 1.0), product);
  double t = u / __dsub_rn(product, u);
  return times(times(t, 128.0), polynomial(times(t, t), atanh));
}

// Half precision is rounded from float32, which is rounded from float64.
template <class T> __device__ __forceinline__ T rounded(double x) { return narrow<T>(float(x)); }
template <> __device__ __forceinline__ double rounded<double>(double x) { return x; }

// Leading bits that a uniform number is made of.
template <class T> constexpr int kBits = 24;
template <> constexpr int kBits<half_t> = 11;
template <> constexpr int kBits<bf16_t> = 8;
template <> constexpr int kBits<double> = 53;

__global__ void random_words(u64 *out, i64 n, u64 seed, u64 offset, const u64 *cell) {
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) { out[i] = word; });
}
template <class T> __global__ void random_uniform(T *out, i64 n, u64 seed, u64 offset, const u64 *cell) {
  typedef wide_t<T> W;
  const W step = W(1) / W(1ull << kBits<T>);
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) { out[i] = narrow<T>(W(word >> (64 - kBits<T>)) * step); });
}
template <class T> __global__ void random_normal(T *out, i64 n, u64 seed, u64 offset, const u64 *cell) {
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) { out[i] = rounded<T>(normal(word)); });
}
template <class T> __global__ void random_exponential(T *out, i64 n, u64 seed, u64 offset, const u64 *cell) {
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) { out[i] = rounded<T>(exponential(word)); });
}
// count is 0 for 2^64: then the word is the number already.
__global__ void random_integers(i64 *out, i64 n, u64 seed, u64 offset, const u64 *cell, i64 low, u64 count) {
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) {
    out[i] = i64(u64(low) + (count ? __umul64hi(word, count) : word));
  });
}
__global__ void random_bernoulli(bool *out, i64 n, u64 seed, u64 offset, const u64 *cell, u64 limit) {
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) { out[i] = word >> 11 < limit; });
}
// One probability for each element: ceil(2^53 p), in steps that are exact in float64.
template <class T> __global__ void random_bernoulli_each(bool *out, const T *p, i64 n, u64 seed, u64 offset, const u64 *cell) {
  each_word(place(seed, offset, cell), n, [&](i64 i, u64 word) {
    double x = double(widen(p[i]));
    x = x > 0.0 ? x < 1.0 ? x : 1.0 : 0.0;
    out[i] = word >> 11 < u64(ceil(x * 0x1p53));
  });
}
