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
    template <class W> static __device__ __forceinline__ W finish(W x, double divisor) { return over(x, divisor); } \
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
    static __device__ __forceinline__ int finish(int x, double) { return x; }                      \
  };
TRUTH(Any, 0, x | y)
TRUTH(All, 1, x &y)

// Roots of sums, and sums of squares: of what is split among blocks the first launch squares and the last takes the root.
struct Root : Sum {
  template <class W> static __device__ __forceinline__ W finish(W x, double) { return sqrt(x); }
};
struct Squares : Sum {
  template <class T> static __device__ __forceinline__ work_t<T> take(T x) { return opened(x) * opened(x); }
};
struct Length : Squares {
  template <class W> static __device__ __forceinline__ W finish(W x, double) { return sqrt(x); }
};

// Call f(pack) for the elements of a line that are this thread's: several loads are on their way before the first is used.
// f(pack, i) takes Count<N> elements from i on, or one.
template <class T, int N, class F> __device__ __forceinline__ void each_pack(const T *at, i64 count, F f) {
  constexpr int kAhead = 4;
  i64 packs = reinterpret_cast<u64>(at) % (N * sizeof(T)) == 0 ? count / N : 0, step = blockDim.x, i = threadIdx.x;
  for (; i < packs; i += kAhead * step) {
    Pack<T, N> held[kAhead];
#pragma unroll
    for (int l = 0; l < kAhead; ++l)
      if (i + l * step < packs) held[l] = load<N>(at + (i + l * step) * N);
#pragma unroll
    for (int l = 0; l < kAhead; ++l)
      if (i + l * step < packs) f(held[l], (i + l * step) * N);
  }
#pragma unroll 4
  for (i = packs * N + threadIdx.x; i < count; i += step) f(load<1>(at + i), i);
}
template <class T> constexpr int kWide = kLanes<T> < 8 ? kLanes<T> : 8;

// A line is a part of a row of n; a warp takes it where blockDim.x is 32, else the block does.
template <class T, class R, class Op>
__global__ void __launch_bounds__(256, 4) reduce_rows(const T *x, R *out, i64 rows, i64 n, i64 parts, i64 per, double divisor) {
  typedef typename Op::template Of<T> W;
  constexpr int N = kWide<T>;
  const Op op;
  for (i64 line = i64(blockIdx.x) * blockDim.y + threadIdx.y; line < rows * parts; line += i64(gridDim.x) * blockDim.y) {
    i64 row = quotient_of(line, parts), first = (line - row * parts) * per, count = n - first < per ? n - first : per;
    W held[N];
#pragma unroll
    for (int j = 0; j < N; ++j) held[j] = Op::template neutral<W>();
    each_pack<T, N>(x + row * n + first, count, [&](const auto &p, i64) {
#pragma unroll
      for (int j = 0; j < sizeof(p.v) / sizeof(T); ++j) held[j] = op(held[j], W(Op::take(p.v[j])));
    });
#pragma unroll
    for (int by = N / 2; by; by >>= 1)
#pragma unroll
      for (int j = 0; j < by; ++j) held[j] = op(held[j], held[j + by]);
    W total = over_row(held[0], Op::template neutral<W>(), op);
    if (threadIdx.x == 0) out[line] = Close<R>::from(Op::finish(total, divisor));
  }
}

// Blocks of 256 threads: `across` of them side by side with M columns each, the rest below each other. out is (parts,
// outer, inner).
template <int M, class T, class R, class Op>
__device__ __forceinline__ void columns(const T *x, R *out, i64 outer, i64 n, i64 inner, i64 parts, i64 per, i64 across,
                                        double divisor, typename Op::template Of<T> *shared) {
  typedef typename Op::template Of<T> W;
  constexpr int kAhead = M > 4 ? 2 : 4;
  const Op op;
  int place = int(threadIdx.x % unsigned(across)), line = int(threadIdx.x / unsigned(across)), lines = int(blockDim.x / unsigned(across));
  i64 strips = (inner / M + across - 1) / across;
  bool wide = reinterpret_cast<u64>(x) % (M * sizeof(T)) == 0;
  for (i64 item = blockIdx.x; item < outer * parts * strips; item += gridDim.x) {
    i64 c = (item % strips * across + place) * M, part = item / strips % parts, o = item / strips / parts;
    i64 first = part * per, last = first + per < n ? first + per : n;
    W total[M];
#pragma unroll
    for (int j = 0; j < M; ++j) total[j] = Op::template neutral<W>();
    if (c < inner && line < lines) {
      const T *at = x + o * n * inner + c;
      for (i64 i = first + line; i < last; i += kAhead * lines) {
        Pack<T, M> held[kAhead];
#pragma unroll
        for (int l = 0; l < kAhead; ++l) {
          const T *from = at + (i + l * lines) * inner;
          if (i + l * lines >= last) continue;
          if (wide) {
            held[l] = load<M>(from);
          } else {
#pragma unroll
            for (int j = 0; j < M; ++j) held[l].v[j] = from[j];
          }
        }
#pragma unroll
        for (int l = 0; l < kAhead; ++l)
          if (i + l * lines < last)
#pragma unroll
            for (int j = 0; j < M; ++j) total[j] = op(total[j], W(Op::take(held[l].v[j])));
      }
    }
    for (int many = lines; many > 1; many = (many + 1) / 2) {
      int half = (many + 1) / 2;
      __syncthreads();  // what was there before may still be read
#pragma unroll
      for (int j = 0; j < M; ++j) shared[j * 256 + threadIdx.x] = total[j];
      __syncthreads();
      if (line + half < many)
#pragma unroll
        for (int j = 0; j < M; ++j) total[j] = op(total[j], shared[j * 256 + threadIdx.x + half * int(across)]);
    }
    if (line == 0 && c < inner) {
#pragma unroll
      for (int j = 0; j < M; ++j) out[(part * outer + o) * inner + c + j] = Close<R>::from(Op::finish(total[j], divisor));
    }
  }
}
template <class T, class R, class Op>
__global__ void __launch_bounds__(256) reduce_columns(const T *x, R *out, i64 outer, i64 n, i64 inner, i64 parts, i64 per, i64 across,
                               bool packs, double divisor) {
  __shared__ typename Op::template Of<T> shared[256 * kWide<T>];
  if (packs)
    columns<kWide<T>, T, R, Op>(x, out, outer, n, inner, parts, per, across, divisor, shared);
  else
    columns<1, T, R, Op>(x, out, outer, n, inner, parts, per, across, divisor, shared);
}

// ---- variances, in one walk ----

// Of each part of a row its mean and sum go to `found` (2, lines), or where rows are whole the variance to out.
template <class T>
__global__ void __launch_bounds__(256) variance_rows(const T *x, work_t<T> *found, T *out, i64 rows, i64 n, i64 parts, i64 per, double freedom) {
  typedef work_t<T> W;
  constexpr int N = kWide<T> < 4 ? kWide<T> : 4;
  for (i64 line = i64(blockIdx.x) * blockDim.y + threadIdx.y; line < rows * parts; line += i64(gridDim.x) * blockDim.y) {
    i64 row = quotient_of(line, parts), first = (line - row * parts) * per, count = n - first < per ? n - first : per;
    Lanes<W, N> lanes;
    each_pack<T, N>(x + row * n + first, count, [&](const auto &p, i64) { lanes.take(p); });
    Moments<W> all = joined_over_row(lanes.all());
    if (threadIdx.x) continue;
    if (found)
      found[line] = all.mean, found[rows * parts + line] = all.apart;
    else
      out[line] = Close<T>::from(all.apart / W(freedom));
  }
}
// A warp joins the parts of a row.
template <class T>
__global__ void __launch_bounds__(256) variance_parts(const work_t<T> *found, T *out, i64 rows, i64 n, i64 parts, i64 per, double freedom) {
  typedef work_t<T> W;
  for (i64 row = i64(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += i64(gridDim.x) * blockDim.y) {
    Moments<W> all{W(0), W(0), 0};
    for (i64 part = threadIdx.x; part < parts; part += 32) {
      i64 count = n - part * per < per ? n - part * per : per, at = row * parts + part;
      all = joined(all, Moments<W>{found[at], found[rows * parts + at], count});
    }
    all = joined_over_warp(all);
    if (threadIdx.x == 0) out[row] = Close<T>::from(all.apart / W(freedom));
  }
}

// ---- positions: the first of equal ones, and the first nan before all ----

struct Greatest {
  // Of what comes later, within a thread.
  template <class W> static __device__ __forceinline__ bool later(W x, W best) { return x > best || (x != x && best == best); }
  template <class W> static __device__ __forceinline__ bool better(W x, i64 i, W y, i64 j) {
    if (x != x || y != y) return x != x && (y == y || i < j);
    return x > y || (x == y && i < j);
  }
};
struct Smallest {
  template <class W> static __device__ __forceinline__ bool later(W x, W best) { return x < best || (x != x && best == best); }
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
__global__ void __launch_bounds__(256) arg_rows(const T *x, const i64 *among, i64 *out, i64 rows, i64 n, i64 parts, i64 per) {
  typedef work_t<T> W;
  __shared__ W values[32];
  __shared__ i64 places[32];
  i64 lines = among ? rows : rows * parts;
  for (i64 line = i64(blockIdx.x) * blockDim.y + threadIdx.y; line < lines; line += i64(gridDim.x) * blockDim.y) {
    i64 row = among ? line : quotient_of(line, parts), first = among ? 0 : (line - row * parts) * per;
    i64 last = among ? parts : first + per < n ? first + per : n;
    Found<W> best{W(0), -1};
    if (among) {
      for (i64 i = threadIdx.x; i < last; i += blockDim.x) {
        i64 place = among[row * parts + i];
        if (place >= 0) best = choice<Op>(best, Found<W>{opened(x[row * n + place]), place});
      }
    } else {
      // A thread meets its elements in their order.
      each_pack<T, kWide<T>>(x + row * n + first, last - first, [&](const auto &p, i64 i) {
#pragma unroll
        for (int j = 0; j < sizeof(p.v) / sizeof(T); ++j) {
          W value = opened(p.v[j]);
          if (best.place < 0 || Op::later(value, best.value)) best = Found<W>{value, first + i + j};
        }
      });
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
// The same along an axis that is not the last. Blocks are 32 columns by 8 threads, which take every eighth element of a part
// each; what is found is (parts, outer, inner).
template <class T, class Op>
__global__ void __launch_bounds__(256) arg_columns(const T *x, const i64 *among, i64 *out, i64 outer, i64 n, i64 inner, i64 parts, i64 per) {
  typedef work_t<T> W;
  __shared__ W values[8][33];
  __shared__ i64 places[8][33];
  i64 columns = outer * inner, strips = (columns + 31) / 32;
  for (i64 item = blockIdx.x; item < strips * (among ? 1 : parts); item += gridDim.x) {
    i64 part = quotient_of(item, strips), column = (item - part * strips) * 32 + threadIdx.x, o = quotient_of(column, inner);
    const T *at = x + o * n * inner + (column - o * inner);
    i64 first = among ? 0 : part * per, last = among ? parts : first + per < n ? first + per : n;
    Found<W> best{W(0), -1};
#pragma unroll 4
    for (i64 i = first + threadIdx.y; column < columns && i < last; i += 8) {
      i64 place = among ? among[i * columns + column] : i;
      best = choice<Op>(best, Found<W>{opened(at[place * inner]), place});
    }
    __syncthreads();  // the last strip's may still be read
    values[threadIdx.y][threadIdx.x] = best.value, places[threadIdx.y][threadIdx.x] = best.place;
    __syncthreads();
    if (threadIdx.y || column >= columns) continue;
    for (int j = 1; j < 8; ++j) best = choice<Op>(best, Found<W>{values[j][threadIdx.x], places[j][threadIdx.x]});
    out[part * columns + column] = best.place;
  }
}

// The least and the greatest of a few, by one block, to where the host reads them.
template <class T> __global__ void __launch_bounds__(1024, 1) extent(const T *x, T *ends, i64 n) {
  T low = highest<T>(), high = lowest<T>();
  for (i64 i = threadIdx.x; i < n; i += blockDim.x) {
    T value = x[i];
    low = value < low ? value : low;
    high = value > high ? value : high;
  }
  low = over_row(low, highest<T>(), Least());
  high = over_row(high, lowest<T>(), Largest());
  if (threadIdx.x) return;
  ends[0] = low, ends[1] = high;
  __threadfence_system();
}
// The first place from `from` on and before `to` whose element is below low or above high, and not `skip`; none is n.
template <class T>
__device__ __forceinline__ i64 first_outside(const T *x, i64 from, i64 to, i64 n, i64 low, i64 high, i64 skip) {
  i64 first = n;
#pragma unroll 4
  for (i64 i = from + threadIdx.x; i < to; i += blockDim.x) {
    i64 value = x[i];
    if ((value < low || value > high) && value != skip && i < first) first = i;
  }
  return over_row(first, n, Least());
}
// Of each block's part of x.
template <class T>
__global__ void __launch_bounds__(256) outside(const T *x, i64 *firsts, i64 n, i64 per, i64 low, i64 high, i64 skip) {
  i64 from = blockIdx.x * per, first = first_outside(x, from, from + per < n ? from + per : n, n, low, high, skip);
  if (threadIdx.x == 0) firsts[blockIdx.x] = first;
}
// Of all, for a host that does not wait, by one block: whether there is one and what it is. That both are there the host knows by the
// number. Without `firsts`, of which there are `count`, the block looks at x.
template <class T>
__global__ void __launch_bounds__(1024, 1) look(const T *x, const i64 *firsts, volatile i64 *answer, i64 n, i64 count, i64 low, i64 high,
                                                i64 skip, i64 number) {
  i64 first = n;
  if (firsts) {
    for (i64 i = threadIdx.x; i < count; i += blockDim.x) first = firsts[i] < first ? firsts[i] : first;
    first = over_row(first, n, Least());
  } else {
    first = first_outside(x, 0, n, n, low, high, skip);
  }
  if (threadIdx.x) return;
  answer[0] = first < n, answer[1] = first < n ? i64(x[first]) : i64(0);
  __threadfence_system();
  answer[2] = number;
}
