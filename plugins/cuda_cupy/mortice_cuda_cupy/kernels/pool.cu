// Pooling over up to three trailing axes; missing ones have size and window 1. A thread makes one result, and threads
// side by side read side by side. Gradients gather from the windows that hold an element: no atomics, one order.

#define AXES                                                                                                      \
  int n0, int n1, int n2, int c0, int c1, int c2, int k0, int k1, int k2, int s0, int s1, int s2, int p0, int p1, \
      int p2, int d0, int d1, int d2

struct Axis {
  int size, count, kernel, stride, padding, dilation;
  __device__ __forceinline__ int start(int window) const { return window * stride - padding; }
  // What an average divides by along this axis.
  __device__ __forceinline__ int length(int window, bool with_padding) const {
    int low = start(window), high = min(low + kernel, size + padding);
    if (!with_padding) low = max(low, 0), high = min(high, size);
    return max(high - low, 1);
  }
  // The windows that hold element i, where their taps do not skip it: from first to last.
  __device__ __forceinline__ int first(int i) const {
    int reach = i + padding - (kernel - 1) * dilation;
    return reach > 0 ? (reach + stride - 1) / stride : 0;
  }
  __device__ __forceinline__ int last(int i) const { return min((i + padding) / stride, count - 1); }
};
#define MAKE_AXES const Axis a{n0, c0, k0, s0, p0, d0}, b{n1, c1, k1, s1, p1, d1}, c{n2, c2, k2, s2, p2, d2}

// at, where there is one, is the flat place of each maximum: the first one, or the last nan.
template <class T> __global__ void max_pool(const T *x, T *out, i64 *at, i64 planes, AXES) {
  typedef wide_t<T> W;
  MAKE_AXES;
  i64 per = i64(a.count) * b.count * c.count;
  for (i64 i = thread_of_grid(); i < planes * per; i += threads_of_grid()) {
    i64 which = quotient_of(i, per);
    const T *plane = x + which * a.size * b.size * c.size;
    int w = int(i - which * per), u = a.start(w / (b.count * c.count)), v = b.start(w / c.count % b.count), t = c.start(w % c.count);
    // A window of nothing but -inf still points into the input.
    i64 place = (i64(min(max(u, 0), a.size - 1)) * b.size + min(max(v, 0), b.size - 1)) * c.size + min(max(t, 0), c.size - 1);
    W best = -infinity<W>();
    for (int j = 0; j < a.kernel; ++j) {
      int q = u + j * a.dilation;
      if (q < 0 || q >= a.size) continue;
      for (int k = 0; k < b.kernel; ++k) {
        int r = v + k * b.dilation;
        if (r < 0 || r >= b.size) continue;
        i64 line = (i64(q) * b.size + r) * c.size;
        for (int l = 0; l < c.kernel; ++l) {
          int s = t + l * c.dilation;
          if (s < 0 || s >= c.size) continue;
          W value = widen(plane[line + s]);
          if (value > best || value != value) best = value, place = line + s;
        }
      }
    }
    out[i] = narrow<T>(best);
    if (at) at[i] = place;
  }
}

// An element has the gradients of the windows that may hold it and have chosen it.
template <class T> __global__ void max_pool_window_grad(const T *g, const i64 *at, T *out, i64 planes, AXES) {
  typedef wide_t<T> W;
  MAKE_AXES;
  i64 per = i64(a.size) * b.size * c.size, windows = i64(a.count) * b.count * c.count;
  for (i64 i = thread_of_grid(); i < planes * per; i += threads_of_grid()) {
    i64 plane = quotient_of(i, per), begin = plane * windows;
    int e = int(i - plane * per), q = e / (b.size * c.size), r = e / c.size % b.size, s = e % c.size;
    W total = 0;
    for (int u = a.first(q); u <= a.last(q); ++u)
      for (int v = b.first(r); v <= b.last(r); ++v)
        for (int t = c.first(s); t <= c.last(s); ++t) {
          i64 window = begin + (i64(u) * b.count + v) * c.count + t;
          if (at[window] == e) total += W(widen(g[window]));
        }
    out[i] = narrow<T>(total);
  }
}

// For places that come from anywhere: atomic additions, of floats where the gradient is half precision.
template <class T>
__global__ void max_pool_grad(const T *g, const i64 *at, wide_t<T> *out, i64 n, i64 windows, i64 plane) {
  for (i64 i = thread_of_grid(); i < n; i += threads_of_grid())
    if (at[i] >= 0 && at[i] < plane) atomicAdd(out + i / windows * plane + at[i], widen(g[i]));
}

// divisor is 0 where each window divides by its own length.
template <class T>
__global__ void avg_pool(const T *x, T *out, i64 planes, AXES, bool with_padding, double divisor) {
  typedef wide_t<T> W;
  MAKE_AXES;
  i64 per = i64(a.count) * b.count * c.count;
  for (i64 i = thread_of_grid(); i < planes * per; i += threads_of_grid()) {
    i64 which = quotient_of(i, per);
    const T *plane = x + which * a.size * b.size * c.size;
    int w = int(i - which * per), o0 = w / (b.count * c.count), o1 = w / c.count % b.count, o2 = w % c.count;
    int u = a.start(o0), v = b.start(o1), t = c.start(o2);
    W total = 0;
    for (int q = max(u, 0); q < min(u + a.kernel, a.size); ++q)
      for (int r = max(v, 0); r < min(v + b.kernel, b.size); ++r)
        for (int s = max(t, 0); s < min(t + c.kernel, c.size); ++s)
          total += W(widen(plane[(i64(q) * b.size + r) * c.size + s]));
    W by = divisor != 0 ? W(divisor)
                        : W(a.length(o0, with_padding)) * W(b.length(o1, with_padding)) * W(c.length(o2, with_padding));
    out[i] = narrow<T>(total / by);
  }
}

template <class T>
__global__ void avg_pool_grad(const T *g, T *out, i64 planes, AXES, bool with_padding, double divisor) {
  typedef wide_t<T> W;
  MAKE_AXES;
  i64 per = i64(a.size) * b.size * c.size;
  for (i64 i = thread_of_grid(); i < planes * per; i += threads_of_grid()) {
    i64 which = quotient_of(i, per);
    const T *plane = g + which * a.count * b.count * c.count;
    int e = int(i - which * per), q = e / (b.size * c.size), r = e / c.size % b.size, s = e % c.size;
    W total = 0;
    for (int u = a.first(q); u <= a.last(q); ++u)
      for (int v = b.first(r); v <= b.last(r); ++v)
        for (int t = c.first(s); t <= c.last(s); ++t) {
          W by = divisor != 0 ? W(divisor)
                              : W(a.length(u, with_padding)) * W(b.length(v, with_padding)) * W(c.length(t, with_padding));
          total += W(widen(plane[(i64(u) * b.count + v) * c.count + t])) / by;
        }
    out[i] = narrow<T>(total);
  }
}
