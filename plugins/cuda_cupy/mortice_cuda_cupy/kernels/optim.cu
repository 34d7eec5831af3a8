// Kernels over many arrays at once. An optimiser's step: its rule comes before this text. `rule(v, ...)` changes the
// values v of one element, of which there are kLists (the parameter, its gradient, its state), and NUMBERS declares
// doubles, which NUMBER_NAMES passes on. kWritten has a bit for each value that a step changes.

// table: starts (count + 1) of each parameter's chunks, sizes (count), then kLists rows of count addresses, then such rows
// of numbers that the device knows. What a rule makes of these are doubles s, which one thread computes for its block.
struct Table {
  i64 words[kWords];
};
// What a block takes at a time: `count` elements of an array, from `first` on.
struct Chunk {
  i64 array, first, count;
};
__device__ __forceinline__ Chunk chunk_of(const Table &table, i64 count, i64 chunk) {
  const i64 *starts = table.words, *sizes = starts + count + 1;
  i64 low = 0, high = count;  // starts[low] <= chunk < starts[high]
  while (high - low > 1) {
    i64 middle = (low + high) / 2;
    (starts[middle] <= chunk ? low : high) = middle;
  }
  i64 first = (chunk - starts[low]) * kChunk, left = sizes[low] - first;
  return {low, first, left < kChunk ? left : kChunk};
}
template <class T> __device__ __forceinline__ T *start_of(const Table &table, i64 count, const Chunk &chunk, int list) {
  return reinterpret_cast<T *>(table.words[2 * count + 1 + list * count + chunk.array]) + chunk.first;
}

template <class T> __global__ void __launch_bounds__(512) optimiser_step(const __grid_constant__ Table table, i64 count NUMBERS) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  __shared__ double s[kScalars + 1];
  for (i64 number = blockIdx.x; number < table.words[count]; number += gridDim.x) {
    const Chunk chunk = chunk_of(table, count, number);
    if (kScalars) {
      __syncthreads();  // the last chunk's may still be read
      if (threadIdx.x == 0) scalars(s, table.words + (2 + kLists) * count + 1 + chunk.array, count NUMBER_NAMES);
      __syncthreads();
    }
    T *at[kLists];
    bool wide = true;
#pragma unroll
    for (int list = 0; list < kLists; ++list) {
      at[list] = start_of<T>(table, count, chunk, list);
      wide = wide && aligned(at[list]);
    }
    share<N>(chunk.count, wide, threadIdx.x, blockDim.x, [&](auto lanes, i64 i) {
      Pack<T, lanes.value> packs[kLists];
#pragma unroll
      for (int list = 0; list < kLists; ++list) packs[list] = load<lanes.value>(at[list] + i);
#pragma unroll
      for (int j = 0; j < lanes.value; ++j) {
        W v[kLists];
#pragma unroll
        for (int list = 0; list < kLists; ++list) v[list] = widen(packs[list].v[j]);
        rule(v, s NUMBER_NAMES);
#pragma unroll
        for (int list = 0; list < kLists; ++list) packs[list].v[j] = narrow<T>(v[list]);
      }
#pragma unroll
      for (int list = 0; list < kLists; ++list)
        if (kWritten >> list & 1) store(at[list] + i, packs[list]);
    });
  }
}

// Each array times a factor, which is a number or lies at `held`; `found` becomes 1 where an element was not finite.
template <class T>
__global__ void __launch_bounds__(512) unscale(const __grid_constant__ Table table, i64 count, float *found, const float *held, double factor) {
  typedef wide_t<T> W;
  const W times = held ? W(*held) : W(factor);
  bool lost = false;
  for (i64 number = blockIdx.x; number < table.words[count]; number += gridDim.x) {
    const Chunk chunk = chunk_of(table, count, number);
    T *at = start_of<T>(table, count, chunk, 0);
    share<kLanes<T>>(chunk.count, aligned(at), threadIdx.x, blockDim.x, [&](auto lanes, i64 i) {
      auto pack = load<lanes.value>(at + i);
#pragma unroll
      for (int j = 0; j < lanes.value; ++j) {
        W value = widen(pack.v[j]);
        lost = lost || value - value != W(0);
        pack.v[j] = narrow<T>(value * times);
      }
      store(at + i, pack);
    });
  }
  if (lost) *found = 1;
}

// The norms of arrays: the sum of squares of each chunk, and then the root of an array's sums, by a block each.
template <class T> __global__ void __launch_bounds__(512) chunk_squares(const __grid_constant__ Table table, i64 count, wide_t<T> *sums) {
  typedef wide_t<T> W;
  for (i64 number = blockIdx.x; number < table.words[count]; number += gridDim.x) {
    const Chunk chunk = chunk_of(table, count, number);
    const T *at = start_of<T>(table, count, chunk, 0);
    W sum = 0;
    share<kLanes<T>>(chunk.count, aligned(at), threadIdx.x, blockDim.x, [&](auto lanes, i64 i) {
      auto pack = load<lanes.value>(at + i);
#pragma unroll
      for (int j = 0; j < lanes.value; ++j) sum += W(widen(pack.v[j])) * W(widen(pack.v[j]));
    });
    sum = sum_over_row(sum);
    if (threadIdx.x == 0) sums[number] = sum;
  }
}
template <class T>
__global__ void __launch_bounds__(256) chunk_roots(const __grid_constant__ Table table, i64 count, const wide_t<T> *sums, T *norms) {
  typedef wide_t<T> W;
  W sum = 0;
#pragma unroll 4
  for (i64 i = table.words[blockIdx.x] + threadIdx.x; i < table.words[blockIdx.x + 1]; i += blockDim.x) sum += sums[i];
  sum = sum_over_row(sum);
  if (threadIdx.x == 0) norms[blockIdx.x] = narrow<T>(sqrt(sum));
}
