// CUDA on the CPU, for tests where there is no GPU: enough of the language that the plugin's kernels compile with a C++
// compiler and run, one block after another or, where these wait for each other, all at a time. It emulates what results depend on (indices, barriers, shuffles, atomics,
// shared memory, which starts out as garbage) and nothing of the speed.
//
// The threads of a block are fibers: one runs until a barrier or a shuffle holds it up, then the next. A kernel without
// barriers runs through in a single fiber. A barrier that some threads never reach ends the program with a message.
//
// On a GPU blocks, and threads between two barriers, run in any order. Here the first goes first, or with
// MORTICE_EMULATED_ORDER=backwards the last: a missing barrier that one order hides shows in the other. With a number the order is
// drawn anew for each launch and at each barrier, and warps come out of step.
#pragma once
#define MORTICE_ON_CPU 1

#include <cmath>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <ucontext.h>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__
#define __grid_constant__
#define __launch_bounds__(...)
#define __constant__ static const
#define __shared__ static
#define __align__(n) alignas(n)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct uint3 {
  unsigned x, y, z;
};

static dim3 gridDim, blockDim;
static uint3 blockIdx, threadIdx;  // of the thread that runs
static constexpr int warpSize = 32;

namespace on_cpu {

// A barrier for a set of threads that may become fewer.
struct Barrier {
  unsigned expected = 0, arrived = 0, generation = 0;
  void release_if_complete() {
    if (arrived && arrived >= expected) arrived = 0, ++generation;
  }
};

struct Warp {
  Barrier barrier;
  struct Slot {
    uint64_t value;
    unsigned exchange;  // which one it was written for: a lane that has returned takes no part
  } slots[2][32] = {};
};

struct Block {
  uint3 index;
  Barrier whole;
  std::vector<Warp> warps;
};

struct Fiber {
  ucontext_t context;
  jmp_buf resume;
  std::unique_ptr<char[]> stack;
  uint3 index;
  Block *block;
  unsigned thread, exchanges;
  Barrier *waits_for = nullptr;  // null where the fiber is free
  unsigned generation;
};

constexpr size_t kStack = 64 * 1024;
static std::vector<std::unique_ptr<Fiber>> fibers;
static std::vector<Block> blocks;  // that run at a time
static Fiber *running;
static jmp_buf scheduler;
static ucontext_t origin;
static unsigned thread_count;  // of a block
static size_t next_thread;     // of those of all blocks, in their order
static std::vector<unsigned> order;
static Barrier others;  // for which a thread waits that looks again and again
static bool backwards;
static uint64_t drawn;  // 0 where nothing is drawn
inline unsigned turn(unsigned i, unsigned count) { return backwards ? count - 1 - i : i; }
inline unsigned draw(unsigned below) {
  drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
  return unsigned((drawn >> 33) % below);
}
// Fill with 0 to count - 1 in the order in which they come.
inline void arrange(std::vector<unsigned> &places, unsigned count) {
  places.resize(count);
  for (unsigned i = 0; i < count; ++i) places[i] = turn(i, count);
  for (unsigned i = count; drawn && i > 1; --i) std::swap(places[i - 1], places[draw(i)]);
}
static void (*body)(void **);
static void **arguments;
static unsigned char *dynamic_shared;

[[noreturn]] inline void stop(const char *why) {
  fprintf(stderr, "CUDA on the CPU: %s\n", why);
  abort();
}

inline void hold(Barrier &barrier, unsigned generation) {
  Fiber *me = running;
  me->waits_for = &barrier, me->generation = generation, me->index = threadIdx;
  if (!_setjmp(me->resume)) _longjmp(scheduler, 1);
  threadIdx = me->index, blockIdx = me->block->index;
}
inline void await(Barrier &barrier) {
  unsigned generation = barrier.generation;
  ++barrier.arrived;
  barrier.release_if_complete();
  if (barrier.generation == generation) hold(barrier, generation);
}
// Let others go on: what a thread does between two looks at what another block writes.
inline void yield() { hold(others, others.generation); }

// Run threads until none is left; a fiber that a barrier holds up keeps its thread, and another goes on with the rest.
inline void fiber_main() {
  while (next_thread < order.size()) {
    unsigned place = order[next_thread++], t = place % thread_count;
    Block &block = blocks[place / thread_count];
    running->thread = t, running->exchanges = 0, running->block = &block;
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)}, blockIdx = block.index;
    body(arguments);
    Barrier &warp = running->block->warps[t / 32].barrier, &whole = running->block->whole;
    --warp.expected, warp.release_if_complete();
    --whole.expected, whole.release_if_complete();
  }
  running->waits_for = nullptr;
  _longjmp(scheduler, 1);
}

inline void start_fiber(Fiber &fiber) {
  running = &fiber;
  if (_setjmp(scheduler)) return;
  getcontext(&fiber.context);
  if (!fiber.stack) fiber.stack.reset(new char[kStack]);
  fiber.context.uc_stack.ss_sp = fiber.stack.get();
  fiber.context.uc_stack.ss_size = kStack;
  fiber.context.uc_link = &origin;
  makecontext(&fiber.context, fiber_main, 0);
  setcontext(&fiber.context);
}

inline void resume_fiber(Fiber &fiber) {
  running = &fiber;
  fiber.waits_for = nullptr;
  if (!_setjmp(scheduler)) _longjmp(fiber.resume, 1);
}

inline void run_blocks() {
  next_thread = 0, others = Barrier{};
  for (Block &block : blocks) {
    block.whole = Barrier{thread_count};
    block.warps.assign((thread_count + 31) / 32, Warp{});
    for (unsigned t = 0; t < thread_count; ++t) ++block.warps[t / 32].barrier.expected;
  }
  arrange(order, unsigned(thread_count * blocks.size()));
  size_t started = 0;
  while (next_thread < order.size()) {
    if (started == fibers.size()) fibers.emplace_back(new Fiber);
    start_fiber(*fibers[started++]);
  }
  std::vector<unsigned> places;
  arrange(places, drawn ? unsigned(started) : 0);
  for (bool waiting = true; waiting;) {
    waiting = false;
    bool moved = false;
    for (size_t i = 0; i < started; ++i) {
      Fiber &fiber = *fibers[drawn ? places[i] : i];  // else as they began
      if (!fiber.waits_for) continue;
      waiting = true;
      if (drawn && draw(4) == 0) {
        moved = moved || fiber.waits_for->generation != fiber.generation;  // it could, and will
        continue;
      }
      if (fiber.waits_for->generation != fiber.generation) moved = moved || fiber.waits_for != &others, resume_fiber(fiber);
    }
    if (waiting && !moved && ++others.arrived > 64) stop("a barrier or shuffle waits for threads that never reach it");
    if (moved) others.arrived = 0;
    ++others.generation;
  }
}

// With `together` all blocks run at a time; their kernel has no shared memory, which they would have in common here.
inline void run(dim3 grid, dim3 block, size_t shared_bytes, bool together, void (*kernel)(void **), void **args) {
  thread_count = block.x * block.y * block.z;
  if (thread_count == 0 || thread_count > 1024) stop("a block has 1 to 1024 threads");
  if (!grid.x || !grid.y || !grid.z || grid.y > 65535 || grid.z > 65535) stop("the grid is empty or too large");
  if (shared_bytes > 227 * 1024) stop("a block has at most 227 KiB of shared memory");
  gridDim = grid, blockDim = block, body = kernel, arguments = args;
  std::unique_ptr<std::max_align_t[]> shared(new std::max_align_t[shared_bytes / sizeof(std::max_align_t) + 1]);
  dynamic_shared = reinterpret_cast<unsigned char *>(shared.get());
  const char *said = getenv("MORTICE_EMULATED_ORDER");
  backwards = said && !strcmp(said, "backwards");
  drawn = said ? strtoull(said, nullptr, 10) : 0;
  std::vector<unsigned> places;
  arrange(places, grid.x * grid.y * grid.z);
  blocks.resize(together ? places.size() : 1);
  for (size_t i = 0; i < places.size(); ++i) {
    unsigned at = places[i];
    blocks[i % blocks.size()].index = {at % grid.x, at / grid.x % grid.y, at / (grid.x * grid.y)};
    if (together && i + 1 < places.size()) continue;
    memset(dynamic_shared, 0xff, shared_bytes);
    run_blocks();
  }
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), void **args, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_reference_t<A> *>(args[I])...);
}
template <class... A>
void call(void (*kernel)(A...), void **args) {
  call(kernel, args, std::index_sequence_for<A...>{});
}
// The size of each argument, for the launcher to check what it is given; a negative one is a pointer's.
template <class... A>
int describe(void (*)(A...), int *sizes) {
  int i = 0;
  ((sizes[i++] = std::is_pointer_v<A> ? -8 : int(sizeof(A))), ...);
  return i;
}

template <class T>
T exchange(unsigned mask, T value, unsigned from) {
  static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
  unsigned lane = running->thread % 32;
  Warp &warp = running->block->warps[running->thread / 32];
  if (mask != 0xffffffffu) stop("shuffles take the whole warp");
  unsigned number = ++running->exchanges;
  Warp::Slot *slots = warp.slots[number & 1];  // the next exchange must not overwrite what is still read
  slots[lane].exchange = number;
  memcpy(&slots[lane].value, &value, sizeof(T));
  await(warp.barrier);
  const Warp::Slot &slot = slots[from & 31];
  if (slot.exchange != number) stop("a shuffle reads from a thread that takes no part");
  memcpy(&value, &slot.value, sizeof(T));
  return value;
}

}  // namespace on_cpu

inline void __syncthreads() { on_cpu::await(on_cpu::running->block->whole); }
inline void __syncwarp(unsigned = 0xffffffffu) { on_cpu::await(on_cpu::running->block->warps[on_cpu::running->thread / 32].barrier); }
inline void __threadfence() {}
inline void __threadfence_system() {}
template <class T> T __shfl_sync(unsigned mask, T v, int lane) { return on_cpu::exchange(mask, v, lane); }
template <class T> T __shfl_xor_sync(unsigned mask, T v, int by) {
  return on_cpu::exchange(mask, v, (on_cpu::running->thread % 32) ^ by);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, int by) {
  unsigned lane = on_cpu::running->thread % 32;
  return on_cpu::exchange(mask, v, lane + by < 32 ? lane + by : lane);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, int by) {
  unsigned lane = on_cpu::running->thread % 32;
  return on_cpu::exchange(mask, v, int(lane) >= by ? lane - by : lane);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  unsigned bits = 0, lane = on_cpu::running->thread % 32;
  for (unsigned i = 0; i < 32; ++i) bits |= (__shfl_sync(mask, unsigned(predicate != 0), int(i)) & 1u) << i;
  (void)lane;
  return bits;
}

inline int __ffs(int x) { return __builtin_ffs(x); }

template <class T> T atomicAdd(T *at, T v) { T old = *at; *at = old + v; return old; }
template <class T> T atomicMax(T *at, T v) { T old = *at; if (v > old) *at = v; return old; }
template <class T> T atomicCAS(T *at, T expected, T v) { T old = *at; if (old == expected) *at = v; return old; }
template <class T> T __ldg(const T *at) { return *at; }

inline double __dadd_rn(double x, double y) { return x + y; }
inline double __dsub_rn(double x, double y) { return x - y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y) {
  return (unsigned long long)((unsigned __int128)x * y >> 64);
}
inline float __uint_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
inline unsigned __float_as_uint(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
inline long long __double_as_longlong(double x) { long long bits; memcpy(&bits, &x, 8); return bits; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
template <class T> T min(T x, T y) { return y < x ? y : x; }
template <class T> T max(T x, T y) { return x < y ? y : x; }
// CUDA overloads the mathematical functions for float under their plain names.
using std::abs;
using std::ceil;
using std::copysign;
using std::floor;
using std::fmod;
using std::isinf;
using std::isnan;
using std::ldexp;
using std::rint;
using std::sqrt;
using std::trunc;
#ifndef MORTICE_INEXACT
using std::acos;
using std::acosh;
using std::asin;
using std::asinh;
using std::atan;
using std::atan2;
using std::atanh;
using std::cos;
using std::cosh;
using std::erf;
using std::exp;
using std::exp2;
using std::expm1;
using std::hypot;
using std::log;
using std::log10;
using std::log1p;
using std::log2;
using std::pow;
using std::sin;
using std::sinh;
using std::tan;
using std::tanh;
#else
// As far off as NVIDIA's Programming Guide allows for, less the rounding that is in the processor's result already: ulp of
// float and of double. Results that CUDA has exactly stay.
namespace on_cpu {
template <class T> T moved(T y, int ulps) {
  typedef std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t> Bits;
  if (!(std::abs(y) < T(1e30)) || std::abs(y) < T(1e-30) || y == 1 || y == -1) return y;
  Bits bits;
  memcpy(&bits, &y, sizeof(T));
  bits += bits * Bits(0x9E3779B97F4A7C15ull) >> (sizeof(T) * 8 - 1) ? ulps : -ulps;
  T found;
  memcpy(&found, &bits, sizeof(T));
  return std::abs(y) < 1 && std::abs(found) > 1 ? y : found;
}
}  // namespace on_cpu
#define INEXACT(name, single, twice)                                            \
  inline float name(float x) { return on_cpu::moved(std::name(x), single); }    \
  inline double name(double x) { return on_cpu::moved(std::name(x), twice); }
#define INEXACT_OF_TWO(name, single, twice)                                                       \
  inline float name(float x, float y) { return on_cpu::moved(std::name(x, y), single); }          \
  inline double name(double x, double y) { return on_cpu::moved(std::name(x, y), twice); }
INEXACT(acos, 1, 1) INEXACT(acosh, 3, 2) INEXACT(asin, 1, 1) INEXACT(asinh, 2, 2) INEXACT(atan, 1, 1)
INEXACT(atanh, 2, 1) INEXACT(cos, 1, 1) INEXACT(cosh, 1, 1) INEXACT(erf, 1, 1) INEXACT(exp, 1, 1) INEXACT(exp2, 1, 1)
INEXACT(expm1, 1, 1) INEXACT(log, 1, 1) INEXACT(log10, 1, 1) INEXACT(log1p, 1, 1) INEXACT(log2, 1, 1)
INEXACT(sin, 1, 1) INEXACT(sinh, 2, 1) INEXACT(tan, 3, 1) INEXACT(tanh, 1, 1)
INEXACT_OF_TWO(atan2, 2, 1) INEXACT_OF_TWO(hypot, 2, 1) INEXACT_OF_TWO(pow, 3, 1)
#endif
