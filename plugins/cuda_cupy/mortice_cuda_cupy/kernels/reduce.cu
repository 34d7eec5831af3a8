// Reductions in a fixed order: what is split among blocks goes through memory and is joined by a second launch. x is seen
// as (outer, n, inner), of which n goes away.

template <class W> __device__ __forceinline__ W lowest() { return -infinity<W>(); }
template <> __device__ __forceinline__ int lowest() { return -2147483647 - 1; }
template <> __device__ __forceinline__ i64 lowest() { return -9223372036854775807ll - 1; }
template <class W> __device__ __forceinline__ W highest() { return infinity<W>(); }
template <> __device__ __forceinline__ int highest() { return 2147483647; }
template <> __device__ __forceinline__ i64 highest() { return 9223372036854775807ll; }
template <class W> __device__ __forceinline__ W over(W x, double divisor) { return x; }
template <> __device__ __forceinline__ float over(float x, double divisor) { return divisor == 0 ? x : x / float(divisor); }
template <> __device__ __forceinline__ double over(double x, double divisor) { return divisor == 0 ? x : x / divisor; }

#define REDUCTION(name, start, formula)                                                            \
  struct name {                                                                                    \
    template <class T> using Of = work_t<T>;                                                       \
    template <class W> static __device__ __forceinline__ W neutral() { return start; }             \
    template <class W> __device__ __forceinline__ W operator()(W x, W y) const { return formula; } \
    template <class T> static __device__ __forceinline__ work_t<T> take(T x) { return opened(x); } \
  };
REDUCTION(Sum, W(0), W(x + y))
REDUCTION(Product, W(1), W(x *y))
REDUCTION(Largest, lowest<W>(), x > y || x != x ? x : y)
REDUCTION(Least, highest<W>(), x < y || x != x ? x : y)
#define TRUTH(name, start, formula)                                                                \
  struct name {                                                                                    \
    template <class T> using Of = int;                                                             \
    template <class W> static __device__ __forceinline__ W neutral() { return start; }             \
    template <class W> __device__ __forceinline__ W operator()(W x, W y) const { return formula; } \
    template <class T> static __device__ __forceinline__ int take(T x) { return opened(x) != work_t<T>(0); } \
  };
TRUTH(Any, 0, x | y)
TRUTH(All, 1, x &y)

// A line is a part of a row of n; a warp takes it where blockDim.x is 32, else the block does.
template <class T, class R, class Op>
__global__ void __launch_bounds__(1024) reduce_rows(const T *x, R *out, i64 rows, i64 n, i64 parts, i64 per, double divisor) {
  typedef typename Op::template Of<T> W;
  constexpr int N = kLanes<T> < 8 ? kLanes<T> : 8;
  const Op op;
  for (i64 line = i64(blockIdx.x) * blockDim.y + threadIdx.y; line < rows * parts; line += i64(gridDim.x) * blockDim.y) {
    i64 first = line % parts * per, count = n - first < per ? n - first : per;
    const T *at = x + line / parts * n + first;
    W held[N];
#pragma unroll
    for (int j = 0; j < N; ++j) held[j] = Op::template neutral<W>();
    i64 packs = reinterpret_cast<u64>(at) % (N * sizeof(T)) == 0 ? count / N : 0;
#pragma unroll 4
    for (i64 i = threadIdx.x; i < packs; i += blockDim.x) {
      auto p = load<N>(at + i * N);
#pragma unroll
      for (int j = 0; j < N; ++j) held[j] = op(held[j], W(Op::take(p.v[j])));
    }
    for (i64 i = packs * N + threadIdx.x; i < count; i += blockDim.x) held[0] = op(held[0], W(Op::take(at[i])));
#pragma unroll
    for (int by = N / 2; by; by >>= 1)
#pragma unroll
      for (int j = 0; j < by; ++j) held[j] = op(held[j], held[j + by]);
    W total = over_row(held[0], Op::template neutral<W>(), op);
    if (threadIdx.x == 0) out[line] = Close<R>::from(over(total, divisor));
  }
}

// Blocks of 256 threads: `across` columns side by side, the rest of the threads below each other. out is (parts, outer,
// inner).
template <class T, class R, class Op>
__global__ void reduce_columns(const T *x, R *out, i64 outer, i64 n, i64 inner, i64 parts, i64 per, i64 across,
                               double divisor) {
  typedef typename Op::template Of<T> W;
  __shared__ W held[256];
  const Op op;
  int column = int(threadIdx.x % across), line = int(threadIdx.x / across), lines = int(blockDim.x / across);
  i64 strips = (inner + across - 1) / across;
  for (i64 item = blockIdx.x; item < outer * parts * strips; item += gridDim.x) {
    i64 c = item % strips * across + column, part = item / strips % parts, o = item / strips / parts;
    i64 first = part * per, last = first + per < n ? first + per : n;
    W total = Op::template neutral<W>();
    if (c < inner && line < lines) {
      const T *at = x + o * n * inner + c;
#pragma unroll 4
      for (i64 i = first + line; i < last; i += lines) total = op(total, W(Op::take(at[i * inner])));
    }
    __syncthreads();  // the last item's may still be read
    held[threadIdx.x] = total;
    __syncthreads();
    if (line == 0 && c < inner) {
      for (int l = 1; l < lines; ++l) total = op(total, held[l * across + column]);
      out[(part * outer + o) * inner + c] = Close<R>::from(over(total, divisor));
    }
  }
}

// ---- positions: the first of equal ones, and the first nan before all ----

struct Greatest {
  template <class W> static __device__ __forceinline__ bool better(W x, i64 i, W y, i64 j) {
    if (x != x || y != y) return x != x && (y == y || i < j);
    return x > y || (x == y && i < j);
  }
};
struct Smallest {
  template <class W> static __device__ __forceinline__ bool better(W x, i64 i, W y, i64 j) {
    if (x != x || y != y) return x != x && (y == y || i < j);
    return x < y || (x == y && i < j);
  }
};
template <class W> struct Found {
  W value;
  i64 place;  // none below 0
};
template <class Op, class W> __device__ __forceinline__ Found<W> choice(Found<W> a, Found<W> b) {
  if (b.place < 0) return a;
  return a.place < 0 || Op::better(b.value, b.place, a.value, a.place) ? b : a;
}
template <class Op, class W> __device__ __forceinline__ Found<W> over_warp_found(Found<W> a) {
#pragma unroll
  for (int by = 16; by; by >>= 1)
    a = choice<Op>(a, Found<W>{__shfl_xor_sync(0xffffffffu, a.value, by), __shfl_xor_sync(0xffffffffu, a.place, by)});
  return a;
}

// Lines are parts of rows as above; `among` names the places to look at where they were found before, `parts` of a row.
template <class T, class Op>
__global__ void __launch_bounds__(1024) arg_rows(const T *x, const i64 *among, i64 *out, i64 rows, i64 n, i64 parts, i64 per) {
  typedef work_t<T> W;
  __shared__ W values[32];
  __shared__ i64 places[32];
  i64 lines = among ? rows : rows * parts;
  for (i64 line = i64(blockIdx.x) * blockDim.y + threadIdx.y; line < lines; line += i64(gridDim.x) * blockDim.y) {
    i64 row = among ? line : line / parts, first = among ? 0 : line % parts * per;
    i64 last = among ? parts : first + per < n ? first + per : n;
    Found<W> best{W(0), -1};
    for (i64 i = first + threadIdx.x; i < last; i += blockDim.x) {
      i64 place = among ? among[row * parts + i] : i;
      if (place >= 0) best = choice<Op>(best, Found<W>{opened(x[row * n + place]), place});
    }
    best = over_warp_found<Op>(best);
    if (blockDim.x > 32) {
      int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
      __syncthreads();
      if (lane == 0) values[warp] = best.value, places[warp] = best.place;
      __syncthreads();
      best = lane < int(blockDim.x) >> 5 ? Found<W>{values[lane], places[lane]} : Found<W>{W(0), -1};
      best = over_warp_found<Op>(best);
    }
    if (threadIdx.x == 0) out[line] = best.place;
  }
}
template <class T, class Op> __global__ void arg_columns(const T *x, i64 *out, i64 outer, i64 n, i64 inner) {
  typedef work_t<T> W;
  for (i64 t = thread_of_grid(); t < outer * inner; t += threads_of_grid()) {
    const T *at = x + t / inner * n * inner + t % inner;
    Found<W> best{opened(at[0]), 0};
#pragma unroll 4
    for (i64 i = 1; i < n; ++i) best = choice<Op>(best, Found<W>{opened(at[i * inner]), i});
    out[t] = best.place;
  }
}
