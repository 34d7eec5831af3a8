// Reading and adding at positions along one axis: x is seen as (outer, n, inner), what is read or added as (outer, count,
// inner). I is the type to count the latter in, since division takes long in 64 bits; n may be more. Positions outside are
// refused, maybe later; here they read as 0 and add to nothing.

__device__ __forceinline__ i64 inside(i64 place, i64 n) {
  if (place < 0) place += n;
  return place < 0 || place >= n ? -1 : place;
}
struct alignas(16) Word16 {
  u64 v[2];
};

// A position for each element.
template <class S, class I> __global__ void gather(const S *x, const i64 *at, S *out, i64 total, i64 count, i64 inner, i64 n) {
  for (i64 t = thread_of_grid(); t < total; t += threads_of_grid()) {
    I i = I(t), rest = i % I(inner);
    i64 place = inside(at[t], n);
    out[t] = place < 0 ? S() : x[(i64(i / I(inner) / I(count)) * n + place) * inner + rest];
  }
}
// A position for each slice.
template <class S, class I> __global__ void take(const S *x, const i64 *at, S *out, i64 total, i64 count, i64 inner, i64 n) {
  for (i64 t = thread_of_grid(); t < total; t += threads_of_grid()) {
    I i = I(t), rest = i % I(inner), slice = i / I(inner);
    i64 place = inside(at[slice % I(count)], n);
    out[t] = place < 0 ? S() : x[(i64(slice / I(count)) * n + place) * inner + rest];
  }
}

template <class T> __device__ __forceinline__ void add_at(T *at, T x) { atomicAdd(at, x); }
__device__ __forceinline__ void add_at(i64 *at, i64 x) { atomicAdd(reinterpret_cast<u64 *>(at), u64(x)); }

// Sums of halves are float. The order of additions at one place is not fixed.
template <class T, class I>
__global__ void scatter_add(work_t<T> *out, const i64 *at, const T *values, i64 total, i64 count, i64 inner, i64 n) {
  for (i64 t = thread_of_grid(); t < total; t += threads_of_grid()) {
    I i = I(t), rest = i % I(inner);
    i64 place = inside(at[t], n);
    if (place >= 0) add_at(out + (i64(i / I(inner) / I(count)) * n + place) * inner + rest, opened(values[t]));
  }
}
template <class T, class I>
__global__ void index_add(work_t<T> *out, const i64 *at, const T *values, i64 total, i64 count, i64 inner, i64 n) {
  for (i64 t = thread_of_grid(); t < total; t += threads_of_grid()) {
    I i = I(t), rest = i % I(inner), slice = i / I(inner);
    i64 place = inside(at[slice % I(count)], n);
    if (place >= 0) add_at(out + (i64(slice / I(count)) * n + place) * inner + rest, opened(values[t]));
  }
}
