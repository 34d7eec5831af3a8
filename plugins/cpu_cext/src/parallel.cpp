// The thread pool: workers wait, spinning for a moment and then asleep. Each thread has a range of parts of its own, the same
// in every loop of a length, whose memory its caches have from the kernel before; one that is done claims others' parts.
#include "parallel.hpp"

#include "call.hpp"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace mortice {

namespace {

constexpr int MAX_THREADS = 256;
constexpr std::chrono::microseconds AWAKE_FOR(200);  // the next kernel of a training step mostly comes within that
constexpr int PARTS_EACH = 4;    // parts for each thread, so that one that is disturbed does less of them
constexpr int64_t LONG = 256;    // grains beyond which work is cut into more parts, to hear of signals in between
constexpr std::chrono::milliseconds BETWEEN_SIGNALS(100);

struct Job {
    Part part;
    void *context;
    int64_t n, step, parts;
    int threads;

    void run(int64_t i) const { part(context, i * step, (i + 1) * step < n ? (i + 1) * step : n); }
    int64_t first(int thread) const { return parts * thread / threads; }
};

// A worker that wakes up on the caller's own processor waits there until the caller is done, though others are idle: where
// processors are much used Linux doesn't look for those. Where it will wake up cannot be known, so each is kept away from
// the caller's processor before it is woken, and takes back what it is allowed once it runs.
class alignas(64) Place {
  public:
    std::atomic<int64_t> next{0};  // of the thread's own parts
    void sleep() {  // the worker, before and after
#if defined(__linux__)
        self.store(gettid(), std::memory_order_relaxed);
        state.store(DOWN, std::memory_order_release);
#endif
    }
    void wake() {
#if defined(__linux__)
        State was = DOWN;
        if (state.compare_exchange_strong(was, AWAKE)) return;
        // One that wakes by itself meets the caller at work here: what it is allowed must not change behind its back.
        while (state.load(std::memory_order_acquire) == MOVING) sched_yield();
        if (state.load(std::memory_order_acquire) == SENT) sched_setaffinity(0, sizeof allowed, &allowed);
        state.store(AWAKE);
#endif
    }
    void leave([[maybe_unused]] int here) {  // the caller
#if defined(__linux__)
        State was = DOWN;
        if (here < 0 || !state.compare_exchange_strong(was, MOVING)) return;
        const pid_t worker = self.load(std::memory_order_relaxed);
        cpu_set_t others;
        bool sent = sched_getaffinity(worker, sizeof allowed, &allowed) == 0;
        if (sent) {
            others = allowed;
            CPU_CLR(static_cast<unsigned>(here), &others);
            sent = CPU_COUNT(&others) > 0 && sched_setaffinity(worker, sizeof others, &others) == 0;
        }
        state.store(sent ? SENT : DOWN, std::memory_order_release);
#endif
    }

#if defined(__linux__)
  private:
    enum State : int { AWAKE, DOWN, MOVING, SENT };
    std::atomic<State> state{AWAKE};
    std::atomic<pid_t> self{0};
    cpu_set_t allowed;  // what a worker that was sent away takes back
#endif
};
int processor() {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

struct Pool {
    std::mutex callers;                 // of those who want the pool
    std::atomic<int> round{0};          // counts jobs: a worker that sees it move looks for parts
    std::atomic<bool> open{false};      // whether the job may be joined
    std::atomic<int> active{0};         // workers that look at the job: it must not change under them
    std::atomic<int> asleep{0};
    Job job{};
    int workers = 0;                    // started
    Place places[MAX_THREADS];          // of the threads
    std::atomic<int> wanted{0};         // threads with the caller; 0 before the first question
};

thread_local int number = 0;
thread_local bool inside = false;

void reset_in_child();

Pool &the() {
    static Pool *one = [] {
        pthread_atfork(nullptr, nullptr, reset_in_child);
        return new Pool;
    }();
    return *one;
}

Pool *&slot() {
    static Pool *at = &the();
    return at;
}

// The threads of the parent do not exist in a child of fork: it starts with a pool of its own (the old one is left alone).
void reset_in_child() {
    int wanted = slot()->wanted.load();
    slot() = new Pool;
    slot()->wanted.store(wanted);
}

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

// Whether `moved` comes true while one waits awake. By the clock: a pause takes one processor five times as long as another.
template <class F> bool soon(F moved) {
    const auto until = std::chrono::steady_clock::now() + AWAKE_FOR;
    do
        for (int i = 0; i < 32; i++) {
            if (moved()) return true;
            pause();
        }
    while (std::chrono::steady_clock::now() < until);
    return false;
}

// The parts that this thread claims, `f` after each: first its own.
template <class F> void claim(Pool &p, const Job &job, F f) {
    inside = true;  // also while a signal's handler runs
    for (int k = 0, whose = number; k < job.threads; k++, whose = whose + 1 < job.threads ? whose + 1 : 0)
        for (int64_t i; (i = p.places[whose].next.fetch_add(1, std::memory_order_relaxed)) < job.first(whose + 1);)
            job.run(i), f();
    inside = false;
}

// Whether a signal's handler raised: asked with the GIL, so not often.
bool interrupted() {
    if (!unlocked_state) return false;
    PyEval_RestoreThread(unlocked_state);
    bool raised = PyErr_CheckSignals() < 0;
    PyEval_SaveThread();
    return raised;
}

// What the caller does: its share of the parts, with an ear for signals. Returns whether it was interrupted.
bool lead_parts(Pool &p, const Job &job) {
    auto asked = std::chrono::steady_clock::now();
    bool raised = false;
    claim(p, job, [&] {
        if (!unlocked_state || must_finish) return;
        auto now = std::chrono::steady_clock::now();
        if (now - asked < BETWEEN_SIGNALS) return;
        asked = now;
        if (!interrupted()) return;
        raised = true;
        for (int t = 0; t < job.threads; t++) p.places[t].next.store(job.parts);  // nobody begins another part
    });
    return raised;
}

void work(Pool *p, int mine, int seen) {
    number = mine;
    for (;;) {
        int now = seen;
        if (!soon([&] { return (now = p->round.load(std::memory_order_acquire)) != seen; })) {
            p->places[mine].sleep();
            p->asleep.fetch_add(1);
            p->round.wait(seen);
            p->asleep.fetch_sub(1);
            p->places[mine].wake();
            now = p->round.load(std::memory_order_acquire);
        }
        seen = now;
        // One that comes late finds the job closed and is not waited for. Announced first, it cannot be overlooked.
        p->active.fetch_add(1);
        if (p->open.load() && mine < p->job.threads) claim(*p, p->job, [] {});
        p->active.fetch_sub(1);
    }
}

void start(Pool &p, int workers) {
    for (; p.workers < workers; p.workers++) {
        int seen = p.round.load();
        Pool *pool = &p;
        int mine = p.workers + 1;
        try {
            std::thread(work, pool, mine, seen).detach();
        } catch (...) {  // the system gives no more threads: those there are must do
            break;
        }
    }
}

int from_environment() {
    for (const char *name : {"MORTICE_NUM_THREADS", "OMP_NUM_THREADS"})
        if (const char *text = getenv(name))
            if (int n = atoi(text); n > 0) return n < MAX_THREADS ? n : MAX_THREADS;
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        if (int n = CPU_COUNT(&set); n > 0) return n < MAX_THREADS ? n : MAX_THREADS;
#endif
    int n = static_cast<int>(std::thread::hardware_concurrency());
    return n < 1 ? 1 : n < MAX_THREADS ? n : MAX_THREADS;
}

}  // namespace

// A kernel that has let go of the GIL keeps the number that it began with: its rooms are for so many threads.
int num_threads() {
    if (unlocked_state) return unlocked_threads;
    Pool &p = *slot();
    int n = p.wanted.load(std::memory_order_relaxed);
    if (!n) p.wanted.store(n = from_environment(), std::memory_order_relaxed);
    return n;
}

void set_num_threads(int n) {
    slot()->wanted.store(n < 1 ? 1 : n < MAX_THREADS ? n : MAX_THREADS, std::memory_order_relaxed);
}

constinit thread_local PyThreadState *unlocked_state = nullptr;
constinit thread_local bool must_finish = false;
constinit thread_local int unlocked_threads = 1;

int thread_number() { return number; }
bool in_parallel() { return inside; }

static void divide(int64_t n, int64_t grain, Part part, void *context) {
    Pool &p = *slot();
    std::unique_lock<std::mutex> mine(p.callers, std::try_to_lock);
    if (!mine) {  // another Python thread has the pool; nor may loops within these parts have it when it is given back
        inside = true;
        part(context, 0, n);
        inside = false;
        return;
    }
    int threads = num_threads();
    start(p, threads - 1);
    if (grain < 1) grain = 1;
    int64_t parts = (n + grain - 1) / grain, most = int64_t{threads} * PARTS_EACH;
    if (parts > LONG * most) most *= 16;
    if (parts > most) parts = most;
    const int64_t step = (n + parts - 1) / parts;
    p.job = Job{part, context, n, step, (n + step - 1) / step, threads};
    for (int t = 0; t < threads; t++) p.places[t].next.store(p.job.first(t));
    if (threads > 1) {
        p.open.store(true);
        p.round.fetch_add(1);
        if (p.asleep.load() > 0) {
            const int here = processor();
            for (int i = 1; i <= p.workers; i++) p.places[i].leave(here);
            p.round.notify_all();
        }
    }
    bool raised = lead_parts(p, p.job);
    p.open.store(false);
    const auto done = [&] { return p.active.load() == 0; };
    if (!soon(done))
        while (!done()) sched_yield();
    if (raised) {
        mine.unlock();
        throw Failed{};
    }
}

void parallel_run(int64_t n, int64_t grain, Part part, void *context) {
    if (n <= 0) return;
#if defined(__SANITIZE_THREAD__)
    grain = 1;  // even the smallest work is divided, for the sanitizer to see
#endif
    if (n <= grain || inside)
        part(context, 0, n);
    else
        divide(n, grain, part, context);
}

}  // namespace mortice
