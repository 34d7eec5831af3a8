// What lies between the products of attention, in place on the scores (rows, keys), of which a query has one row of `length`.

// Of how many keys a row's query takes part.
__device__ __forceinline__ i64 seen(i64 row, i64 length, i64 keys, bool causal) {
  i64 query = row - quotient_of(row, length) * length;
  return causal && query + 1 < keys ? query + 1 : keys;
}

template <class T>
__global__ void __launch_bounds__(1024) attend_rows(T *scores, T *lse, i64 rows, i64 length, i64 keys, double scale, bool causal) {
  constexpr int N = kLanes<T>;
  const T by = T(scale);
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y, count = row < rows ? seen(row, length, keys, causal) : 0;
    T *at = scores + row * keys;
    bool wide = aligned(at);
    Peak<T> peak = empty_peak<T>();
    share<N>(count, wide, threadIdx.x, blockDim.x, [&](auto many, i64 i) {
      auto p = load<many.value>(at + i);
#pragma unroll
      for (int j = 0; j < many.value; ++j) take(peak, p.v[j] * by);
    });
    peak = peak_over_row(peak);
    // A query that may look at nothing, since all its scores are -inf, has no weights.
    bool nothing = peak.top == -infinity<T>() && peak.sum == peak.sum;  // a nan is greater than nothing, and no number
    T part = nothing ? T(0) : T(1) / peak.sum;
    if (row < rows && threadIdx.x == 0) lse[row] = nothing ? peak.top : log(peak.sum) + peak.top;
    share<N>(count, wide, threadIdx.x, blockDim.x, [&](auto many, i64 i) {
      auto p = load<many.value>(at + i);
#pragma unroll
      for (int j = 0; j < many.value; ++j) p.v[j] = nothing ? T(0) : exp(p.v[j] * by - peak.top) * part;
      store(at + i, p);
    });
    if (row < rows)
      for (i64 i = count + threadIdx.x; i < keys; i += blockDim.x) at[i] = T(0);
  }
}

// scores become the weights again, and pulled, the gradient of these, that of the scores.
template <class T>
__global__ void __launch_bounds__(1024) attend_grad_rows(T *scores, T *pulled, const T *lse, i64 rows, i64 length, i64 keys,
                                                         double scale, bool causal) {
  constexpr int N = kLanes<T>;
  const T by = T(scale);
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y, count = row < rows ? seen(row, length, keys, causal) : 0;
    T *at = scores + row * keys, *to = pulled + row * keys;
    bool wide = aligned(at) && aligned(to);
    T top = count ? lse[row] : T(0), total = T(0);
    bool nothing = top == -infinity<T>();
    share<N>(count, wide, threadIdx.x, blockDim.x, [&](auto many, i64 i) {
      auto p = load<many.value>(at + i);
      auto q = load<many.value>(to + i);
#pragma unroll
      for (int j = 0; j < many.value; ++j) {
        p.v[j] = nothing ? T(0) : exp(p.v[j] * by - top);
        total += p.v[j] * q.v[j];
      }
      store(at + i, p);
    });
    total = sum_over_row(total);
    share<N>(count, wide, threadIdx.x, blockDim.x, [&](auto many, i64 i) {
      auto p = load<many.value>(at + i);
      auto q = load<many.value>(to + i);
#pragma unroll
      for (int j = 0; j < many.value; ++j) q.v[j] = p.v[j] * (q.v[j] - total) * by;
      store(to + i, q);
    });
    if (row < rows)
      for (i64 i = count + threadIdx.x; i < keys; i += blockDim.x) at[i] = to[i] = T(0);
  }
}

// ---- attention without scores: for heads of at most D elements ----

// A block has kTile queries (or keys) and goes through the keys (or queries) in tiles of as many, of which a lane has one; a warp
// has kOwn of the block's. Rows of a tile begin four banks apart, so that lanes read 16 bytes of theirs without waiting.
constexpr int kTile = 32, kOwn = 4, kWarps = kTile / kOwn;
template <int D> struct alignas(16) Tile {
  float v[kTile][D + 4];
};
// What the warps say of their rows to each lane's.
struct alignas(16) Weights {
  float v[kWarps][kTile][kOwn];
};
// How the matrices of a stack lie: the distances of batches, of heads in them, and of rows in those.
struct Lies {
  i64 batch, head, row;
  __device__ __forceinline__ i64 matrix(i64 number, i64 heads) const {
    i64 b = quotient_of(number, heads);
    return b * batch + (number - b * heads) * head;
  }
};

// Read rows of a matrix from the first on, zeros where there are none.
template <int D> __device__ __forceinline__ void fetch(Tile<D> &tile, const float *from, i64 row, i64 first, i64 rows, i64 width) {
  for (int i = threadIdx.x; i < kTile * D; i += kTile * kWarps) {
    int r = i / D, c = i % D;
    tile.v[r][c] = first + r < rows && c < width ? from[(first + r) * row + c] : 0.0f;
  }
}
// The products of the warp's rows of one tile with the lane's of the other.
template <int D> __device__ __forceinline__ void products(float (&out)[kOwn], const Tile<D> &own, const Tile<D> &other) {
  int first = threadIdx.x / 32 * kOwn, lane = threadIdx.x & 31;
#pragma unroll
  for (int j = 0; j < kOwn; ++j) out[j] = 0.0f;
#pragma unroll 4
  for (int c = 0; c < D; c += 4) {
    auto y = load<4>(&other.v[lane][c]);
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      auto x = load<4>(&own.v[first + j][c]);
#pragma unroll
      for (int e = 0; e < 4; ++e) out[j] += x.v[e] * y.v[e];
    }
  }
}
// Add the rows of a tile, each times its weight, to the sums of the warp's rows, of which a lane has every 32nd column.
template <int D>
__device__ __forceinline__ void add_weighted(float (&sums)[kOwn][D / 32], Weights &shared, const float (&mine)[kOwn], const Tile<D> &tile) {
  int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
  Pack<float, kOwn> weights;
#pragma unroll
  for (int j = 0; j < kOwn; ++j) weights.v[j] = mine[j];
  store(shared.v[warp][lane], weights);
  __syncwarp();
#pragma unroll 4
  for (int r = 0; r < kTile; ++r) {
    auto by = load<kOwn>(shared.v[warp][r]);
#pragma unroll
    for (int i = 0; i < D / 32; ++i) {
      float value = tile.v[r][lane + 32 * i];
#pragma unroll
      for (int j = 0; j < kOwn; ++j) sums[j][i] += by.v[j] * value;
    }
  }
  __syncwarp();
}
// Write the sums of the warp's rows, as many as there are.
template <int D>
__device__ __forceinline__ void write(float *to, i64 row, i64 first, i64 rows, i64 width, const float (&sums)[kOwn][D / 32]) {
  int lane = threadIdx.x & 31;
#pragma unroll
  for (int j = 0; j < kOwn; ++j)
#pragma unroll
    for (int i = 0; i < D / 32; ++i)
      if (first + j < rows && lane + 32 * i < width) to[(first + j) * row + lane + 32 * i] = sums[j][i];
}
struct Greater {
  __device__ __forceinline__ float operator()(float x, float y) const { return x > y ? x : y; }
};

#define STACK(name) i64 name##_batch, i64 name##_head, i64 name##_row

template <class T, int D>
__global__ void __launch_bounds__(256)
    attend_tiles(const T *q, const T *k, const T *v, T *out, T *lse, STACK(q), STACK(k), STACK(v), STACK(out), i64 heads, i64 length,
                 i64 keys, i64 width, i64 depth, bool causal, double scale) {
  __shared__ Tile<D> queries, tile, values;
  __shared__ Weights shared;
  const float by = float(scale);
  i64 blocks = (length + kTile - 1) / kTile, number = quotient_of(blockIdx.x, blocks), begin = (blockIdx.x - number * blocks) * kTile;
  q += Lies{q_batch, q_head, q_row}.matrix(number, heads), k += Lies{k_batch, k_head, k_row}.matrix(number, heads);
  v += Lies{v_batch, v_head, v_row}.matrix(number, heads), out += Lies{out_batch, out_head, out_row}.matrix(number, heads);
  fetch(queries, q, q_row, begin, length, width);
  i64 own = begin + threadIdx.x / 32 * kOwn, last = causal && begin + kTile < keys ? begin + kTile : keys;
  float sums[kOwn][D / 32] = {}, top[kOwn], total[kOwn];
#pragma unroll
  for (int j = 0; j < kOwn; ++j) top[j] = -infinity<float>(), total[j] = 0.0f;
  for (i64 first = 0; first < last; first += kTile) {
    __syncthreads();  // the tiles before may still be read
    fetch(tile, k, k_row, first, keys, width), fetch(values, v, v_row, first, keys, depth);
    __syncthreads();
    float p[kOwn];
    products(p, queries, tile);
    i64 key = first + (threadIdx.x & 31);
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      float score = key < keys && !(causal && key > own + j) ? p[j] * by : -infinity<float>();
      float peak = over_warp(Greater()(score, top[j]), Greater());
      p[j] = score == -infinity<float>() ? 0.0f : exp(score - peak);
      // Where both are -inf their difference would be nan.
      float fade = top[j] == peak ? 1.0f : exp(top[j] - peak);
      total[j] = total[j] * fade + p[j], top[j] = peak;
#pragma unroll
      for (int i = 0; i < D / 32; ++i) sums[j][i] *= fade;
    }
    add_weighted(sums, shared, p, values);
  }
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    total[j] = over_warp(total[j], Plus());
    // A query that may look at nothing, since all its scores are -inf, has no weights.
    bool nothing = total[j] == 0.0f;
    if (own + j < length && (threadIdx.x & 31) == 0) lse[number * length + own + j] = nothing ? -infinity<float>() : log(total[j]) + top[j];
#pragma unroll
    for (int i = 0; i < D / 32; ++i) sums[j][i] = nothing ? 0.0f : sums[j][i] / total[j];
  }
  write<D>(out, out_row, own, length, depth, sums);
}

// The gradient of queries; and for that of keys and values, `inner`: of each query the product of its result and the gradient of that.
template <class T, int D>
__global__ void __launch_bounds__(256)
    attend_grad_queries(const T *g, const T *q, const T *k, const T *v, const T *out, const T *lse, T *inner, T *of_q, STACK(g), STACK(q),
                        STACK(k), STACK(v), STACK(out), STACK(of_q), i64 heads, i64 length, i64 keys, i64 width, i64 depth, bool causal,
                        double scale) {
  __shared__ Tile<D> queries, pulled, tile, values;
  __shared__ Weights shared;
  const float by = float(scale);
  i64 blocks = (length + kTile - 1) / kTile, number = quotient_of(blockIdx.x, blocks), begin = (blockIdx.x - number * blocks) * kTile;
  g += Lies{g_batch, g_head, g_row}.matrix(number, heads), q += Lies{q_batch, q_head, q_row}.matrix(number, heads);
  k += Lies{k_batch, k_head, k_row}.matrix(number, heads), v += Lies{v_batch, v_head, v_row}.matrix(number, heads);
  out += Lies{out_batch, out_head, out_row}.matrix(number, heads), of_q += Lies{of_q_batch, of_q_head, of_q_row}.matrix(number, heads);
  fetch(queries, q, q_row, begin, length, width), fetch(pulled, g, g_row, begin, length, depth);
  int lane = threadIdx.x & 31;
  i64 own = begin + threadIdx.x / 32 * kOwn, last = causal && begin + kTile < keys ? begin + kTile : keys;
  float sums[kOwn][D / 32] = {}, top[kOwn], whole[kOwn];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < kOwn; ++j) {
    bool here = own + j < length;
    top[j] = here ? lse[number * length + own + j] : -infinity<float>(), whole[j] = 0.0f;
    for (int c = lane; here && c < depth; c += 32) whole[j] += pulled.v[own + j - begin][c] * out[(own + j) * out_row + c];
    whole[j] = over_warp(whole[j], Plus());
    if (here && lane == 0) inner[number * length + own + j] = whole[j];
  }
  for (i64 first = 0; first < last; first += kTile) {
    __syncthreads();
    fetch(tile, k, k_row, first, keys, width), fetch(values, v, v_row, first, keys, depth);
    __syncthreads();
    float p[kOwn], slope[kOwn];
    products(p, queries, tile), products(slope, pulled, values);
    i64 key = first + lane;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      bool seen = key < keys && !(causal && key > own + j) && top[j] != -infinity<float>();
      p[j] = seen ? exp(p[j] * by - top[j]) * (slope[j] - whole[j]) * by : 0.0f;
    }
    add_weighted(sums, shared, p, tile);
  }
  write<D>(of_q, of_q_row, own, length, width, sums);
}

template <class T, int D>
__global__ void __launch_bounds__(256)
    attend_grad_keys(const T *g, const T *q, const T *k, const T *v, const T *lse, const T *inner, T *of_k, T *of_v, STACK(g), STACK(q),
                     STACK(k), STACK(v), STACK(of_k), STACK(of_v), i64 heads, i64 length, i64 keys, i64 width, i64 depth, bool causal,
                     double scale) {
  __shared__ Tile<D> queries, pulled, tile, values;
  __shared__ Weights shared;
  const float by = float(scale);
  i64 blocks = (keys + kTile - 1) / kTile, number = quotient_of(blockIdx.x, blocks), begin = (blockIdx.x - number * blocks) * kTile;
  g += Lies{g_batch, g_head, g_row}.matrix(number, heads), q += Lies{q_batch, q_head, q_row}.matrix(number, heads);
  k += Lies{k_batch, k_head, k_row}.matrix(number, heads), v += Lies{v_batch, v_head, v_row}.matrix(number, heads);
  of_k += Lies{of_k_batch, of_k_head, of_k_row}.matrix(number, heads), of_v += Lies{of_v_batch, of_v_head, of_v_row}.matrix(number, heads);
  fetch(tile, k, k_row, begin, keys, width), fetch(values, v, v_row, begin, keys, depth);
  i64 own = begin + threadIdx.x / 32 * kOwn;
  float of_keys[kOwn][D / 32] = {}, of_values[kOwn][D / 32] = {};
  for (i64 first = causal ? begin : 0; first < length; first += kTile) {  // queries before see none of these keys
    __syncthreads();
    fetch(queries, q, q_row, first, length, width), fetch(pulled, g, g_row, first, length, depth);
    __syncthreads();
    float p[kOwn], slope[kOwn];
    products(p, tile, queries), products(slope, values, pulled);
    i64 query = first + (threadIdx.x & 31);
    float top = query < length ? lse[number * length + query] : -infinity<float>();
    float whole = query < length ? inner[number * length + query] : 0.0f;
#pragma unroll
    for (int j = 0; j < kOwn; ++j) {
      bool seen = own + j < keys && !(causal && own + j > query) && top != -infinity<float>();
      p[j] = seen ? exp(p[j] * by - top) : 0.0f;
      slope[j] = seen ? p[j] * (slope[j] - whole) * by : 0.0f;
    }
    add_weighted(of_values, shared, p, pulled);
    add_weighted(of_keys, shared, slope, queries);
  }
  write<D>(of_k, of_k_row, own, keys, width, of_keys);
  write<D>(of_v, of_v_row, own, keys, depth, of_values);
}
#undef STACK
