// Scans: at each place, what is folded of all places up to it. x is seen as (outer, n, inner). Long lines are split into
// parts: a first launch folds each part, a second scans these ends, a third begins each part with what came before it.
// The order of folding is fixed.

// What an operation keeps is its State: `open` makes one of an element, `join` of two that follow each other; `close` gives
// the result. Joining with the neutral one changes nothing, not even the sign of a zero.
template <class W> struct Zero {
  static __device__ __forceinline__ W value() { return W(0); }
};
template <> struct Zero<float> {
  static __device__ __forceinline__ float value() { return -0.0f; }
};
template <> struct Zero<double> {
  static __device__ __forceinline__ double value() { return -0.0; }
};
template <class T> struct RunningSum {
  typedef work_t<T> State;
  static __device__ __forceinline__ State neutral() { return Zero<State>::value(); }
  static __device__ __forceinline__ State open(T x, i64) { return opened(x); }
  static __device__ __forceinline__ State join(State a, State b) { return a + b; }
  static __device__ __forceinline__ T close(State s) { return Close<T>::from(s); }
};
template <class T> struct RunningLogSum {
  typedef work_t<T> State;
  static __device__ __forceinline__ State neutral() { return -infinity<State>(); }
  static __device__ __forceinline__ State open(T x, i64) { return opened(x); }
  static __device__ __forceinline__ State join(State a, State b) {
    if (a != a || b != b) return a + b;
    State top = a < b ? b : a, low = a < b ? a : b;
    return top == low || low == -infinity<State>() || top == infinity<State>()
               ? (top == low && top - top == State(0) ? top + log(State(2)) : top)
               : top + log1p(exp(low - top));
  }
  static __device__ __forceinline__ T close(State s) { return Close<T>::from(s); }
};
// A group that overflowed must not turn a zero before it into nan: `product` is that of what comes before the first zero.
// The rest is bits: whether there was a zero, something not finite from it on, and something not finite at all.
template <class W> struct Product {
  W value;
  int seen;
};
enum { kZero = 1, kSpoilt = 2, kNotFinite = 4 };
template <class T> struct RunningProduct {
  typedef work_t<T> W;
  typedef Product<W> State;
  static __device__ __forceinline__ State neutral() { return State{W(1), 0}; }
  static __device__ __forceinline__ State open(T x, i64) {
    W value = opened(x);
    if (value == W(0)) return State{W(1), kZero};
    return State{value, value - value == W(0) ? 0 : kNotFinite};
  }
  static __device__ __forceinline__ State join(State a, State b) {
    int infinite = (a.seen | b.seen) & kNotFinite;
    if (a.seen & kZero) return State{a.value, (a.seen & (kZero | kSpoilt)) | infinite | (b.seen & kNotFinite ? kSpoilt : 0)};
    return State{a.value * b.value, (b.seen & (kZero | kSpoilt)) | infinite};
  }
  static __device__ __forceinline__ T close(State s) {
    W value = s.seen & kZero ? (s.seen & kSpoilt ? not_a_number<W>() : s.value * W(0)) : s.value;
    return Close<T>::from(value);
  }
};
template <class T> struct RunningWholeProduct {
  typedef T State;
  static __device__ __forceinline__ State neutral() { return T(1); }
  static __device__ __forceinline__ State open(T x, i64) { return x; }
  static __device__ __forceinline__ State join(State a, State b) { return a * b; }
  static __device__ __forceinline__ T close(State s) { return s; }
};
// The last of equal ones; nan stays once met.
template <class W> struct Placed {
  W value;
  i64 place;  // none below 0
};
template <class T, bool Largest> struct RunningExtreme {
  typedef work_t<T> W;
  typedef Placed<W> State;
  static __device__ __forceinline__ State neutral() { return State{W(0), -1}; }
  static __device__ __forceinline__ State open(T x, i64 place) { return State{opened(x), place}; }
  static __device__ __forceinline__ State join(State a, State b) {
    if (b.place < 0) return a;
    if (a.place < 0) return b;
    return b.value != b.value || (Largest ? a.value <= b.value : a.value >= b.value) ? b : a;
  }
  static __device__ __forceinline__ T close(State s) { return Close<T>::from(s.value); }
};
template <class T> using RunningMax = RunningExtreme<T, true>;
template <class T> using RunningMin = RunningExtreme<T, false>;

template <class W> __device__ __forceinline__ i64 place_of(W) { return 0; }
template <class W> __device__ __forceinline__ i64 place_of(Placed<W> s) { return s.place; }

template <class W> __device__ __forceinline__ W from_lane(W x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
template <class W> __device__ __forceinline__ Product<W> from_lane(Product<W> x, int lane) {
  return Product<W>{from_lane(x.value, lane), from_lane(x.seen, lane)};
}
template <class W> __device__ __forceinline__ Placed<W> from_lane(Placed<W> x, int lane) {
  return Placed<W>{from_lane(x.value, lane), from_lane(x.place, lane)};
}

template <class Op> __device__ __forceinline__ typename Op::State over_lanes(typename Op::State x) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int by = 1; by < 32; by <<= 1) {
    typename Op::State left = from_lane(x, lane < by ? lane : lane - by);
    if (lane >= by) x = Op::join(left, x);
  }
  return x;
}
// What the threads of this row before this one have, joined; `total` becomes what all of them have.
template <class Op> __device__ __forceinline__ typename Op::State before_me(typename Op::State mine, typename Op::State &total) {
  typedef typename Op::State S;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = int(blockDim.x) >> 5;
  S here = over_lanes<Op>(mine), before = from_lane(here, lane ? lane - 1 : 0);
  if (!lane) before = Op::neutral();
  if (warps == 1) {
    total = from_lane(here, 31);
    return before;
  }
  __shared__ S ends[32];
  __syncthreads();  // the last call's may still be read
  if (lane == 31) ends[warp] = here;
  __syncthreads();
  S all = over_lanes<Op>(lane < warps ? ends[lane] : Op::neutral());
  S earlier = from_lane(all, warp ? warp - 1 : 0);
  total = from_lane(all, warps - 1);
  return warp ? Op::join(earlier, before) : before;
}

// A line is a part of a row of n; a warp takes it where blockDim.x is 32, else the block does. Without `out` only the ends
// are written.
template <class T, class Op>
__global__ void scan_rows(const T *x, T *out, i64 *places, void *states, i64 rows, i64 n, i64 parts, i64 per) {
  typedef typename Op::State S;
  constexpr int N = kLanes<T>;
  S *ends = static_cast<S *>(states);
  for (i64 line = i64(blockIdx.x) * blockDim.y + threadIdx.y; line < rows * parts; line += i64(gridDim.x) * blockDim.y) {
    i64 row = quotient_of(line, parts), first = (line - row * parts) * per, count = n - first < per ? n - first : per;
    i64 begin = settled(row * n + first);
    S carry = out && first ? ends[line - 1] : Op::neutral();
    bool wide = aligned(x + begin) && aligned(out ? out + begin : nullptr);
    for (i64 start = 0; start < count; start += i64(blockDim.x) * N) {
      i64 i = start + i64(threadIdx.x) * N;
      Pack<T, N> pack;
      S held[N];
      if (wide && i + N <= count) {
        pack = load<N>(x + begin + i);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (i + j < count) pack.v[j] = x[begin + i + j];
      }
      S mine = Op::neutral(), total;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        if (i + j < count) mine = Op::join(mine, Op::open(pack.v[j], first + i + j));
        held[j] = mine;
      }
      S before = Op::join(carry, before_me<Op>(mine, total));
      carry = Op::join(carry, total);
      if (!out) continue;
#pragma unroll
      for (int j = 0; j < N; ++j) {
        held[j] = Op::join(before, held[j]);
        pack.v[j] = Op::close(held[j]);
      }
      if (wide && i + N <= count) {
        store(out + begin + i, pack);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (i + j < count) out[begin + i + j] = pack.v[j];
      }
      if (places) {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (i + j < count) places[begin + i + j] = place_of(held[j]);
      }
    }
    if (!out && threadIdx.x == 0) ends[line] = carry;
  }
}
// A thread takes a part of a column.
template <class T, class Op>
__global__ void scan_columns(const T *__restrict__ x, T *__restrict__ out, i64 *__restrict__ places, void *states, i64 outer,
                             i64 n, i64 inner, i64 parts, i64 per) {
  typedef typename Op::State S;
  S *ends = static_cast<S *>(states);
  for (i64 t = thread_of_grid(); t < outer * parts * inner; t += threads_of_grid()) {
    i64 part = t / inner % parts, first = part * per, last = first + per < n ? first + per : n;
    i64 begin = t / inner / parts * n * inner + t % inner;
    S carry = out && part ? ends[t - inner] : Op::neutral();
#pragma unroll 4
    for (i64 i = first; i < last; ++i) {
      i64 at = begin + i * inner;
      carry = Op::join(carry, Op::open(x[at], i));
      if (out) out[at] = Op::close(carry);
      if (out && places) places[at] = place_of(carry);
    }
    if (!out) ends[t] = carry;
  }
}
// The ends of parts, (outer, parts, inner), in place: a block a row where inner is 1, else a thread a column.
template <class T, class Op> __global__ void scan_ends(void *states, i64 outer, i64 parts, i64 inner) {
  typedef typename Op::State S;
  S *ends = static_cast<S *>(states);
  if (inner == 1) {
    for (i64 row = blockIdx.x; row < outer; row += gridDim.x) {
      S carry = Op::neutral(), total;
      for (i64 start = 0; start < parts; start += blockDim.x) {
        i64 i = start + threadIdx.x;
        S mine = i < parts ? ends[row * parts + i] : Op::neutral();
        S before = Op::join(carry, before_me<Op>(mine, total));
        if (i < parts) ends[row * parts + i] = Op::join(before, mine);
        carry = Op::join(carry, total);
      }
    }
    return;
  }
  for (i64 t = thread_of_grid(); t < outer * inner; t += threads_of_grid()) {
    S *at = ends + t / inner * parts * inner + t % inner, carry = Op::neutral();
    for (i64 i = 0; i < parts; ++i) at[i * inner] = carry = Op::join(carry, at[i * inner]);
  }
}
