// An optimiser's step for all parameters in one launch. The rule comes before this text: `rule(v, ...)` changes the
// values v of one element, of which there are kLists (the parameter, its gradient, its state), and NUMBERS declares
// doubles, which NUMBER_NAMES passes on. kWritten has a bit for each value that a step changes.

// table: starts (count + 1) of each parameter's chunks, sizes (count), then kLists rows of count addresses, then such rows
// of numbers that the device knows. What a rule makes of these are doubles s, which one thread computes for its block.
struct Table {
  i64 words[kWords];
};
template <class T> __global__ void __launch_bounds__(512) optimiser_step(const __grid_constant__ Table table, i64 count NUMBERS) {
  typedef wide_t<T> W;
  constexpr int N = kLanes<T>;
  __shared__ double s[kScalars + 1];
  const i64 *starts = table.words, *sizes = starts + count + 1, *addresses = sizes + count;
  for (i64 chunk = blockIdx.x; chunk < starts[count]; chunk += gridDim.x) {
    i64 low = 0, high = count;  // starts[low] <= chunk < starts[high]
    while (high - low > 1) {
      i64 middle = (low + high) / 2;
      (starts[middle] <= chunk ? low : high) = middle;
    }
    if (kScalars) {
      __syncthreads();  // the last chunk's may still be read
      if (threadIdx.x == 0) scalars(s, addresses + kLists * count + low, count NUMBER_NAMES);
      __syncthreads();
    }
    i64 first = (chunk - starts[low]) * kChunk, left = sizes[low] - first;
    T *at[kLists];
    bool wide = true;
#pragma unroll
    for (int list = 0; list < kLists; ++list) {
      at[list] = reinterpret_cast<T *>(addresses[list * count + low]) + first;
      wide = wide && aligned(at[list]);
    }
    share<N>(left < kChunk ? left : kChunk, wide, threadIdx.x, blockDim.x, [&](auto lanes, i64 i) {
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
