// softmax and log_softmax with their gradients, in two walks along each row: the second finds the row in a cache.

// A row whose top is infinite has no softmax.
template <class W> __device__ __forceinline__ Peak<W> checked(Peak<W> p) {
  if (isinf(p.top)) p.sum = not_a_number<W>();
  return p;
}
template <bool LOG, class W> __device__ __forceinline__ W finish(W x, Peak<W> p, W last) {
  return LOG ? x - p.top - last : exp(x - p.top) * last;
}
template <bool LOG, class W> __device__ __forceinline__ W pull(W g, W out, W total) {
  return LOG ? g - exp(out) * total : out * (g - total);
}

// Rows of n contiguous elements; blockDim is (threads of a row, rows of a block).
template <class T, bool LOG> __global__ void __launch_bounds__(1024) softmax_rows(const T *x, T *out, i64 rows, i64 n) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  // All threads of a block go round together: a row's sums wait for its threads.
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y;
    i64 length = row < rows ? n : 0;
    const T *from = x + row * n;
    T *to = out + row * n;
    bool wide = aligned(from) && aligned(to);
    Peak<W> peak = empty_peak<W>();
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(from + i);
      for (int j = 0; j < count.value; ++j) take(peak, W(widen(p.v[j])));
    });
    peak = checked(peak_over_row(peak));
    W last = LOG ? log(peak.sum) : W(1) / peak.sum;
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(from + i);
      for (int j = 0; j < count.value; ++j) p.v[j] = narrow<T>(finish<LOG>(W(widen(p.v[j])), peak, last));
      store(to + i, p);
    });
  }
}

template <class T, bool LOG>
__global__ void __launch_bounds__(1024) softmax_grad_rows(const T *g, const T *out, T *pulled, i64 rows, i64 n) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  for (i64 first = i64(blockIdx.x) * blockDim.y; first < rows; first += i64(gridDim.x) * blockDim.y) {
    i64 row = first + threadIdx.y;
    i64 length = row < rows ? n : 0;
    const T *of_g = g + row * n, *of_out = out + row * n;
    T *to = pulled + row * n;
    bool wide = aligned(of_g) && aligned(of_out) && aligned(to);
    W total = 0;
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto a = load<count.value>(of_g + i);
      auto b = load<count.value>(of_out + i);
      for (int j = 0; j < count.value; ++j) total += LOG ? W(widen(a.v[j])) : W(widen(a.v[j])) * W(widen(b.v[j]));
    });
    total = sum_over_row(total);
    share<N>(length, wide, threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto a = load<count.value>(of_g + i);
      auto b = load<count.value>(of_out + i);
      for (int j = 0; j < count.value; ++j)
        a.v[j] = narrow<T>(pull<LOG>(W(widen(a.v[j])), W(widen(b.v[j])), total));
      store(to + i, a);
    });
  }
}

// Along an axis that is not the last: n elements `inner` apart. Blocks are 32 columns by 8 threads along the axis.
template <class T, bool LOG> __global__ void softmax_columns(const T *x, T *out, i64 columns, i64 n, i64 inner) {
  typedef wide_t<T> W;
  __shared__ W tops[8][33], sums[8][33];
  for (i64 first = i64(blockIdx.x) * 32; first < columns; first += i64(gridDim.x) * 32) {
    i64 column = first + threadIdx.x;
    bool inside = column < columns;
    i64 start = column / inner * n * inner + column % inner;
    Peak<W> peak = empty_peak<W>();
    for (i64 i = threadIdx.y; inside && i < n; i += 8) take(peak, W(widen(x[start + i * inner])));
    __syncthreads();
    tops[threadIdx.y][threadIdx.x] = peak.top, sums[threadIdx.y][threadIdx.x] = peak.sum;
    __syncthreads();
    peak = empty_peak<W>();
    for (int i = 0; i < 8; ++i) peak = Merge()(peak, Peak<W>{tops[i][threadIdx.x], sums[i][threadIdx.x]});
    peak = checked(peak);
    W last = LOG ? log(peak.sum) : W(1) / peak.sum;
    for (i64 i = threadIdx.y; inside && i < n; i += 8)
      out[start + i * inner] = narrow<T>(finish<LOG>(W(widen(x[start + i * inner])), peak, last));
  }
}

template <class T, bool LOG>
__global__ void softmax_grad_columns(const T *g, const T *out, T *pulled, i64 columns, i64 n, i64 inner) {
  typedef wide_t<T> W;
  __shared__ W totals[8][33];
  for (i64 first = i64(blockIdx.x) * 32; first < columns; first += i64(gridDim.x) * 32) {
    i64 column = first + threadIdx.x;
    bool inside = column < columns;
    i64 start = column / inner * n * inner + column % inner;
    W total = 0;
    for (i64 i = threadIdx.y; inside && i < n; i += 8) {
      W a = widen(g[start + i * inner]);
      total += LOG ? a : a * W(widen(out[start + i * inner]));
    }
    __syncthreads();
    totals[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    total = 0;
    for (int i = 0; i < 8; ++i) total += totals[i][threadIdx.x];
    for (i64 i = threadIdx.y; inside && i < n; i += 8) {
      i64 at = start + i * inner;
      pulled[at] = narrow<T>(pull<LOG>(W(widen(g[at])), W(widen(out[at])), total));
    }
  }
}
