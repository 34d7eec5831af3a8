// Recurrent layers, a step at a time: n rows of `hidden` units, gates side by side in a row. What lies in order of time
// begins with row `begin`; states are of the step alone.

template <class W> __device__ __forceinline__ W sigmoid(W x) { return W(1) / (W(1) + exp(-x)); }

// ---- one unit of one row ----

// gates are those of the unit in a row of 4 hidden, of_x and of_h what comes to them from the input and from the state.
template <class W>
__device__ __forceinline__ W lstm_unit(const W *of_x, const W (&of_h)[4], W *c, W *cells, W *gates, i64 hidden) {
  W in = sigmoid(of_x[0] + of_h[0]), forget = sigmoid(of_x[hidden] + of_h[1]);
  W added = tanh(of_x[2 * hidden] + of_h[2]), open = sigmoid(of_x[3 * hidden] + of_h[3]);
  W cell = forget * *c + in * added;
  *c = *cells = cell;
  gates[0] = in, gates[hidden] = forget, gates[2 * hidden] = added, gates[3 * hidden] = open;
  return open * tanh(cell);
}
// of_h is the gradient of the state after the step; d_c becomes that of the cell before it, and d_gates is made.
template <class W>
__device__ __forceinline__ void lstm_unit_grad(W of_h, W *d_c, const W *gates, W cell_after, W cell_before, W *d_gates, i64 hidden) {
  W in = gates[0], forget = gates[hidden], added = gates[2 * hidden], open = gates[3 * hidden], t = tanh(cell_after);
  W cell = *d_c + of_h * open * (W(1) - t * t);
  d_gates[0] = cell * added * in * (W(1) - in);
  d_gates[hidden] = cell * cell_before * forget * (W(1) - forget);
  d_gates[2 * hidden] = cell * in * (W(1) - added * added);
  d_gates[3 * hidden] = of_h * t * open * (W(1) - open);
  *d_c = cell * forget;
}
// of_x and of_h have 3 gates, the latter without its bias; gates are r, z, q and the candidate.
template <class W>
__device__ __forceinline__ W gru_unit(const W *of_x, const W (&of_h)[3], const W *bias, W before, W *gates, i64 hidden) {
  W b_r = bias ? bias[0] : W(0), b_z = bias ? bias[hidden] : W(0), b_q = bias ? bias[2 * hidden] : W(0);
  W r = sigmoid(of_x[0] + (of_h[0] + b_r)), z = sigmoid(of_x[hidden] + (of_h[1] + b_z)), q = of_h[2] + b_q;
  W candidate = tanh(of_x[2 * hidden] + r * q);
  gates[0] = r, gates[hidden] = z, gates[2 * hidden] = q, gates[3 * hidden] = candidate;
  return candidate + z * (before - candidate);
}
// Returns what goes straight to the state before; the rest goes there through d_hidden.
template <class W>
__device__ __forceinline__ W gru_unit_grad(W of_h, const W *gates, W before, W *d_input, W *d_hidden, i64 hidden) {
  W r = gates[0], z = gates[hidden], q = gates[2 * hidden], candidate = gates[3 * hidden];
  W of_n = of_h * (W(1) - z) * (W(1) - candidate * candidate);
  d_input[0] = d_hidden[0] = of_n * q * r * (W(1) - r);
  d_input[hidden] = d_hidden[hidden] = of_h * (before - candidate) * z * (W(1) - z);
  d_input[2 * hidden] = of_n, d_hidden[2 * hidden] = of_n * r;
  return of_h * z;
}

// ---- what lies between two products of cuBLAS ----

#define EACH_UNIT                                                                           \
  for (i64 i = thread_of_grid(); i < n * hidden; i += threads_of_grid())                    \
    if (i64 own = quotient_of(i, hidden), unit = i - own * hidden, row = begin + own, u = row * hidden + unit; true)

template <class W>
__global__ void lstm_step(const W *of_x, const W *of_h, W *h, W *c, W *out, W *cells, W *gates, i64 begin, i64 n, i64 hidden) {
  EACH_UNIT {
    const W *mine = of_h + own * 4 * hidden + unit;
    const W of_state[] = {mine[0], mine[hidden], mine[2 * hidden], mine[3 * hidden]};
    i64 gate = row * 4 * hidden + unit;
    h[i] = out[u] = lstm_unit(of_x + gate, of_state, c + i, cells + u, gates + gate, hidden);
  }
}
template <class W>
__global__ void lstm_step_grad(const W *g, const W *d_h, W *d_c, const W *gates, const W *cells, const W *before,
                               W *d_gates, i64 begin, i64 n, i64 hidden) {
  EACH_UNIT {
    i64 gate = row * 4 * hidden + unit;
    lstm_unit_grad(d_h[i] + g[u], d_c + i, gates + gate, cells[u], before[u], d_gates + gate, hidden);
  }
}
template <class W>
__global__ void gru_step(const W *of_x, const W *of_h, const W *bias, W *h, W *out, W *gates, i64 begin, i64 n, i64 hidden) {
  EACH_UNIT {
    const W *mine = of_h + own * 3 * hidden + unit;
    const W of_state[] = {mine[0], mine[hidden], mine[2 * hidden]};
    h[i] = out[u] = gru_unit(of_x + row * 3 * hidden + unit, of_state, bias ? bias + unit : bias, h[i],
                             gates + row * 4 * hidden + unit, hidden);
  }
}
template <class W>
__global__ void gru_step_grad(const W *g, W *d_h, const W *gates, const W *before, W *d_input, W *d_hidden, i64 begin,
                              i64 n, i64 hidden) {
  EACH_UNIT {
    i64 at = row * 3 * hidden + unit;
    d_h[i] = gru_unit_grad(d_h[i] + g[u], gates + row * 4 * hidden + unit, before[u], d_input + at, d_hidden + at, hidden);
  }
}

// ---- the product too, of few and small states: a warp has one unit of kRows rows. Blocks are (32, 8) ----

constexpr int kRows = 4;
// Call f(unit, first, lane) for a warp's units and rows, of which there are `rows` in all.
template <class F> __device__ __forceinline__ void each_warp(i64 rows, i64 hidden, F f) {
  i64 groups = (rows + kRows - 1) / kRows;
  for (i64 task = i64(blockIdx.x) * blockDim.y + threadIdx.y; task < groups * hidden; task += i64(gridDim.x) * blockDim.y) {
    i64 unit = quotient_of(task, groups);
    f(unit, (task - unit * groups) * kRows, int(threadIdx.x));
  }
}
// found[q][r] is row r of `rows` times row q of `weights`; rows from `many` on are none. Other blocks of the launch may have written
// the rows just now: a volatile read does not take what this multiprocessor knows of the memory from before.
template <int Q, class W>
__device__ __forceinline__ void dots(W (&found)[Q][kRows], const W *rows, i64 many, const W *weights, i64 step, i64 n) {
#pragma unroll
  for (int q = 0; q < Q; ++q)
#pragma unroll
    for (int r = 0; r < kRows; ++r) found[q][r] = W(0);
#pragma unroll 4
  for (i64 k = threadIdx.x; k < n; k += 32) {
    W mine[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r) mine[r] = r < many ? static_cast<const volatile W *>(rows)[r * n + k] : W(0);
#pragma unroll
    for (int q = 0; q < Q; ++q) {
      W w = weights[q * step + k];
#pragma unroll
      for (int r = 0; r < kRows; ++r) found[q][r] += w * mine[r];
    }
  }
#pragma unroll
  for (int q = 0; q < Q; ++q)
#pragma unroll
    for (int r = 0; r < kRows; ++r) found[q][r] = over_warp(found[q][r], Plus());
}

// h has `all` rows, of which the first n take part; next becomes what it is after the step.
template <class W>
__device__ __forceinline__ void lstm_step_with_product(const W *weights, const W *of_x, const W *h, W *next, W *c, W *out, W *cells, W *gates, i64 begin,
                                i64 n, i64 all, i64 hidden) {
  each_warp(all, hidden, [&](i64 unit, i64 first, int lane) {
    W found[4][kRows];
    dots(found, h + first * hidden, n - first, weights + unit * hidden, hidden * hidden, hidden);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      i64 own = first + r, i = own * hidden + unit, u = (begin + own) * hidden + unit, gate = (begin + own) * 4 * hidden + unit;
      if (lane != r || own >= all) continue;
      const W of_state[] = {found[0][r], found[1][r], found[2][r], found[3][r]};
      next[i] = own < n ? out[u] = lstm_unit(of_x + gate, of_state, c + i, cells + u, gates + gate, hidden) : h[i];
    }
  });
}
// weights are turned, (hidden, 4 hidden). What the step before this one, of `late` rows from `last` on, leaves in d_gates
// goes to the state between the two, in rows that have ended to d_h.
template <class W>
__device__ __forceinline__ void lstm_step_with_product_grad(const W *weights, const W *g, W *d_h, W *d_c, const W *gates, const W *cells,
                                     const W *before, W *d_gates, i64 begin, i64 n, i64 last, i64 late, i64 hidden) {
  each_warp(n < late ? late : n, hidden, [&](i64 unit, i64 first, int lane) {
    W found[1][kRows];
    dots(found, d_gates + (last + first) * 4 * hidden, late - first, weights + unit * 4 * hidden, 0, 4 * hidden);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      i64 own = first + r, i = own * hidden + unit, u = (begin + own) * hidden + unit, gate = (begin + own) * 4 * hidden + unit;
      if (lane != r) continue;
      W of_h = own < late ? found[0][r] : own < n ? d_h[i] : W(0);
      if (own < n)
        lstm_unit_grad(of_h + g[u], d_c + i, gates + gate, cells[u], before[u], d_gates + gate, hidden);
      else if (own < late)
        d_h[i] = of_h;
    }
  });
}
template <class W>
__device__ __forceinline__ void gru_step_with_product(const W *weights, const W *of_x, const W *bias, const W *h, W *next, W *out, W *gates, i64 begin, i64 n,
                               i64 all, i64 hidden) {
  each_warp(all, hidden, [&](i64 unit, i64 first, int lane) {
    W found[3][kRows];
    dots(found, h + first * hidden, n - first, weights + unit * hidden, hidden * hidden, hidden);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      i64 own = first + r, i = own * hidden + unit, row = begin + own;
      if (lane != r || own >= all) continue;
      const W of_state[] = {found[0][r], found[1][r], found[2][r]};
      next[i] = own < n ? out[row * hidden + unit] = gru_unit(of_x + row * 3 * hidden + unit, of_state, bias ? bias + unit : bias,
                                                              h[i], gates + row * 4 * hidden + unit, hidden)
                        : h[i];
    }
  });
}
template <class W>
__device__ __forceinline__ void gru_step_with_product_grad(const W *weights, const W *g, W *d_h, const W *gates, const W *before, W *d_input,
                                    W *d_hidden, i64 begin, i64 n, i64 last, i64 late, i64 hidden) {
  each_warp(n < late ? late : n, hidden, [&](i64 unit, i64 first, int lane) {
    W found[1][kRows];
    dots(found, d_hidden + (last + first) * 3 * hidden, late - first, weights + unit * 3 * hidden, 0, 3 * hidden);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      i64 own = first + r, i = own * hidden + unit, row = begin + own, at = row * 3 * hidden + unit;
      if (lane != r || (own >= n && own >= late)) continue;
      W of_h = d_h[i] + found[0][r];
      d_h[i] = own < n ? gru_unit_grad(of_h + g[row * hidden + unit], gates + row * 4 * hidden + unit, before[row * hidden + unit],
                                       d_input + at, d_hidden + at, hidden)
                       : of_h;
    }
  });
}

// ---- a step, or all of them in one launch, whose blocks all run at a time: they wait for each other between steps ----

__device__ __forceinline__ void await_all(unsigned *arrived, i64 times) {
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (*static_cast<volatile unsigned *>(arrived) < unsigned(times) * gridDim.x) {
#ifdef MORTICE_ON_CPU
      on_cpu::yield();
#endif
    }
    __threadfence();
  }
  __syncthreads();
}
// Step s has the rows from first + s * step on; h is the state before the first, a and b take turns after that.
#define ALL_STEPS                                          \
  for (i64 s = 0; s < steps; await_all(arrived, ++s))      \
    if (i64 begin = first + s * step; true)
#define STATES (s ? s & 1 ? a : b : h), (s & 1 ? b : a)
#define BEHIND begin, rows, (s ? begin - step : 0), (s ? rows : 0)

template <class W>
__global__ void lstm_whole_step(const W *weights, const W *of_x, W *c, W *out, W *cells, W *gates, const W *h, W *next, i64 begin, i64 n,
                                i64 all, i64 hidden) {
  lstm_step_with_product(weights, of_x, h, next, c, out, cells, gates, begin, n, all, hidden);
}
template <class W>
__global__ void __launch_bounds__(256, 2) lstm_all_steps(const W *weights, const W *of_x, W *c, W *out, W *cells, W *gates, const W *h,
                                                         W *a, W *b, unsigned *arrived, i64 steps, i64 first, i64 step, i64 rows, i64 hidden) {
  ALL_STEPS lstm_step_with_product(weights, of_x, STATES, c, out, cells, gates, begin, rows, rows, hidden);
}
template <class W>
__global__ void lstm_whole_step_grad(const W *weights, const W *g, W *d_h, W *d_c, const W *gates, const W *cells, const W *before,
                                     W *d_gates, i64 begin, i64 n, i64 last, i64 late, i64 hidden) {
  lstm_step_with_product_grad(weights, g, d_h, d_c, gates, cells, before, d_gates, begin, n, last, late, hidden);
}
template <class W>
__global__ void __launch_bounds__(256, 2) lstm_all_steps_grad(const W *weights, const W *g, W *d_h, W *d_c, const W *gates, const W *cells,
                                                              const W *before, W *d_gates, unsigned *arrived, i64 steps, i64 first,
                                                              i64 step, i64 rows, i64 hidden) {
  ALL_STEPS lstm_step_with_product_grad(weights, g, d_h, d_c, gates, cells, before, d_gates, BEHIND, hidden);
}
template <class W>
__global__ void gru_whole_step(const W *weights, const W *of_x, const W *bias, W *out, W *gates, const W *h, W *next, i64 begin, i64 n,
                               i64 all, i64 hidden) {
  gru_step_with_product(weights, of_x, bias, h, next, out, gates, begin, n, all, hidden);
}
template <class W>
__global__ void __launch_bounds__(256, 2) gru_all_steps(const W *weights, const W *of_x, const W *bias, W *out, W *gates, const W *h, W *a,
                                                        W *b, unsigned *arrived, i64 steps, i64 first, i64 step, i64 rows, i64 hidden) {
  ALL_STEPS gru_step_with_product(weights, of_x, bias, STATES, out, gates, begin, rows, rows, hidden);
}
template <class W>
__global__ void gru_whole_step_grad(const W *weights, const W *g, W *d_h, const W *gates, const W *before, W *d_input, W *d_hidden,
                                    i64 begin, i64 n, i64 last, i64 late, i64 hidden) {
  gru_step_with_product_grad(weights, g, d_h, gates, before, d_input, d_hidden, begin, n, last, late, hidden);
}
template <class W>
__global__ void __launch_bounds__(256, 2) gru_all_steps_grad(const W *weights, const W *g, W *d_h, const W *gates, const W *before,
                                                             W *d_input, W *d_hidden, unsigned *arrived, i64 steps, i64 first, i64 step,
                                                             i64 rows, i64 hidden) {
  ALL_STEPS gru_step_with_product_grad(weights, g, d_h, gates, before, d_input, d_hidden, BEHIND, hidden);
}
