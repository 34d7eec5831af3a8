// One step of a recurrent layer between two products: n rows of `hidden` units, gates side by side in a row. What lies in
// order of time begins with row `begin`; of_h and the states are of the step alone.

template <class W> __device__ __forceinline__ W sigmoid(W x) { return W(1) / (W(1) + exp(-x)); }

#define EACH_UNIT                                                                           \
  for (i64 i = thread_of_grid(); i < n * hidden; i += threads_of_grid())                    \
    if (i64 own = quotient_of(i, hidden), unit = i - own * hidden, row = begin + own, u = row * hidden + unit, \
        gate = row * 4 * hidden + unit;                                                     \
        true)

// of_x and of_h have rows of 4 hidden. The states h and c are written in place.
template <class W>
__global__ void lstm_step(const W *of_x, const W *of_h, W *h, W *c, W *out, W *cells, W *gates, i64 begin, i64 n, i64 hidden) {
  EACH_UNIT {
    const W *mine = of_h + own * 4 * hidden + unit;
    W in = sigmoid(of_x[gate] + mine[0]);
    W forget = sigmoid(of_x[gate + hidden] + mine[hidden]);
    W added = tanh(of_x[gate + 2 * hidden] + mine[2 * hidden]);
    W open = sigmoid(of_x[gate + 3 * hidden] + mine[3 * hidden]);
    W cell = forget * c[i] + in * added;
    c[i] = cells[u] = cell;
    h[i] = out[u] = open * tanh(cell);
    gates[gate] = in, gates[gate + hidden] = forget, gates[gate + 2 * hidden] = added, gates[gate + 3 * hidden] = open;
  }
}

// d_h is the gradient of the state after the step; d_c becomes that of the cell before it, and d_gates is made.
template <class W>
__global__ void lstm_step_grad(const W *g, const W *d_h, W *d_c, const W *gates, const W *cells, const W *before,
                               W *d_gates, i64 begin, i64 n, i64 hidden) {
  EACH_UNIT {
    W in = gates[gate], forget = gates[gate + hidden], added = gates[gate + 2 * hidden], open = gates[gate + 3 * hidden];
    W t = tanh(cells[u]), of_h = d_h[i] + g[u];
    W cell = d_c[i] + of_h * open * (W(1) - t * t);
    d_gates[gate] = cell * added * in * (W(1) - in);
    d_gates[gate + hidden] = cell * before[u] * forget * (W(1) - forget);
    d_gates[gate + 2 * hidden] = cell * in * (W(1) - added * added);
    d_gates[gate + 3 * hidden] = of_h * t * open * (W(1) - open);
    d_c[i] = cell * forget;
  }
}

// of_x and of_h have rows of 3 hidden, the latter without its bias; gates are r, z, q and the candidate.
template <class W>
__global__ void gru_step(const W *of_x, const W *of_h, const W *bias, W *h, W *out, W *gates, i64 begin, i64 n, i64 hidden) {
  EACH_UNIT {
    i64 at = row * 3 * hidden + unit;
    const W *mine = of_h + own * 3 * hidden + unit;
    W b_r = bias ? bias[unit] : W(0), b_z = bias ? bias[unit + hidden] : W(0), b_q = bias ? bias[unit + 2 * hidden] : W(0);
    W r = sigmoid(of_x[at] + (mine[0] + b_r));
    W z = sigmoid(of_x[at + hidden] + (mine[hidden] + b_z));
    W q = mine[2 * hidden] + b_q;
    W candidate = tanh(of_x[at + 2 * hidden] + r * q);
    h[i] = out[u] = candidate + z * (h[i] - candidate);
    gates[gate] = r, gates[gate + hidden] = z, gates[gate + 2 * hidden] = q, gates[gate + 3 * hidden] = candidate;
  }
}

// d_h becomes what goes straight to the state before; the rest goes there through d_hidden.
template <class W>
__global__ void gru_step_grad(const W *g, W *d_h, const W *gates, const W *before, W *d_input, W *d_hidden, i64 begin,
                              i64 n, i64 hidden) {
  EACH_UNIT {
    i64 at = row * 3 * hidden + unit;
    W r = gates[gate], z = gates[gate + hidden], q = gates[gate + 2 * hidden], candidate = gates[gate + 3 * hidden];
    W of_h = d_h[i] + g[u], of_n = of_h * (W(1) - z) * (W(1) - candidate * candidate);
    d_input[at] = d_hidden[at] = of_n * q * r * (W(1) - r);
    d_input[at + hidden] = d_hidden[at + hidden] = of_h * (before[u] - candidate) * z * (W(1) - z);
    d_input[at + 2 * hidden] = of_n;
    d_hidden[at + 2 * hidden] = of_n * r;
    d_h[i] = of_h * z;
  }
}
