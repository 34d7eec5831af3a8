// Normalisation of rows (layer_norm, rms_norm, group_norm), with its gradients; that of channels is in channels.cu.
// Means and variances take two walks, as one would cancel digits; the second finds what the first brought to a cache.

// ---- rows of n contiguous elements; blockDim is (threads of a row, rows of a block) ----

// Which weight an element has: its place in the row, or its channel, of which each has `inner` elements in a row.
template <bool CHANNELS> __device__ __forceinline__ i64 place(i64 row, i64 i, i64 n, i64 groups, i64 inner) {
  return CHANNELS ? (row % groups * n + i) / inner : i;
}

// A thread keeps its share of a row, where that is not more than these: each row is then read once.
template <class T> constexpr int kKept = sizeof(T) < 8 ? 128 / int(sizeof(T)) / kLanes<T> / (sizeof(T) < 4 ? 2 : 1) : 4;

template <class T, class P, bool RMS, bool CHANNELS>
__global__ void __launch_bounds__(1024) norm_rows(const T *x, const P *weight, const P *bias, T *out, wide_t<T> *mean, wide_t<T> *rstd,
                          i64 rows, i64 n, i64 groups, i64 inner, double eps) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>, K = kKept<T> / (CHANNELS ? 2 : 1);  // divisions take registers
  const bool kept = n % N == 0 && n <= i64(blockDim.x) * N * K && aligned(x) && aligned(out);
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y;
    bool inside = row < rows;
    i64 length = inside ? n : 0;
    const T *from = x + row * n;
    T *to = out + row * n;
    bool wide = aligned(from) && aligned(to);
    Pack<T, N> held[K];
    auto place_of = [&](int l) { return (l * int(blockDim.x) + int(threadIdx.x)) * N; };
#pragma unroll
    for (int l = 0; l < K; ++l)
      if (kept && place_of(l) < length) held[l] = load<N>(from + place_of(l));
    auto walk = [&](auto f) {
      if (kept) {
#pragma unroll
        for (int l = 0; l < K; ++l)
          if (place_of(l) < length) f(Count<N>(), i64(place_of(l)), held[l]);
      } else {
        share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) { f(count, i, load<count.value>(from + i)); });
      }
    };
    W total = 0, middle = 0;
    if (!RMS) {
      walk([&](auto count, i64, const auto &p) {
        for (int j = 0; j < count.value; ++j) total += W(widen(p.v[j]));
      });
      middle = sum_over_row(total) / W(n);
      total = 0;
    }
    walk([&](auto count, i64, const auto &p) {
      for (int j = 0; j < count.value; ++j) {
        W d = W(widen(p.v[j])) - middle;
        total += d * d;
      }
    });
    W scale = W(1) / sqrt(sum_over_row(total) / W(n) + W(eps));
    if (inside && threadIdx.x == 0) {
      if (!RMS) mean[row] = middle;
      rstd[row] = scale;
    }
    walk([&](auto count, i64 i, auto p) {
      for (int j = 0; j < count.value; ++j) {
        W y = (W(widen(p.v[j])) - middle) * scale;
        i64 at = place<CHANNELS>(row, i + j, n, groups, inner);
        if (weight) y *= W(widen(weight[at]));
        if (bias) y += W(widen(bias[at]));
        p.v[j] = narrow<T>(y);
      }
      store(to + i, p);
    });
  }
}

template <class T, class P, bool RMS, bool CHANNELS>
__global__ void __launch_bounds__(1024) norm_grad_rows(const T *g, const T *x, const P *weight, const wide_t<T> *mean, const wide_t<T> *rstd,
                               T *out, i64 rows, i64 n, i64 groups, i64 inner) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y;
    bool inside = row < rows;
    i64 length = inside ? n : 0;
    const T *of_g = g + row * n, *of_x = x + row * n;
    T *to = out + row * n;
    bool wide = aligned(of_g) && aligned(of_x) && aligned(to);
    W middle = RMS || !inside ? W(0) : mean[row], scale = inside ? rstd[row] : W(0);
    W sum = 0, along = 0;
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(of_g + i);
      auto q = load<count.value>(of_x + i);
      for (int j = 0; j < count.value; ++j) {
        W d = widen(p.v[j]);
        if (weight) d *= W(widen(weight[place<CHANNELS>(row, i + j, n, groups, inner)]));
        sum += d;
        along += d * ((W(widen(q.v[j])) - middle) * scale);
      }
    });
    along = sum_over_row(along) / W(n);
    sum = RMS ? W(0) : sum_over_row(sum) / W(n);
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(of_g + i);
      auto q = load<count.value>(of_x + i);
      for (int j = 0; j < count.value; ++j) {
        W d = widen(p.v[j]);
        if (weight) d *= W(widen(weight[place<CHANNELS>(row, i + j, n, groups, inner)]));
        p.v[j] = narrow<T>(scale * (d - sum - (W(widen(q.v[j])) - middle) * scale * along));
      }
      store(to + i, p);
    });
  }
}

// The same with the gradients of weight and bias, which read what this does: a warp has every so many rows, of which a lane
// keeps its E elements and adds up its share of the columns; parts is (gridDim.x, 2, n). Blocks are (32, 8).
template <class T, class P, bool RMS, int E>
__global__ void __launch_bounds__(256) norm_grads_rows(const T *g, const T *x, const P *weight, const wide_t<T> *mean, const wide_t<T> *rstd,
                                                       T *out, wide_t<T> *parts, i64 rows, i64 n) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  __shared__ W shared[2][8][33];
  bool wide = n % N == 0 && aligned(g) && aligned(x) && aligned(out);
  int lane = threadIdx.x, warp = threadIdx.y;
  // Lanes have packs side by side, or elements.
  auto column = [&](int e) { return wide ? (e / N * 32 + lane) * N + e % N : e * 32 + lane; };
  W sums[E], alongs[E];
#pragma unroll
  for (int e = 0; e < E; ++e) sums[e] = alongs[e] = W(0);
  for (i64 row = i64(blockIdx.x) * 8 + warp; row < rows; row += i64(gridDim.x) * 8) {
    const T *of_g = g + row * n, *of_x = x + row * n;
    W middle = RMS ? W(0) : mean[row], scale = rstd[row], sum = W(0), along = W(0);
    W pulled[E], normal[E];
#pragma unroll
    for (int e = 0; e < E; e += N) {
      Pack<T, N> p{}, q{};
      if (wide) {
        if (column(e) < n) p = load<N>(of_g + column(e)), q = load<N>(of_x + column(e));
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (column(e + j) < n) p.v[j] = of_g[column(e + j)], q.v[j] = of_x[column(e + j)];
      }
#pragma unroll
      for (int j = 0; j < N; ++j) {
        bool here = column(e + j) < n;
        W d = here ? W(widen(p.v[j])) : W(0), y = here ? (W(widen(q.v[j])) - middle) * scale : W(0);
        sums[e + j] += d, alongs[e + j] += d * y;
        if (weight && here) d *= W(widen(weight[column(e + j)]));
        pulled[e + j] = d, normal[e + j] = y;
        sum += d, along += d * y;
      }
    }
    along = over_warp(along, Plus()) / W(n);
    sum = RMS ? W(0) : over_warp(sum, Plus()) / W(n);
    T *to = out + row * n;
#pragma unroll
    for (int e = 0; e < E; e += N) {
      Pack<T, N> p;
#pragma unroll
      for (int j = 0; j < N; ++j) p.v[j] = narrow<T>(scale * (pulled[e + j] - sum - normal[e + j] * along));
      if (wide) {
        if (column(e) < n) store(to + column(e), p);
      } else {
#pragma unroll
        for (int j = 0; j < N; ++j)
          if (column(e + j) < n) to[column(e + j)] = p.v[j];
      }
    }
  }
  W *part = parts + i64(blockIdx.x) * 2 * n;
#pragma unroll
  for (int e = 0; e < E; ++e) {
    __syncthreads();  // the last columns may still be read
    shared[0][warp][lane] = sums[e], shared[1][warp][lane] = alongs[e];
    __syncthreads();
    if (warp > 1 || column(e) >= n) continue;
    W total = W(0);
    for (int i = 0; i < 8; ++i) total += shared[warp][i][lane];
    part[warp * n + column(e)] = total;
  }
}

// Sums over rows of g and of g times the normal x, for part blockIdx.y of the rows: parts is (gridDim.y, 2, n).
// Blocks are 32 columns by 8 rows.
template <class T, bool RMS>
__global__ void norm_sums_columns(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *rstd,
                                  wide_t<T> *parts, i64 rows, i64 n) {
  typedef wide_t<T> W;
  __shared__ W sums[8][33], alongs[8][33];
  i64 column = i64(blockIdx.x) * 32 + threadIdx.x;
  i64 low = rows * blockIdx.y / gridDim.y, high = rows * (blockIdx.y + 1) / gridDim.y;
  W sum = 0, along = 0;
  for (i64 row = low + threadIdx.y; column < n && row < high; row += 8) {
    W d = widen(g[row * n + column]), middle = RMS ? W(0) : mean[row];
    sum += d;
    along += d * ((W(widen(x[row * n + column])) - middle) * rstd[row]);
  }
  sums[threadIdx.y][threadIdx.x] = sum, alongs[threadIdx.y][threadIdx.x] = along;
  __syncthreads();
  if (threadIdx.y || column >= n) return;
  for (int i = 1; i < 8; ++i) sum += sums[i][threadIdx.x], along += alongs[i][threadIdx.x];
  parts[i64(blockIdx.y) * 2 * n + column] = sum;
  parts[(i64(blockIdx.y) * 2 + 1) * n + column] = along;
}

// Add up parts (count, 2, n): into sums (2, n), and into the gradients of bias and weight where they are wanted. A warp
// adds up one number; blocks are (32, 8).
template <class T, class P>
__global__ void fold_parts(const wide_t<T> *parts, wide_t<T> *sums, P *bias, P *weight, i64 count, i64 n) {
  typedef wide_t<T> W;
  for (i64 i = i64(blockIdx.x) * blockDim.y + threadIdx.y; i < 2 * n; i += i64(gridDim.x) * blockDim.y) {
    W total = 0;
    for (i64 part = threadIdx.x; part < count; part += 32) total += parts[part * 2 * n + i];
    total = over_warp(total, Plus());
    if (threadIdx.x) continue;
    if (sums) sums[i] = total;
    if (i < n && bias) bias[i] = narrow<P>(total);
    if (i >= n && weight) weight[i - n] = narrow<P>(total);
  }
}
