// cross_entropy with its gradient, in one launch each over the logits, and the gradient of an embedding.
// Logits are (samples, classes, inner) and labels (samples, inner). Threads of a label are blockDim.x where inner is 1
// and classes lie side by side, otherwise one, whose neighbours take the labels beside it; blockDim.y labels a block.

// Labels that are no class count as ignored: the core refuses them, but cannot look while work is captured.
__device__ __forceinline__ i64 known(i64 t, i64 classes, i64 ignore) { return t < 0 || t >= classes ? ignore : t; }

template <class W> struct Labels {
  i64 classes, inner, ignore;
  __device__ __forceinline__ i64 start(i64 label) const {
    i64 sample = quotient_of(label, inner);
    return (sample * classes - sample) * inner + label;
  }
};
// Call f(class, logit) for the classes of a label that are this thread's.
template <class T, class F>
__device__ __forceinline__ void each_class(const T *row, i64 n, i64 inner, bool alone, F f) {
  typedef wide_t<T> W;
  if (alone) {
    for (i64 c = 0; c < n; ++c) f(c, W(widen(row[c * inner])));
  } else {
    share<kLanes<T>>(n, aligned(row), threadIdx.x, blockDim.x, [&](auto count, i64 i) {
      auto p = load<count.value>(row + i);
      for (int j = 0; j < count.value; ++j) f(i + j, W(widen(p.v[j])));
    });
  }
}
template <class W, class F> __device__ __forceinline__ W combine(W x, W neutral, bool alone, F f) {
  return alone ? x : over_row(x, neutral, f);
}
struct Greater {
  template <class W> __device__ __forceinline__ W operator()(W x, W y) const { return x > y || x != x ? x : y; }
};

// parts is (2, labels): the losses and the weights; part is the smoothing of one class. logs is (2, labels): top, and the logarithm of the sum below it.
template <class T>
__global__ void __launch_bounds__(1024) cross_entropy(const T *x, const i64 *target, const wide_t<T> *weight, wide_t<T> *parts, wide_t<T> *logs,
                              i64 labels, i64 classes, i64 inner, i64 ignore, double smoothing, double part, bool alone) {
  typedef wide_t<T> W;
  Labels<W> of{classes, inner, ignore};
  int lane = alone ? 0 : threadIdx.x, lanes = alone ? 1 : blockDim.x, per_block = alone ? blockDim.x : blockDim.y;
  for (i64 first = i64(blockIdx.x) * per_block; first < labels; first += i64(gridDim.x) * per_block) {
    i64 label = first + (alone ? threadIdx.x : threadIdx.y);
    bool inside = label < labels;
    const T *row = x + (inside ? of.start(label) : 0);
    i64 n = inside ? classes : 0;
    W top = -infinity<W>();
    each_class(row, n, inner, alone, [&](i64, W value) { top = Greater()(top, value); });
    top = combine(top, -infinity<W>(), alone, Greater());
    W sum = 0, spread = 0;
    each_class(row, n, inner, alone, [&](i64 c, W value) {
      sum += exp(value - top);
      if (smoothing != 0) spread += weight ? weight[c] * (value - top) : value - top;
    });
    sum = combine(sum, W(0), alone, Plus());
    W below = log(sum), weights = W(classes);
    if (smoothing != 0) {
      spread = combine(spread, W(0), alone, Plus());
      if (weight) {
        weights = 0;
        for (i64 c = lane; c < n; c += lanes) weights += weight[c];
        weights = combine(weights, W(0), alone, Plus());
      }
    }
    if (!inside || lane) continue;
    i64 t = known(target[label], classes, ignore);
    W loss = 0, own = 0;
    if (t != ignore) {
      own = weight ? weight[t] : W(1);
      loss = -own * (W(widen(row[t * inner])) - top - below);
      if (smoothing != 0)
        loss = loss * W(1 - smoothing) - (spread - weights * below) * W(part);
    }
    parts[label] = loss, parts[labels + label] = own;
    logs[label] = top, logs[labels + label] = below;
  }
}

// One block: the sum of the losses, over that of the weights for the mean; or the latter alone.
template <class T> __global__ void __launch_bounds__(1024) sum_losses(const wide_t<T> *parts, T *out, i64 labels, bool mean) {
  typedef wide_t<T> W;
  W loss = 0, own = 0;
  for (i64 i = threadIdx.x; i < labels; i += blockDim.x) loss += parts[i], own += parts[labels + i];
  loss = sum_over_row(loss);
  own = sum_over_row(own);
  if (threadIdx.x == 0) *out = narrow<T>(mean ? loss / own : loss);
}
// The weights of labels, every `step`-th from this thread's first on, added up by each row of threads.
template <class W>
__device__ __forceinline__ W all_weights(const i64 *target, const W *weight, i64 first, i64 step, i64 labels, i64 classes, i64 ignore) {
  W own = 0;
#pragma unroll 4
  for (i64 i = first; i < labels; i += step) {
    i64 t = known(target[i], classes, ignore);
    if (t != ignore) own += weight ? weight[t] : W(1);
  }
  return sum_over_row(own);
}
template <class T>
__global__ void __launch_bounds__(1024) sum_weights(const i64 *target, const wide_t<T> *weight, wide_t<T> *out, i64 labels, i64 classes,
                            i64 ignore) {
  wide_t<T> own = all_weights(target, weight, thread_of_grid(), threads_of_grid(), labels, classes, ignore);
  if (threadIdx.x == 0) out[blockIdx.x] = own;  // a sum for each block
}

// What each class of a label gets: its share of the softmax, less its share of the label.
template <class W> struct Pull {
  W everywhere, at_label, share_of_all, top, below;
  i64 target;
  const W *weight;
  __device__ __forceinline__ W operator()(i64 c, W x) const {
    W pulled = exp(x - top - below) * everywhere;
    if (share_of_all != W(0)) pulled -= weight ? weight[c] * share_of_all : share_of_all;
    return c == target ? pulled - at_label : pulled;
  }
};
// g is one number, or one a label; total is what a mean is over, and weights the sum of weight.
template <class T>
__device__ Pull<wide_t<T>> pull_of(const T *g, const i64 *target, const wide_t<T> *weight, const wide_t<T> *logs,
                                   bool mean, wide_t<T> total, const wide_t<T> *weights, i64 label, i64 labels, i64 classes,
                                   double smoothing, bool each) {
  typedef wide_t<T> W;
  W of_label = widen(g[each ? label : 0]);
  if (mean) of_label /= total;
  i64 t = target[label];
  W at_label = of_label * (weight ? weight[t] : W(1)) * W(1 - smoothing);
  W share_of_all = of_label * W(smoothing / double(classes));
  W everywhere = at_label + share_of_all * (weights ? *weights : W(classes));
  return {everywhere, at_label, share_of_all, logs[label], logs[labels + label], t, weight};
}

// What a mean is over lies at `total`; without it each block adds it up, as suits a few labels.
template <class T>
__global__ void __launch_bounds__(1024) cross_entropy_grad(const T *g, const T *x, const i64 *target, const wide_t<T> *weight,
                                   const wide_t<T> *logs, const wide_t<T> *total, const wide_t<T> *weights, T *out,
                                   i64 labels, i64 classes, i64 inner, i64 ignore, double smoothing, bool each,
                                   bool alone, bool mean) {
  typedef wide_t<T> W;
  W over = !mean ? W(1) : total ? *total : all_weights(target, weight, threadIdx.x, blockDim.x, labels, classes, ignore);
  int per_block = alone ? blockDim.x : blockDim.y;
  for (i64 label = i64(blockIdx.x) * per_block + (alone ? threadIdx.x : threadIdx.y); label < labels;
       label += i64(gridDim.x) * per_block) {
    i64 start = settled(Labels<W>{classes, inner, ignore}.start(label));
    bool counts = known(target[label], classes, ignore) != ignore;
    Pull<W> pull{};
    if (counts) pull = pull_of(g, target, weight, logs, mean, over, weights, label, labels, classes, smoothing, each);
    if (alone) {
      for (i64 c = 0; c < classes; ++c) {
        i64 at = start + c * inner;
        out[at] = narrow<T>(counts ? pull(c, W(widen(x[at]))) : W(0));
      }
    } else {
      const T *row = x + start;
      share<kLanes<T>>(classes, aligned(row) && aligned(out + start), threadIdx.x, blockDim.x, [&](auto count, i64 i) {
        auto p = load<count.value>(row + i);
        for (int j = 0; j < count.value; ++j) p.v[j] = narrow<T>(counts ? pull(i + j, W(widen(p.v[j]))) : W(0));
        store(out + start + i, p);
      });
    }
  }
}

// Rows of g (count, width) are added up in the order of their places: order sorts the indices stably, and the block of
// the first of a run of equal ones adds up the run, `across` columns at a time and the run's rows in turn by what threads
// are left. The table is zero before.
template <class T>
__global__ void embedding_grad(const T *g, const i64 *indices, const i64 *order, T *table, i64 count, i64 width,
                               i64 rows, i64 padding, i64 across, bool by_frequency) {
  typedef wide_t<T> W;
  __shared__ W shared[256];
  const int lines = int(blockDim.x / unsigned(across)), line = int(threadIdx.x / unsigned(across)), lane = threadIdx.x & 31;
  for (i64 first = blockIdx.x; first < count; first += gridDim.x) {
    i64 at = indices[order[first]];
    if (at == padding || at < 0 || at >= rows || (first > 0 && indices[order[first - 1]] == at)) continue;
    i64 end = first + 1;
    for (unsigned others = 0; !others; end += others ? __ffs(int(others)) - 1 : 32)
      others = __ballot_sync(0xffffffffu, end + lane >= count || indices[order[end + lane]] != at);
    W scale = by_frequency ? W(1) / W(end - first) : W(1);
    for (i64 start = 0; start < width; start += across) {
      i64 j = start + threadIdx.x - line * across;
      W sum = 0;
      if (j < width && line < lines) {
#pragma unroll 4
        for (i64 i = first + line; i < end; i += lines) sum += W(widen(g[order[i] * width + j]));
      }
      if (lines > 1) {
        __syncthreads();  // what was there before may still be read
        shared[threadIdx.x] = sum;
        __syncthreads();
        for (int l = 1; !line && l < lines; ++l) sum += shared[l * int(across) + threadIdx.x];
      }
      if (j < width && !line) table[at * width + j] = narrow<T>(sum * scale);
    }
  }
}
