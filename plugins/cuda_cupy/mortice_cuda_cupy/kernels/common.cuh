// Kernels that are launched with more than 256 threads in a block declare how many, or they might take more registers
// than there are. What all kernels share: half precision, vector loads, and sums over warps and blocks. It goes in front of each source,
// which includes nothing: CuPy's wheels bring no CUDA headers, and a program without headers compiles in a moment.
typedef long long i64;
typedef unsigned long long u64;

// Half precision is storage: values are worked on in float, and rounded once.
struct alignas(2) half_t {
  unsigned short bits;
};
struct alignas(2) bf16_t {
  unsigned short bits;
};

template <class T> struct Wide {
  typedef float type;
};
template <> struct Wide<double> {
  typedef double type;
};
template <class T> using wide_t = typename Wide<T>::type;

__device__ __forceinline__ double widen(double x) { return x; }
__device__ __forceinline__ float widen(float x) { return x; }
__device__ __forceinline__ float widen(bf16_t x) { return __uint_as_float(unsigned(x.bits) << 16); }
__device__ __forceinline__ float widen(half_t x) {
#ifdef MORTICE_ON_CPU
  _Float16 h;
  memcpy(&h, &x, 2);
  return h;
#else
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(x.bits));
  return wide;
#endif
}

template <class T> struct Narrow {
  static __device__ __forceinline__ T from(T x) { return x; }
};
template <> struct Narrow<half_t> {
  static __device__ __forceinline__ half_t from(float x) {
    half_t r;
#ifdef MORTICE_ON_CPU
    _Float16 h = x;
    memcpy(&r, &h, 2);
#else
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#endif
    return r;
  }
};
template <> struct Narrow<bf16_t> {
  static __device__ __forceinline__ bf16_t from(float x) {
    bf16_t r;
#if defined(MORTICE_ON_CPU) || __CUDA_ARCH__ < 800
    unsigned bits = __float_as_uint(x);
    r.bits = x != x ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
#else
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(x));
#endif
    return r;
  }
};
template <class T, class W> __device__ __forceinline__ T narrow(W x) { return Narrow<T>::from(x); }

template <class W> __device__ __forceinline__ W infinity() { return W(__uint_as_float(0x7f800000u)); }
template <class W> __device__ __forceinline__ W not_a_number() { return W(__uint_as_float(0x7fc00000u)); }

// What values are computed in: halves in float, everything else as it is.
template <class T> struct Work {
  typedef T type;
};
template <> struct Work<half_t> {
  typedef float type;
};
template <> struct Work<bf16_t> {
  typedef float type;
};
template <class T> using work_t = typename Work<T>::type;
template <class T> __device__ __forceinline__ work_t<T> opened(T x) { return x; }
template <> __device__ __forceinline__ float opened(half_t x) { return widen(x); }
template <> __device__ __forceinline__ float opened(bf16_t x) { return widen(x); }
template <class T> struct Close {
  template <class W> static __device__ __forceinline__ T from(W x) { return T(x); }
};
template <> struct Close<half_t> {
  static __device__ __forceinline__ half_t from(float x) { return narrow<half_t>(x); }
};
template <> struct Close<bf16_t> {
  static __device__ __forceinline__ bf16_t from(float x) { return narrow<bf16_t>(x); }
};

// ---- memory: 16 bytes at a time where the address allows ----

template <class T, int N> struct alignas(N * sizeof(T)) Pack {
  T v[N];
};
template <class T> constexpr int kLanes = 16 / int(sizeof(T));
template <int N> struct Count {
  static constexpr int value = N;
};

template <int N, class T> __device__ __forceinline__ Pack<T, N> load(const T *at) {
  return *reinterpret_cast<const Pack<T, N> *>(at);
}
template <int N, class T> __device__ __forceinline__ void store(T *at, const Pack<T, N> &pack) {
  *reinterpret_cast<Pack<T, N> *>(at) = pack;
}
// A null pointer counts as aligned: it stands for an operand that is not there.
__device__ __forceinline__ bool aligned(const void *at) { return (reinterpret_cast<u64>(at) & 15) == 0; }

// Call f(Count<N>, i) for the elements i to i + N - 1 of a row, of which this thread (first of `step`) takes its share.
template <int N, class F> __device__ __forceinline__ void share(i64 n, bool wide, i64 first, i64 step, F f) {
  i64 packs = wide ? n / N : 0;
#pragma unroll 2
  for (i64 i = first; i < packs; i += step) f(Count<N>(), i * N);
  for (i64 i = packs * N + first; i < n; i += step) f(Count<1>(), i);
}
// The same for the elements of a whole array, of which a block takes one tile: `fetch` reads what `finish` then works on,
// so that all loads of a thread are on their way before the first is waited for.
template <int N, int Loads, class F, class G>
__device__ __forceinline__ void over_tile(i64 n, bool wide, F fetch, G finish) {
  i64 tile = i64(blockDim.x) * Loads * N, start = blockIdx.x * tile;
  if (wide) {
    i64 first = start + threadIdx.x * N, step = i64(blockDim.x) * N, last = n - N;
    decltype(fetch(Count<N>(), first)) held[Loads];
#pragma unroll
    for (int l = 0; l < Loads; ++l)
      if (first + l * step <= last) held[l] = fetch(Count<N>(), first + l * step);
#pragma unroll
    for (int l = 0; l < Loads; ++l)
      if (first + l * step <= last) finish(Count<N>(), first + l * step, held[l]);
    i64 i = n - n % N + threadIdx.x;  // what makes no whole pack, by the block that has it
    if (i < n && i >= start && i < start + tile) finish(Count<1>(), i, fetch(Count<1>(), i));
    return;
  }
  decltype(fetch(Count<1>(), start)) held[Loads];
#pragma unroll 1
  for (int part = 0; part < N; ++part) {
    i64 first = start + i64(part) * Loads * blockDim.x + threadIdx.x;
#pragma unroll
    for (int l = 0; l < Loads; ++l)
      if (first + l * i64(blockDim.x) < n) held[l] = fetch(Count<1>(), first + l * i64(blockDim.x));
#pragma unroll
    for (int l = 0; l < Loads; ++l)
      if (first + l * i64(blockDim.x) < n) finish(Count<1>(), first + l * i64(blockDim.x), held[l]);
  }
}
__device__ __forceinline__ i64 thread_of_grid() { return i64(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ __forceinline__ i64 threads_of_grid() { return i64(gridDim.x) * blockDim.x; }

// ---- sums of warps and blocks: every thread gets the result; the order is fixed ----

struct Plus {
  template <class W> __device__ __forceinline__ W operator()(W x, W y) const { return x + y; }
};
template <class W, class F> __device__ __forceinline__ W over_warp(W x, F f) {
#pragma unroll
  for (int by = 16; by; by >>= 1) x = f(x, __shfl_xor_sync(0xffffffffu, x, by));
  return x;
}
// A block here is a row of threads: blockDim.y rows of it work apart only where each is one warp.
template <class W, class F> __device__ __forceinline__ W over_row(W x, W neutral, F f) {
  x = over_warp(x, f);
  if (blockDim.x <= 32) return x;
  __shared__ W partial[32];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  __syncthreads();  // the last call's results may still be read
  if (lane == 0) partial[warp] = x;
  __syncthreads();
  return over_warp(lane < int(blockDim.x) >> 5 ? partial[lane] : neutral, f);
}
template <class W> __device__ __forceinline__ W sum_over_row(W x) { return over_row(x, W(0), Plus()); }

// ---- means and sums of squared distances from them, in one walk by Welford's and Chan's formulas ----

template <class W> struct Moments {
  W mean, apart;
  i64 count;
};
template <class W> __device__ __forceinline__ Moments<W> joined(Moments<W> a, Moments<W> b) {
  i64 count = a.count + b.count;
  if (!b.count) return a;
  if (!a.count) return b;
  W d = b.mean - a.mean, share_of_b = W(b.count) / W(count);
  return {a.mean + d * share_of_b, a.apart + b.apart + d * d * W(a.count) * share_of_b, count};
}
template <class W> __device__ __forceinline__ Moments<W> joined_over_warp(Moments<W> a) {
#pragma unroll
  for (int by = 16; by; by >>= 1)
    a = joined(a, Moments<W>{__shfl_xor_sync(0xffffffffu, a.mean, by), __shfl_xor_sync(0xffffffffu, a.apart, by),
                             __shfl_xor_sync(0xffffffffu, a.count, by)});
  return a;
}
// A thread's moments, in N lanes that each take one of N neighbours; what comes alone goes to the first lane.
template <class W, int N> struct Lanes {
  W mean[N], apart[N];
  int packs, more;
  __device__ __forceinline__ Lanes() : packs(0), more(0) {
#pragma unroll
    for (int j = 0; j < N; ++j) mean[j] = apart[j] = W(0);
  }
  template <class T, int M> __device__ __forceinline__ void take(const Pack<T, M> &p) {
    (M == N ? packs : more) += 1;
    W share_of_it = W(1) / W(M == N ? packs : packs + more);
#pragma unroll
    for (int j = 0; j < M; ++j) {
      W value = opened(p.v[j]), d = value - mean[j];
      mean[j] += d * share_of_it;
      apart[j] += d * (value - mean[j]);
    }
  }
  __device__ __forceinline__ Moments<W> all() const {
    Moments<W> found{mean[0], apart[0], packs + more};
#pragma unroll
    for (int j = 1; j < N; ++j) found = joined(found, Moments<W>{mean[j], apart[j], packs});
    return found;
  }
};
// What the threads of a row of at most 256 have in all.
template <class W> __device__ __forceinline__ Moments<W> joined_over_row(Moments<W> a) {
  a = joined_over_warp(a);
  if (blockDim.x <= 32) return a;
  __shared__ W means[8], aparts[8];
  __shared__ i64 counts[8];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  __syncthreads();  // the last call's may still be read
  if (lane == 0) means[warp] = a.mean, aparts[warp] = a.apart, counts[warp] = a.count;
  __syncthreads();
  return joined_over_warp(lane < int(blockDim.x) >> 5 ? Moments<W>{means[lane], aparts[lane], counts[lane]}
                                                      : Moments<W>{W(0), W(0), 0});
}
// Division of 64 bits takes long, and few arrays need it.
__device__ __forceinline__ i64 quotient_of(i64 x, i64 y) { return (x | y) >> 31 ? x / y : i64(unsigned(x) / unsigned(y)); }
// Where a row begins, as a number of which the compiler does not see how it came about: taken into account for each element,
// that hides from it that elements lie side by side, and it writes them one by one.
__device__ __forceinline__ i64 settled(i64 at) {
#ifndef MORTICE_ON_CPU
  asm("" : "+l"(at));
#endif
  return at;
}

// ---- softmax ----

// The greatest element so far and the sum of exponentials of all less it.
template <class W> struct Peak {
  W top, sum;
};
struct Merge {
  template <class W> __device__ Peak<W> operator()(Peak<W> a, Peak<W> b) const {
    W top = a.top > b.top ? a.top : b.top;
    // Where both are -inf their difference would be nan.
    W of_a = a.top == top ? W(1) : exp(a.top - top), of_b = b.top == top ? W(1) : exp(b.top - top);
    return {top, a.sum * of_a + b.sum * of_b};
  }
};
template <class W> __device__ __forceinline__ void take(Peak<W> &peak, W x) {
  if (x > peak.top) {
    peak.sum = peak.sum * exp(peak.top - x) + W(1);
    peak.top = x;
  } else {
    peak.sum += x == peak.top ? W(1) : exp(x - peak.top);  // both may be -inf
  }
}
template <class W> __device__ __forceinline__ Peak<W> empty_peak() { return {-infinity<W>(), W(0)}; }
template <class W> __device__ __forceinline__ Peak<W> shuffled(Peak<W> p, int by) {
  return {__shfl_xor_sync(0xffffffffu, p.top, by), __shfl_xor_sync(0xffffffffu, p.sum, by)};
}
template <class W> __device__ Peak<W> peak_over_row(Peak<W> p) {
  for (int by = 16; by; by >>= 1) p = Merge()(p, shuffled(p, by));
  if (blockDim.x <= 32) return p;
  __shared__ W tops[32], sums[32];
  int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  __syncthreads();
  if (lane == 0) tops[warp] = p.top, sums[warp] = p.sum;
  __syncthreads();
  p = lane < int(blockDim.x) >> 5 ? Peak<W>{tops[lane], sums[lane]} : empty_peak<W>();
  for (int by = 16; by; by >>= 1) p = Merge()(p, shuffled(p, by));
  return p;
}
