// Normalisation of channels (batch_norm), with its gradients, and the channels' sums of other norms. Where a channel's elements are few
// and apart in memory, threads have channels instead.

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
template <class T, class P>
__global__ void __launch_bounds__(256) joined_grad(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var,
                                                   const wide_t<T> *weight, const wide_t<T> *parts, T *out, P *of_bias,
                                                   P *of_weight, i64 samples, i64 channels, i64 inner, double eps) {
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
    if (of_bias) of_bias[c] = narrow<P>(sum);
    if (of_weight) of_weight[c] = narrow<P>(along);
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

// ---- channels side by side: x is (rows, channels). Of the 256 threads of a block `across` lie next to each other, each with the
// same M channels in all its rows, and the rest below; blockIdx is (channels, part of the rows). Joined and added up as above ----

struct Strip {
  i64 channel, row, last;
  int line, lines;
};
template <int M> __device__ __forceinline__ Strip strip_of(i64 rows, i64 channels, i64 across) {
  int line = int(threadIdx.x / unsigned(across)), lines = int(blockDim.x / unsigned(across));
  i64 channel = (i64(blockIdx.x) * across + threadIdx.x % unsigned(across)) * M, last = part_start(rows, blockIdx.y + 1, gridDim.y);
  bool none = channel >= channels || line >= lines;
  return {none ? 0 : channel, none ? last : part_start(rows, blockIdx.y, gridDim.y) + line, last, line, lines};
}
// Call f(at, what fetch(at) gives) for the thread's rows: several loads are on their way before the first is used.
template <int Ahead, class F, class G> __device__ __forceinline__ void each_row(const Strip &s, i64 channels, F fetch, G f) {
  const i64 step = s.lines * channels, end = s.last * channels;
  for (i64 at = s.row * channels; at < end; at += Ahead * step) {
    decltype(fetch(at)) held[Ahead];
#pragma unroll
    for (int l = 0; l < Ahead; ++l)
      if (at + l * step < end) held[l] = fetch(at + l * step + s.channel);
#pragma unroll
    for (int l = 0; l < Ahead; ++l)
      if (at + l * step < end) f(at + l * step + s.channel, held[l]);
  }
}
template <class T, int M> struct Pair {
  Pack<T, M> g, x;
};
template <class W, int M> struct Shared {
  W a[M * 256], b[M * 256];
  int count[256];
};

template <class T, int M>
__device__ __forceinline__ void strip_moments(const T *x, wide_t<T> *parts, i64 rows, i64 channels, i64 across, Shared<wide_t<T>, kLanes<T>> &shared) {
  typedef wide_t<T> W;
  bool wide = M > 1 && aligned(x);
  Strip s = strip_of<M>(rows, channels, across);
  Lanes<W, M> lanes;
  each_row<4>(s, channels, [&](i64 at) { return load_any<M>(x + at, wide); }, [&](i64, const auto &p) { lanes.take(p); });
  int count = lanes.packs, mine = int(threadIdx.x);
  for (int many = s.lines; many > 1; many = (many + 1) / 2) {
    int half = (many + 1) / 2, other = mine + half * int(across);
    __syncthreads();  // what was there before may still be read
    shared.count[mine] = count;
#pragma unroll
    for (int j = 0; j < M; ++j) shared.a[j * 256 + mine] = lanes.mean[j], shared.b[j * 256 + mine] = lanes.apart[j];
    __syncthreads();
    if (s.line + half >= many) continue;
#pragma unroll
    for (int j = 0; j < M; ++j) {
      auto all = joined(Moments<W>{lanes.mean[j], lanes.apart[j], count},
                        Moments<W>{shared.a[j * 256 + other], shared.b[j * 256 + other], shared.count[other]});
      lanes.mean[j] = all.mean, lanes.apart[j] = all.apart;
    }
    count += shared.count[other];
  }
  if (s.line || (i64(blockIdx.x) * across + mine) * M >= channels) return;
  W *part = parts + i64(blockIdx.y) * 2 * channels + s.channel;
#pragma unroll
  for (int j = 0; j < M; ++j) part[j] = lanes.mean[j], part[channels + j] = lanes.apart[j];
}
template <class T>
__global__ void __launch_bounds__(256) columns_moments(const T *x, wide_t<T> *parts, i64 rows, i64 channels, i64 across, i64 packs) {
  __shared__ Shared<wide_t<T>, kLanes<T>> shared;
  if (packs)
    strip_moments<T, kLanes<T>>(x, parts, rows, channels, across, shared);
  else
    strip_moments<T, 1>(x, parts, rows, channels, across, shared);
}

template <class T, int M>
__device__ __forceinline__ void strip_sums(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var, wide_t<T> *parts, i64 rows,
                                           i64 channels, i64 across, double eps, Shared<wide_t<T>, kLanes<T>> &shared) {
  typedef wide_t<T> W;
  bool wide = M > 1 && aligned(g) && aligned(x);
  Strip s = strip_of<M>(rows, channels, across);
  W middle[M], scale[M], sum[M], along[M];
#pragma unroll
  for (int j = 0; j < M; ++j)
    middle[j] = mean[s.channel + j], scale[j] = inverse(var[s.channel + j], eps), sum[j] = along[j] = W(0);
  each_row<2>(s, channels, [&](i64 at) { return Pair<T, M>{load_any<M>(g + at, wide), load_any<M>(x + at, wide)}; },
              [&](i64, const auto &p) {
#pragma unroll
    for (int j = 0; j < M; ++j) {
      W d = widen(p.g.v[j]);
      sum[j] += d, along[j] += d * ((W(widen(p.x.v[j])) - middle[j]) * scale[j]);
    }
  });
  int mine = int(threadIdx.x);
  for (int many = s.lines; many > 1; many = (many + 1) / 2) {
    int half = (many + 1) / 2, other = mine + half * int(across);
    __syncthreads();  // what was there before may still be read
#pragma unroll
    for (int j = 0; j < M; ++j) shared.a[j * 256 + mine] = sum[j], shared.b[j * 256 + mine] = along[j];
    __syncthreads();
    if (s.line + half >= many) continue;
#pragma unroll
    for (int j = 0; j < M; ++j) sum[j] += shared.a[j * 256 + other], along[j] += shared.b[j * 256 + other];
  }
  if (s.line || (i64(blockIdx.x) * across + mine) * M >= channels) return;
  W *part = parts + i64(blockIdx.y) * 2 * channels + s.channel;
#pragma unroll
  for (int j = 0; j < M; ++j) part[j] = sum[j], part[channels + j] = along[j];
}
template <class T>
__global__ void __launch_bounds__(256) columns_sums(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var, wide_t<T> *parts,
                                                    i64 rows, i64 channels, i64 across, i64 packs, double eps) {
  __shared__ Shared<wide_t<T>, kLanes<T>> shared;
  if (packs)
    strip_sums<T, kLanes<T>>(g, x, mean, var, parts, rows, channels, across, eps, shared);
  else
    strip_sums<T, 1>(g, x, mean, var, parts, rows, channels, across, eps, shared);
}

template <class T, int M>
__device__ __forceinline__ void strip_apply(const T *x, const wide_t<T> *mean, const wide_t<T> *var, const wide_t<T> *weight,
                                            const wide_t<T> *bias, T *out, i64 rows, i64 channels, i64 across, double eps) {
  typedef wide_t<T> W;
  bool wide = M > 1 && aligned(x) && aligned(out);
  Strip s = strip_of<M>(rows, channels, across);
  W middle[M], scale[M], shift[M];
#pragma unroll
  for (int j = 0; j < M; ++j) {
    i64 c = s.channel + j;
    middle[j] = mean[c], scale[j] = inverse(var[c], eps), shift[j] = bias ? bias[c] : W(0);
    if (weight) scale[j] *= weight[c];
  }
  each_row<4>(s, channels, [&](i64 at) { return load_any<M>(x + at, wide); }, [&](i64 at, auto p) {
#pragma unroll
    for (int j = 0; j < M; ++j) p.v[j] = narrow<T>((W(widen(p.v[j])) - middle[j]) * scale[j] + shift[j]);
    store_any(out + at, p, wide);
  });
}
template <class T>
__global__ void __launch_bounds__(256) columns_apply(const T *x, const wide_t<T> *mean, const wide_t<T> *var, const wide_t<T> *weight,
                                                     const wide_t<T> *bias, T *out, i64 rows, i64 channels, i64 across, i64 packs, double eps) {
  if (packs)
    strip_apply<T, kLanes<T>>(x, mean, var, weight, bias, out, rows, channels, across, eps);
  else
    strip_apply<T, 1>(x, mean, var, weight, bias, out, rows, channels, across, eps);
}

template <class T, int M>
__device__ __forceinline__ void strip_grad(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var, const wide_t<T> *weight,
                                           const wide_t<T> *sums, T *out, i64 rows, i64 channels, i64 across, double eps) {
  typedef wide_t<T> W;
  bool wide = M > 1 && aligned(g) && aligned(x) && aligned(out);
  Strip s = strip_of<M>(rows, channels, across);
  W middle[M], scale[M], sum[M], along[M], per = W(rows);
#pragma unroll
  for (int j = 0; j < M; ++j) {
    i64 c = s.channel + j;
    middle[j] = mean[c], scale[j] = inverse(var[c], eps), sum[j] = sums[c] / per, along[j] = scale[j] * (sums[channels + c] / per);
    if (weight) scale[j] *= weight[c];
  }
  each_row<2>(s, channels, [&](i64 at) { return Pair<T, M>{load_any<M>(g + at, wide), load_any<M>(x + at, wide)}; },
              [&](i64 at, auto p) {
#pragma unroll
    for (int j = 0; j < M; ++j)
      p.g.v[j] = narrow<T>(scale[j] * (W(widen(p.g.v[j])) - sum[j] - (W(widen(p.x.v[j])) - middle[j]) * along[j]));
    store_any(out + at, p.g, wide);
  });
}
template <class T>
__global__ void __launch_bounds__(256) columns_grad(const T *g, const T *x, const wide_t<T> *mean, const wide_t<T> *var,
                                                    const wide_t<T> *weight, const wide_t<T> *sums, T *out, i64 rows, i64 channels,
                                                    i64 across, i64 packs, double eps) {
  if (packs)
    strip_grad<T, kLanes<T>>(g, x, mean, var, weight, sums, out, rows, channels, across, eps);
  else
    strip_grad<T, 1>(g, x, mean, var, weight, sums, out, rows, channels, across, eps);
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
