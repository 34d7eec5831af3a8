// Sorting rows of up to S elements in shared memory, by a bitonic network over keys with places: equal elements keep their
// order, since no two places are equal. Several short rows share a block. Of longer rows the best of each part are kept,
// and then the best of these; or all, and each element finds by itself how many of the other parts go before it.

// Keys are unsigned numbers in the order of the elements: nan is above all, and zeros are equal.
__device__ __forceinline__ unsigned key_of(float x) {
  if (x != x) return 0xffffffffu;
  unsigned bits = __float_as_uint(x == 0.0f ? 0.0f : x);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}
__device__ __forceinline__ u64 key_of(double x) {
  if (x != x) return ~0ull;
  u64 bits = u64(__double_as_longlong(x == 0.0 ? 0.0 : x));
  return bits >> 63 ? ~bits : bits | 0x8000000000000000ull;
}
__device__ __forceinline__ unsigned key_of(int x) { return unsigned(x) ^ 0x80000000u; }
__device__ __forceinline__ u64 key_of(i64 x) { return u64(x) ^ 0x8000000000000000ull; }
__device__ __forceinline__ unsigned key_of(unsigned char x) { return x; }
__device__ __forceinline__ unsigned key_of(bool x) { return x; }
template <class T> using SortKey = decltype(key_of(work_t<T>()));

// The line's elements, in a block's shared memory. What fills a row up has the highest key and place: it goes last.
template <class K, int S> struct Keyed {
  K key[S];
  unsigned short place[S];
  static constexpr unsigned short kNone = 0xffff;
  __device__ __forceinline__ void put(int e, K k, int at) { key[e] = k, place[e] = (unsigned short)at; }
  __device__ __forceinline__ void fill(int e) { put(e, ~K(0), kNone); }
  __device__ __forceinline__ int at(int e) const { return place[e]; }
  __device__ __forceinline__ void order(int e, int f, bool up) {
    bool after = key[e] > key[f] || (key[e] == key[f] && place[e] > place[f]);
    if (after != up) return;
    K k = key[e];
    unsigned short p = place[e];
    key[e] = key[f], place[e] = place[f], key[f] = k, place[f] = p;
  }
};
// Keys of 32 bits and their places are one number.
template <int S> struct Keyed<unsigned, S> {
  u64 both[S];
  __device__ __forceinline__ void put(int e, unsigned k, int at) { both[e] = u64(k) << 32 | unsigned(at); }
  __device__ __forceinline__ void fill(int e) { both[e] = ~0ull; }
  __device__ __forceinline__ int at(int e) const { return int(unsigned(both[e])); }
  __device__ __forceinline__ void order(int e, int f, bool up) {
    u64 a = both[e], b = both[f];
    if ((a > b) == up) both[e] = b, both[f] = a;
  }
};

// x is (rows, n). A line is `per` of the n elements of a row, of which there are `parts`; or of the m places of a row that
// `among` names, none where below 0. A line takes 1 << shift places, at most S, of the shared memory. The first `keep` of
// each line are written: values, and places as elements of the row.
template <class T, int S>
__global__ void __launch_bounds__(512) sort_lines(const T *x, const i64 *among, T *values, i64 *places, i64 rows, i64 n, i64 m,
                                                  i64 parts, i64 per, i64 shift, i64 keep, bool descending) {
  __shared__ Keyed<SortKey<T>, S> held;
  const int padded = 1 << int(shift), together = S >> int(shift), kept = int(keep);
  i64 lines = rows * parts;
  for (i64 tile = blockIdx.x; tile * together < lines; tile += gridDim.x) {
    __syncthreads();  // the last tile may still be read
    for (int e = threadIdx.x; e < S; e += blockDim.x) {
      i64 line = tile * together + (e >> int(shift)), row = parts == 1 ? line : line / parts;
      i64 within = e & (padded - 1), slot = (line - row * parts) * per + within, place = -1;
      if (line < lines && within < per && slot < m) place = among ? among[row * m + slot] : slot;
      if (place < 0) {
        held.fill(e);
        continue;
      }
      SortKey<T> key = key_of(opened(x[row * n + place]));
      held.put(e, descending ? ~key : key, int(within));
    }
    for (int size = 2; size <= padded; size <<= 1) {
      for (int reach = size >> 1; reach; reach >>= 1) {
        __syncthreads();
        for (int pair = threadIdx.x; pair < S / 2; pair += blockDim.x) {
          int e = (pair & ~(reach - 1)) * 2 + (pair & (reach - 1));
          held.order(e, e + reach, (e & size & (padded - 1)) == 0);
        }
      }
    }
    __syncthreads();
    for (int t = threadIdx.x; t < together * kept; t += blockDim.x) {
      int which = t / kept, rank = t - which * kept;
      i64 line = tile * together + which, row = parts == 1 ? line : line / parts;
      if (line >= lines) break;
      int within = held.at((which << int(shift)) + rank);
      i64 place = -1;
      if (within >= 0 && within < padded) {
        i64 slot = (line - row * parts) * per + within;
        place = among ? among[row * m + slot] : slot;
      }
      if (places) places[line * keep + rank] = place;
      if (values && place >= 0) values[line * keep + rank] = x[row * n + place];
    }
  }
}

// Rows (n) of parts that are sorted, `per` elements each, with their places: kept are (rows, parts * per). Of equal elements
// those of an earlier part go first.
template <class T>
__global__ void __launch_bounds__(256) merge_lines(const T *kept, const i64 *among, T *values, i64 *places, i64 rows, i64 n, i64 parts,
                                                   i64 per, bool descending) {
  for (i64 t = thread_of_grid(); t < rows * n; t += threads_of_grid()) {
    i64 row = quotient_of(t, n), slot = t - row * n, own = quotient_of(slot, per), first = row * parts * per, rank = slot - own * per;
    T value = kept[first + slot];
    SortKey<T> key = key_of(opened(value));
    for (i64 part = 0; part < parts; ++part) {
      if (part == own) continue;
      i64 low = 0, high = n - part * per < per ? n - part * per : per;
      while (low < high) {
        i64 middle = (low + high) / 2;
        SortKey<T> other = key_of(opened(kept[first + part * per + middle]));
        bool before = other == key ? part < own : (other < key) != descending;
        (before ? low : high) = before ? middle + 1 : middle;
      }
      rank += low;
    }
    if (places) places[row * n + rank] = among[first + slot];
    if (values) values[row * n + rank] = value;
  }
}
