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
    bool nothing = peak.top == -infinity<T>();
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
