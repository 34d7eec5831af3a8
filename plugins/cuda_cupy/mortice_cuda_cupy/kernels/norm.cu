// Normalisation: of rows (layer_norm, rms_norm, group_norm) and of channels (batch_norm), with their gradients.
// Means and variances take two walks, as one would cancel digits; the second finds what the first brought to a cache.

// ---- rows of n contiguous elements; blockDim is (threads of a row, rows of a block) ----

// Which weight an element has: its place in the row, or its channel, of which each has `inner` elements in a row.
template <bool CHANNELS> __device__ __forceinline__ i64 place(i64 row, i64 i, i64 n, i64 groups, i64 inner) {
  return CHANNELS ? (row % groups * n + i) / inner : i;
}

template <class T, class P, bool RMS, bool CHANNELS>
__global__ void __launch_bounds__(1024) norm_rows(const T *x, const P *weight, const P *bias, T *out, wide_t<T> *mean, wide_t<T> *rstd,
                          i64 rows, i64 n, i64 groups, i64 inner, double eps) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y;
    bool inside = row < rows;
    i64 length = inside ? n : 0;
    const T *from = x + row * n;
    T *to = out + row * n;
    bool wide = aligned(from) && aligned(to);
    W total = 0, middle = 0;
    if (!RMS) {
      share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
        auto p = load<count.value>(from + i);
        for (int j = 0; j < count.value; ++j) total += W(widen(p.v[j]));
      });
      middle = sum_over_row(total) / W(n);
      total = 0;
    }
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(from + i);
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
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(from + i);
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

// ---- channels: x is (samples, channels, inner); blockIdx is (channel, part of its samples * inner elements) ----

// Parts are made of units: 16 bytes where these lie in one channel of one sample, else elements.
template <class T> __device__ __forceinline__ int unit_of(i64 inner) { return inner % kLanes<T> == 0 ? kLanes<T> : 1; }
__device__ __forceinline__ i64 part_start(i64 units, i64 part, i64 parts) { return units * part / parts; }
// Call f(Count<N>, at, sample) for what is this thread's of this block's part: N elements from x[at] on.
template <class T, class F> __device__ __forceinline__ void each_of_channel(i64 samples, i64 channels, i64 inner, F f) {
  constexpr int N = kLanes<T>;
  i64 channel = blockIdx.x, unit = unit_of<T>(inner), units = samples * (inner / unit);
  i64 low = part_start(units, blockIdx.y, gridDim.y), high = part_start(units, blockIdx.y + 1, gridDim.y);
  if (unit == N) {
#pragma unroll(N > 4 ? 2 : 4)
    for (i64 u = low + threadIdx.x; u < high; u += blockDim.x) {
      i64 sample = quotient_of(u * N, inner);
      f(Count<N>(), (sample * channels + channel) * inner + (u * N - sample * inner), sample);
    }
  } else {
#pragma unroll 4
    for (i64 u = low + threadIdx.x; u < high; u += blockDim.x) {
      i64 sample = quotient_of(u, inner);
      f(Count<1>(), (sample * channels + channel) * inner + (u - sample * inner), sample);
    }
  }
}
template <int N, class T> __device__ __forceinline__ Pack<T, N> load_any(const T *at, bool wide) {
  if (wide) return load<N>(at);
  Pack<T, N> p;
#pragma unroll
  for (int j = 0; j < N; ++j) p.v[j] = at[j];
  return p;
}
template <int N, class T> __device__ __forceinline__ void store_any(T *at, const Pack<T, N> &p, bool wide) {
  if (wide) return store(at, p);
#pragma unroll
  for (int j = 0; j < N; ++j) at[j] = p.v[j];
}

// Mean and squared distances of the block's part.
template <class T> __device__ __forceinline__ Moments<wide_t<T>> moments_of_part(const T *x, i64 samples, i64 channels, i64 inner) {
  bool wide = aligned(x);
  Lanes<wide_t<T>, kLanes<T>> lanes;
  each_of_channel<T>(samples, channels, inner,
                     [&](auto count, i64 at, i64) { lanes.take(load_any<count.value>(x + at, wide)); });
  return joined_over_row(lanes.all());
}
// parts is (gridDim.y, 2, channels): the mean of each part, and the sum of squared distances from it.
template <class T>
__global__ void __launch_bounds__(256) channel_moments(const T *x, wide_t<T> *parts, i64 samples, i64 channels, i64 inner) {
  auto all = moments_of_part(x, samples, channels, inner);
  if (threadIdx.x) return;
  parts[i64(blockIdx.y) * 2 * channels + blockIdx.x] = all.mean;
  parts[(i64(blockIdx.y) * 2 + 1) * channels + blockIdx.x] = all.apart;
}

// The parts of a channel, of which there are `count`, joined: every thread of a warp gets the result.
template <class T>
__device__ __forceinline__ Moments<wide_t<T>> joined_parts(const wide_t<T> *parts, i64 c, i64 count, i64 per, i64 channels, i64 inner) {
  typedef wide_t<T> W;
  i64 unit = unit_of<T>(inner), units = per / unit;
  Moments<W> all{W(0), W(0), 0};
  for (i64 i = threadIdx.x & 31; i < count; i += 32) {
    i64 more = (part_start(units, i + 1, count) - part_start(units, i, count)) * unit;
    all = joined(all, Moments<W>{parts[i * 2 * channels + c], parts[(i * 2 + 1) * channels + c], more});
  }
  return joined_over_warp(all);
}
// A warp joins a channel's. Blocks are (32, 8).
template <class T>
__global__ void merge_moments(const wide_t<T> *parts, wide_t<T> *mean, wide_t<T> *var, i64 count, i64 per, i64 channels, i64 inner) {
  i64 c = i64(blockIdx.x) * blockDim.y + threadIdx.y;
  if (c >= channels) return;
  auto all = joined_parts<T>(parts, c, count, per, channels, inner);
  if (threadIdx.x == 0) mean[c] = all.mean, var[c] = all.apart / wide_t<T>(per);
}

// The inverse of the standard deviation, from the variance; or `var` itself where it is that already, with a negative eps.
template <class W> __device__ __forceinline__ W inverse(W var, double eps) { return eps < 0 ? var : W(1) / sqrt(var + W(eps)); }

// Sums of g and of g times the normal x, of the block's part. Channel c of sample s has the statistics number s * groups + c /
// (channels / groups): groups is 0 where all samples share those of their channel.
template <class T>
__device__ __forceinline__ Pack<wide_t<T>, 2> sums_of_part(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var, i64 samples,
                                                           i64 channels, i64 inner, i64 groups, double eps) {
  typedef wide_t<T> W;
  i64 channel = blockIdx.x, of_group = groups ? channel / (channels / groups) : channel;
  bool wide = aligned(g) && aligned(x);
  W middle = W(0), scale = W(0), sum = W(0), along = W(0);
  if (!groups) middle = mean[channel], scale = inverse(var[channel], eps);
  each_of_channel<T>(samples, channels, inner, [&](auto count, i64 at, i64 sample) {
    auto p = load_any<count.value>(g + at, wide);
    auto q = load_any<count.value>(x + at, wide);
    if (groups) middle = mean[sample * groups + of_group], scale = inverse(var[sample * groups + of_group], eps);
#pragma unroll
    for (int j = 0; j < count.value; ++j) {
      W d = widen(p.v[j]);
      sum += d;
      along += d * ((W(widen(q.v[j])) - middle) * scale);
    }
  });
  sum = sum_over_row(sum);
  along = sum_over_row(along);
  return {sum, along};
}
template <class T>
__global__ void __launch_bounds__(256) channel_sums(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var, wide_t<T> *parts,
                                                    i64 samples, i64 channels, i64 inner, i64 groups, double eps) {
  auto sums = sums_of_part(g, x, mean, var, samples, channels, inner, groups, eps);
  if (threadIdx.x) return;
  parts[i64(blockIdx.y) * 2 * channels + blockIdx.x] = sums.v[0];
  parts[(i64(blockIdx.y) * 2 + 1) * channels + blockIdx.x] = sums.v[1];
}

// Add up parts (count, 2, n): into sums (2, n), and into the gradients of bias and weight where they are wanted. A warp
// adds up one number; blocks are (32, 8).
template <class T>
__global__ void fold_parts(const wide_t<T> *parts, wide_t<T> *sums, T *bias, T *weight, i64 count, i64 n) {
  typedef wide_t<T> W;
  for (i64 i = i64(blockIdx.x) * blockDim.y + threadIdx.y; i < 2 * n; i += i64(gridDim.x) * blockDim.y) {
    W total = 0;
    for (i64 part = threadIdx.x; part < count; part += 32) total += parts[part * 2 * n + i];
    total = over_warp(total, Plus());
    if (threadIdx.x) continue;
    if (sums) sums[i] = total;
    if (i < n && bias) bias[i] = narrow<T>(total);
    if (i >= n && weight) weight[i - n] = narrow<T>(total);
  }
}

__device__ __forceinline__ i64 channel_of(i64 i, i64 channels, i64 inner) {
  i64 plane = quotient_of(i, inner);
  return plane - quotient_of(plane, channels) * channels;
}

template <class T>
__global__ void channel_apply(const T *x, const wide_t<T> *mean, const wide_t<T> *var, const wide_t<T> *weight,
                              const wide_t<T> *bias, T *out, i64 n, i64 channels, i64 inner, double eps) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  bool wide = inner % N == 0 && aligned(x) && aligned(out);  // a vector lies in one channel
  share<N>(n, wide, thread_of_grid(), threads_of_grid(), [&](auto count, i64 i) {
    i64 c = channel_of(i, channels, inner);
    W middle = mean[c], scale = inverse(var[c], eps), shift = bias ? bias[c] : W(0);
    if (weight) scale *= weight[c];
    auto p = load<count.value>(x + i);
#pragma unroll
    for (int j = 0; j < count.value; ++j) p.v[j] = narrow<T>((W(widen(p.v[j])) - middle) * scale + shift);
    store(out + i, p);
  });
}

// The gradient of batch_norm's input; sums is (2, channels), over `per` elements each.
template <class T>
__global__ void channel_grad(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var,
                             const wide_t<T> *weight, const wide_t<T> *sums, T *out, i64 n, i64 channels, i64 inner, double eps) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  bool wide = inner % N == 0 && aligned(g) && aligned(x) && aligned(out);
  W per = W(n / channels);
  share<N>(n, wide, thread_of_grid(), threads_of_grid(), [&](auto count, i64 i) {
    i64 c = channel_of(i, channels, inner);
    W middle = mean[c], scale = inverse(var[c], eps), sum = sums[c] / per, along = sums[channels + c] / per;
    W whole = weight ? scale * weight[c] : scale;
    auto p = load<count.value>(g + i);
    auto q = load<count.value>(x + i);
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      p.v[j] = narrow<T>(whole * (W(widen(p.v[j])) - sum - (W(widen(q.v[j])) - middle) * scale * along));
    store(out + i, p);
  });
}

// The same where a channel's elements lie side by side: the blocks of a channel, one for each part, join its parts
// themselves, all alike, which saves a launch; the first of them writes what the parts make. Without parts there is one block for
// each channel, which adds up what it then goes through again: of few elements.
template <class T>
__global__ void __launch_bounds__(256) joined_apply(const T *x, const wide_t<T> *parts, wide_t<T> *mean, wide_t<T> *var,
                                                    const wide_t<T> *weight, const wide_t<T> *bias, T *out, i64 samples,
                                                    i64 channels, i64 inner, double eps) {
  typedef wide_t<T> W;
  i64 c = blockIdx.x, per = samples * inner;
  auto all = parts ? joined_parts<T>(parts, c, gridDim.y, per, channels, inner) : moments_of_part(x, samples, channels, inner);
  W middle = all.mean, spread = all.apart / W(per), scale = inverse(spread, eps), shift = bias ? bias[c] : W(0);
  if (blockIdx.y == 0 && threadIdx.x == 0) mean[c] = middle, var[c] = spread;
  if (weight) scale *= weight[c];
  bool wide = aligned(x) && aligned(out);
  each_of_channel<T>(samples, channels, inner, [&](auto count, i64 at, i64) {
    auto p = load_any<count.value>(x + at, wide);
#pragma unroll
    for (int j = 0; j < count.value; ++j) p.v[j] = narrow<T>((W(widen(p.v[j])) - middle) * scale + shift);
    store_any(out + at, p, wide);
  });
}
template <class T>
__global__ void __launch_bounds__(256) joined_grad(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var,
                                                   const wide_t<T> *weight, const wide_t<T> *parts, T *out, T *of_bias,
                                                   T *of_weight, i64 samples, i64 channels, i64 inner, double eps) {
  typedef wide_t<T> W;
  i64 c = blockIdx.x;
  W sum = W(0), along = W(0), per = W(samples * inner);
  if (parts) {
    for (i64 part = threadIdx.x & 31; part < gridDim.y; part += 32)
      sum += parts[part * 2 * channels + c], along += parts[(part * 2 + 1) * channels + c];
    sum = over_warp(sum, Plus()), along = over_warp(along, Plus());
  } else {
    auto sums = sums_of_part(g, x, mean, var, samples, channels, inner, i64(0), eps);
    sum = sums.v[0], along = sums.v[1];
  }
  if (blockIdx.y == 0 && threadIdx.x == 0) {
    if (of_bias) of_bias[c] = narrow<T>(sum);
    if (of_weight) of_weight[c] = narrow<T>(along);
  }
  sum /= per, along /= per;
  W middle = mean[c], scale = inverse(var[c], eps), whole = weight ? scale * weight[c] : scale;
  bool wide = aligned(g) && aligned(x) && aligned(out);
  each_of_channel<T>(samples, channels, inner, [&](auto count, i64 at, i64) {
    auto p = load_any<count.value>(g + at, wide);
    auto q = load_any<count.value>(x + at, wide);
#pragma unroll
    for (int j = 0; j < count.value; ++j)
      p.v[j] = narrow<T>(whole * (W(widen(p.v[j])) - sum - (W(widen(q.v[j])) - middle) * scale * along));
    store_any(out + at, p, wide);
  });
}

// Products are rounded before they are added, as everywhere.
__device__ __forceinline__ float rounded_product(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double rounded_product(double x, double y) { return __dmul_rn(x, y); }
// Two pairs of vectors at once: the running means and variances.
template <class T>
__global__ void blend(T *x, const T *y, T *x2, const T *y2, i64 n, double share, double other, double other2) {
  typedef wide_t<T> W;
  auto made = [](T a, W by, T b, W with) {
    return narrow<T>(W(widen(narrow<T>(rounded_product(W(widen(a)), by)))) + W(widen(narrow<T>(rounded_product(W(widen(b)), with)))));
  };
  for (i64 i = thread_of_grid(); i < n; i += threads_of_grid()) {
    x[i] = made(x[i], W(share), y[i], W(other));
    x2[i] = made(x2[i], W(share), y2[i], W(other2));
  }
}
