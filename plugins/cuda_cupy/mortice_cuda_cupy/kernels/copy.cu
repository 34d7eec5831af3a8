// Copies into row-major order. Words have the size of an element, or more where elements lie side by side.

struct alignas(16) Word16 {
  u64 v[2];
};

// out[b][r][c] = x[b * batch + r + c * lead]: square tiles go through shared memory, so that reads and writes are in order both. Those
// of short words are of 64 by 64, or too few bytes would be on their way at a time. The block is (32, 8).
template <class T> constexpr int kSide = sizeof(T) > 4 ? 32 : 64;
template <class T>
__global__ void transpose(const T *x, T *out, i64 rows, i64 columns, i64 batches, i64 batch, i64 lead) {
  constexpr int S = kSide<T>, H = S / 32;
  __shared__ T tile[S][S + 1];
  i64 across = (columns + S - 1) / S, tiles = (rows + S - 1) / S * across;
  for (i64 t = blockIdx.x; t < tiles * batches; t += gridDim.x) {
    i64 b = quotient_of(t, tiles), own = t - b * tiles, down = quotient_of(own, across);
    i64 first_row = down * S, first_column = (own - down * across) * S;
    T held[S / 8][H];  // all loads are on their way before the first is waited for
#pragma unroll
    for (int l = 0; l < S / 8; ++l)
#pragma unroll
      for (int h = 0; h < H; ++h) {
        i64 row = first_row + threadIdx.x + 32 * h, j = first_column + threadIdx.y + 8 * l;
        if (row < rows && j < columns) held[l][h] = x[b * batch + row + j * lead];
      }
    __syncthreads();  // the last tile may still be read
#pragma unroll
    for (int l = 0; l < S / 8; ++l)
#pragma unroll
      for (int h = 0; h < H; ++h) tile[threadIdx.y + 8 * l][threadIdx.x + 32 * h] = held[l][h];
    __syncthreads();
#pragma unroll
    for (int l = 0; l < S / 8; ++l)
#pragma unroll
      for (int h = 0; h < H; ++h) {
        i64 column = first_column + threadIdx.x + 32 * h, j = first_row + threadIdx.y + 8 * l;
        if (column < columns && j < rows) out[(b * rows + j) * columns + column] = tile[threadIdx.x + 32 * h][threadIdx.y + 8 * l];
      }
  }
}

// Four axes, of which the outermost has what is left of n; steps count words. A thread takes four words, all of whose loads
// are on their way before the first is waited for.
template <class S, class I>
__device__ __forceinline__ void copy_strided(const S *x, S *out, i64 n, i64 size1, i64 size2, i64 size3, i64 step0, i64 step1,
                                             i64 step2, i64 step3) {
  i64 first = i64(blockIdx.x) * (i64(blockDim.x) * 4) + threadIdx.x;
  S held[4];
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    i64 i = first + l * i64(blockDim.x);
    if (i >= n) continue;
    I rest = I(i), c3 = rest % I(size3);
    rest /= I(size3);
    i64 at = i64(c3) * step3;
    if (size1 != 1 || step0) {
      I c2 = rest % I(size2);
      rest /= I(size2);
      at += i64(c2) * step2 + i64(rest % I(size1)) * step1 + i64(rest / I(size1)) * step0;
    } else {
      at += i64(rest) * step2;
    }
    held[l] = x[at];
  }
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    i64 i = first + l * i64(blockDim.x);
    if (i < n) out[i] = held[l];
  }
}
template <class S, class I>
__global__ void strided(const S *x, S *out, i64 n, i64 size1, i64 size2, i64 size3, i64 step0, i64 step1, i64 step2, i64 step3) {
  copy_strided<S, I>(x, out, n, size1, size2, size3, step0, step1, step2, step3);
}
// The same for up to eight arrays that lie alike, each in its own row of blocks and behind the other in out.
template <class S, class I>
__global__ void strided_alike(S *out, i64 n, i64 size1, i64 size2, i64 size3, i64 step0, i64 step1, i64 step2, i64 step3, const S *p0,
                              const S *p1, const S *p2, const S *p3, const S *p4, const S *p5, const S *p6, const S *p7) {
  const unsigned a = blockIdx.y;
  const S *low = a < 2 ? (a ? p1 : p0) : a < 3 ? p2 : p3, *high = a < 6 ? (a < 5 ? p4 : p5) : a < 7 ? p6 : p7, *x = a < 4 ? low : high;
  copy_strided<S, I>(x, out + a * n, n, size1, size2, size3, step0, step1, step2, step3);
}

// Up to eight arrays side by side: each has `rows` rows, which end in those of out, from `begin` on, at e0 to e7.
#define NEXT(n, before) \
  if (c >= before) from = p##n, start = before, width = e##n - before;
template <class S>
__global__ void join(S *out, i64 rows, i64 row, i64 begin, const S *p0, const S *p1, const S *p2, const S *p3, const S *p4,
                     const S *p5, const S *p6, const S *p7, i64 e0, i64 e1, i64 e2, i64 e3, i64 e4, i64 e5, i64 e6, i64 e7) {
  i64 first = i64(blockIdx.x) * (i64(blockDim.x) * 4) + threadIdx.x, n = rows * e7;
  S held[4];
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    i64 i = first + l * i64(blockDim.x);
    if (i >= n) continue;
    i64 r = quotient_of(i, e7), c = i - r * e7, start = 0, width = e0;
    const S *from = p0;
    NEXT(1, e0) NEXT(2, e1) NEXT(3, e2) NEXT(4, e3) NEXT(5, e4) NEXT(6, e5) NEXT(7, e6)
    held[l] = from[r * width + c - start];
  }
#pragma unroll
  for (int l = 0; l < 4; ++l) {
    i64 i = first + l * i64(blockDim.x);
    if (i >= n) continue;
    i64 r = quotient_of(i, e7);
    out[r * row + begin + i - r * e7] = held[l];
  }
}
