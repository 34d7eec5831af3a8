// The steps of optimisers over many parameters in one call, in place: operands are sorted into jobs, one a parameter, and
// the jobs run in blocks on all threads. What has no plain memory (other strides, halves, read-only) steps in a copy.
#include <cmath>

#include "families.hpp"
#include "kernels/optim.hpp"
#include "norm.hpp"

namespace mortice {

namespace {

constexpr int MOST_LISTS = MOST_OPERANDS;
constexpr int64_t STEP_BLOCK = 1 << 14;  // elements of a part of the work
constexpr int FEW = 64;                  // jobs that need no memory of their own

struct Job {
    void *at[MOST_LISTS];
    int64_t n;
    bool wide;  // of double
};

// Lists of arrays as they were given; empty ones stand for state that there is none of.
struct Lists {
    PyObject *lists[MOST_LISTS];  // borrowed
    int count;
    Py_ssize_t length;

    Lists(const char *name, PyObject *const *given, int count_) : count(count_), length(0) {
        for (int i = 0; i < count; i++) {
            lists[i] = given[i];
            if (!PyList_Check(lists[i])) fail(PyExc_TypeError, "%s: expected lists of arrays.", name);
            const Py_ssize_t n = PyList_GET_SIZE(lists[i]);
            if (i == 0) length = n;
            if (n != length && (i < 2 || n != 0)) fail(PyExc_ValueError, "%s: expected lists of one length.", name);
        }
    }
    Array *at(int list, Py_ssize_t i) const {
        return PyList_GET_SIZE(lists[list]) ? &as_array(PyList_GET_ITEM(lists[list], i)) : nullptr;
    }
};

// Lists of results: the given ones, or copies of those in which something had to be replaced.
struct Results {
    Own<> lists[MOST_LISTS];
    int count;

    explicit Results(const Lists &from) : count(from.count) {
        for (int i = 0; i < count; i++) lists[i] = Own<>::share(from.lists[i]);
    }
    void replace(const Lists &from, int list, Py_ssize_t i, Ref x) {
        if (lists[list].get() == from.lists[list]) {
            lists[list] = Own<>(PySequence_List(from.lists[list]));
            if (!lists[list]) throw Failed{};
        }
        PyList_SetItem(lists[list].get(), i, x.release());
    }
    // (parameters, state...)
    PyObject *tuple() {
        Own<> out(PyTuple_New(count - 1));
        if (!out) throw Failed{};
        for (int i = 0, j = 0; i < count; i++)
            if (i != 1) PyTuple_SET_ITEM(out.get(), j++, lists[i].release());
        return out.release();
    }
};

// Arrays that stand in for others while the step runs, and are then written into them.
struct StandIn {
    Array *x;
    PyObject *copy;  // owned
    int list;
    Py_ssize_t i;
};
class StandIns {
    StandIn *all_ = nullptr;
    int count_ = 0, room_ = 0;

  public:
    ~StandIns() {
        for (int i = 0; i < count_; i++) Py_DECREF(all_[i].copy);
        PyMem_Free(all_);
    }
    Array &add(Array &x, DType d, int list, Py_ssize_t i) {
        if (count_ == room_) {
            room_ = 2 * room_ + 8;
            auto *more = static_cast<StandIn *>(PyMem_Realloc(all_, sizeof(StandIn) * static_cast<size_t>(room_)));
            if (!more) out_of_memory(sizeof(StandIn) * static_cast<size_t>(room_));
            all_ = more;
        }
        Ref copy = make_like(x, d);
        assign(*copy, x);
        Array &made = *copy;
        all_[count_++] = {&x, copy.release(), list, i};
        return made;
    }
    void write_back(const Lists &from, Results &to) {
        for (int i = 0; i < count_; i++) {
            StandIn &s = all_[i];
            if (s.list == 1) continue;  // gradients stay as they are
            auto &copy = *reinterpret_cast<Array *>(s.copy);
            if (s.x->writable)
                assign(*s.x, copy);
            else
                to.replace(from, s.list, s.i, narrowed(Ref::share(&copy), s.x->dtype));
        }
    }
};

// The dtype that a step computes in: of the real and imaginary parts, for complex numbers.
DType step_dtype(const char *name, DType d) {
    if (!is_float(d) && !is_complex(d)) fail(PyExc_TypeError, "%s: expected floating point parameters; got %s.", name, DTYPE_NAMES[d]);
    return is_half(d) ? F32 : d;
}

bool same_strides(const Array &x, const Array &y) {
    if (x.contiguous && y.contiguous) return true;
    for (int i = 0; i < x.ndim; i++)
        if (x.strides()[i] != y.strides()[i] && x.shape()[i] != 1) return false;
    return true;
}

Job job_of(const char *name, const Lists &lists, Py_ssize_t i, StandIns &copies) {
    Array &p = *lists.at(0, i);
    const DType d = step_dtype(name, p.dtype);
    bool alike = p.contiguous || is_dense(p);  // all can be walked as one line
    for (int j = 1; j < lists.count; j++) {
        Array *x = lists.at(j, i);
        if (!x) continue;
        if (!same_shape(*x, p)) fail(PyExc_RuntimeError, "%s: expected gradients and state of the parameters' shapes.", name);
        if (x->dtype != p.dtype && is_complex(x->dtype) != is_complex(p.dtype))
            fail(PyExc_TypeError, "%s: expected gradients and state in %s; got %s.", name, DTYPE_NAMES[p.dtype], DTYPE_NAMES[x->dtype]);
        alike = alike && same_strides(*x, p);
    }
    Job job{{}, is_complex(d) ? 2 * p.size : p.size, real_of(d) == F64};
    for (int j = 0; j < lists.count; j++) {
        Array *x = lists.at(j, i);
        if (!x) continue;
        const bool as_it_is = x->dtype == d && (alike || x->contiguous) && (j == 1 || x->writable);
        job.at[j] = (as_it_is ? *x : copies.add(*x, d, j, i)).data;
    }
    // Copies are row-major: where one is needed, all that is not row-major must be one.
    if (alike && !p.contiguous)
        for (int j = 0; j < lists.count; j++) {
            Array *x = lists.at(j, i);
            if (x && job.at[j] != x->data) {
                for (int l = 0; l < lists.count; l++) {
                    Array *y = lists.at(l, i);
                    if (y && job.at[l] == y->data) job.at[l] = copies.add(*y, d, l, i).data;
                }
                break;
            }
        }
    return job;
}

void run_job(const Job &job, int64_t begin, int64_t end, Step<float> single, Step<double> wide, const StepNumbers &numbers) {
    if (job.wide) {
        double *at[MOST_LISTS];
        for (int j = 0; j < MOST_LISTS; j++) at[j] = job.at[j] ? static_cast<double *>(job.at[j]) + begin : nullptr;
        wide(at, end - begin, numbers);
    } else {
        float *at[MOST_LISTS];
        for (int j = 0; j < MOST_LISTS; j++) at[j] = job.at[j] ? static_cast<float *>(job.at[j]) + begin : nullptr;
        single(at, end - begin, numbers);
    }
}

void run_jobs(const Job *jobs, Py_ssize_t count, Step<float> single, Step<double> wide, const StepNumbers &numbers) {
    int64_t blocks = 0, all = 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        blocks += (jobs[i].n + STEP_BLOCK - 1) / STEP_BLOCK;
        all += jobs[i].n;
    }
    if (all <= 2 * STEP_BLOCK) {
        for (Py_ssize_t i = 0; i < count; i++) run_job(jobs[i], 0, jobs[i].n, single, wide, numbers);
        return;
    }
    Unlocked free(all);
    parallel_for(blocks, 1 + blocks * STEP_BLOCK / all / 2, [&](int64_t begin, int64_t end) {
        int64_t first = 0;  // the number of a job's first block
        for (Py_ssize_t i = 0; i < count && first < end; i++) {
            const int64_t mine = (jobs[i].n + STEP_BLOCK - 1) / STEP_BLOCK;
            int64_t from = begin > first ? begin - first : 0, to = end - first < mine ? end - first : mine;
            if (from < to) run_job(jobs[i], from * STEP_BLOCK, to == mine ? jobs[i].n : to * STEP_BLOCK, single, wide, numbers);
            first += mine;
        }
    });
}

PyObject *run(const char *name, PyObject *const *given, int count, Step<float> single, Step<double> wide,
              const StepNumbers &numbers) {
    const Lists lists(name, given, count);
    Results results(lists);
    StandIns copies;
    Job few[FEW];
    Scratch<Job> many(lists.length > FEW ? static_cast<size_t>(lists.length) : 1);
    Job *jobs = lists.length > FEW ? many.get() : few;
    for (Py_ssize_t i = 0; i < lists.length; i++) jobs[i] = job_of(name, lists, i, copies);
    run_jobs(jobs, lists.length, single, wide, numbers);
    copies.write_back(lists, results);
    return results.tuple();
}
#define RUN(rule, lists) run(#rule "_step", a, lists, step_kernels().f.rule, step_kernels().d.rule, s)

// ---- the rules: their numbers, as in mortice.backends.optim ----

struct Pair {
    double first, second;
};
Pair as_pair(PyObject *x) {
    if (!PyTuple_Check(x) && !PyList_Check(x)) fail(PyExc_TypeError, "step: expected a pair of numbers.");
    if (PySequence_Fast_GET_SIZE(x) != 2) fail(PyExc_TypeError, "step: expected a pair of numbers.");
    return {as_double(PySequence_Fast_GET_ITEM(x, 0)), as_double(PySequence_Fast_GET_ITEM(x, 1))};
}

// Decay of the gradient, or of the parameter itself.
void set_decay(StepNumbers &s, double lr, double weight_decay, bool decoupled, bool maximize) {
    s.sign = maximize ? -1 : 1;
    if (decoupled && weight_decay != 0)
        s.shrink = 1 - lr * weight_decay;
    else
        s.decay = weight_decay;
}
void set_averages(StepNumbers &s, Pair betas) {
    s.take1 = 1 - betas.first;
    s.keep2 = betas.second;
    s.take2 = 1 - betas.second;
}

#define STEP(rule, N, ...)                                                                                  \
    Names<N> rule##_names{#rule "_step", {__VA_ARGS__}, N};                                                 \
    PyObject *rule##_step(PyObject *const *args, Py_ssize_t n, PyObject *names) {                           \
        PyObject *a[N];                                                                                     \
        arguments(rule##_names, args, n, names, a);                                                         \
        StepNumbers s;

STEP(sgd, 10, "p", "g", "momentum_buffer", "lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize", "first")
    set_decay(s, 0, as_double(a[6]), false, as_bool(a[8]));
    s.length = as_double(a[3]);
    s.keep1 = as_double(a[4]);
    s.take1 = 1 - as_double(a[5]);
    s.flag = as_bool(a[7]);
    s.first = as_bool(a[9]);
    return RUN(sgd, 3);
}

STEP(asgd, 8, "p", "g", "ax", "lambd", "weight_decay", "maximize", "eta", "mu")
    const double eta = as_double(a[6]), mu = as_double(a[7]);
    set_decay(s, 0, as_double(a[4]), false, as_bool(a[5]));
    s.shrink = 1 - as_double(a[3]) * eta;
    s.length = eta;
    s.take1 = mu;
    s.first = mu == 1;
    return RUN(asgd, 3);
}

STEP(adam, 12, "p", "g", "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "lr", "betas", "eps", "weight_decay",
     "decoupled_weight_decay", "maximize", "step")
    const Pair betas = as_pair(a[6]);
    const double lr = as_double(a[5]), step = as_double(a[11]);
    set_decay(s, lr, as_double(a[8]), as_bool(a[9]), as_bool(a[10]));
    set_averages(s, betas);
    s.eps = as_double(a[7]);
    s.divide = std::sqrt(1 - std::pow(betas.second, step));
    s.length = lr / (1 - std::pow(betas.first, step));
    return RUN(adam, 5);
}

STEP(adamax, 10, "p", "g", "exp_avg", "exp_inf", "lr", "betas", "eps", "weight_decay", "maximize", "step")
    const Pair betas = as_pair(a[5]);
    set_decay(s, 0, as_double(a[7]), false, as_bool(a[8]));
    set_averages(s, betas);
    s.eps = as_double(a[6]);
    s.length = as_double(a[4]) / (1 - std::pow(betas.first, as_double(a[9])));
    return RUN(adamax, 4);
}

STEP(nadam, 14, "p", "g", "exp_avg", "exp_avg_sq", "lr", "betas", "eps", "weight_decay", "decoupled_weight_decay", "maximize",
     "step", "mu", "next_mu", "mu_product")
    const Pair betas = as_pair(a[5]);
    const double lr = as_double(a[4]), mu = as_double(a[11]), next = as_double(a[12]), mus = as_double(a[13]);
    set_decay(s, lr, as_double(a[7]), as_bool(a[8]), as_bool(a[9]));
    set_averages(s, betas);
    s.eps = as_double(a[6]);
    s.divide = 1 - std::pow(betas.second, as_double(a[10]));
    s.length = lr * (1 - mu) / (1 - mus);
    s.length2 = lr * next / (1 - mus * next);
    return RUN(nadam, 4);
}

STEP(radam, 11, "p", "g", "exp_avg", "exp_avg_sq", "lr", "betas", "eps", "weight_decay", "decoupled_weight_decay", "maximize",
     "step")
    const Pair betas = as_pair(a[5]);
    const double lr = as_double(a[4]), step = as_double(a[10]);
    set_decay(s, lr, as_double(a[7]), as_bool(a[8]), as_bool(a[9]));
    set_averages(s, betas);
    s.eps = as_double(a[6]);
    const double left = 1 - std::pow(betas.second, step), limit = 2 / (1 - betas.second) - 1;
    const double length = limit - 2 * step * std::pow(betas.second, step) / left;
    s.length = lr;
    s.divide = 1 - std::pow(betas.first, step);
    s.flag = length > 5;
    s.keep1 = std::sqrt(left);
    if (s.flag) s.length2 = std::sqrt((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
    return RUN(radam, 4);
}

STEP(rmsprop, 11, "p", "g", "square_avg", "momentum_buffer", "grad_avg", "lr", "alpha", "eps", "weight_decay", "momentum",
     "maximize")
    set_decay(s, 0, as_double(a[8]), false, as_bool(a[10]));
    s.length = as_double(a[5]);
    s.keep2 = as_double(a[6]);
    s.take2 = 1 - s.keep2;
    s.eps = as_double(a[7]);
    s.keep1 = as_double(a[9]);
    return RUN(rmsprop, 5);
}

STEP(adagrad, 9, "p", "g", "total", "lr", "lr_decay", "weight_decay", "eps", "maximize", "step")
    set_decay(s, 0, as_double(a[5]), false, as_bool(a[7]));
    s.eps = as_double(a[6]);
    s.length = as_double(a[3]) / (1 + (as_double(a[8]) - 1) * as_double(a[4]));
    return RUN(adagrad, 3);
}

STEP(adadelta, 9, "p", "g", "square_avg", "acc_delta", "lr", "rho", "eps", "weight_decay", "maximize")
    set_decay(s, 0, as_double(a[7]), false, as_bool(a[8]));
    s.length = as_double(a[4]);
    s.keep2 = as_double(a[5]);
    s.take2 = 1 - s.keep2;
    s.eps = as_double(a[6]);
    return RUN(adadelta, 4);
}

STEP(rprop, 7, "p", "g", "prev", "step_size", "etas", "step_sizes", "maximize")
    const Pair etas = as_pair(a[4]), bounds = as_pair(a[5]);
    s.sign = as_bool(a[6]) ? -1 : 1;
    s.keep1 = etas.first;
    s.keep2 = etas.second;
    s.take1 = bounds.first;
    s.take2 = bounds.second;
    return RUN(rprop, 4);
}

#undef STEP

// ---- numbers kept in the state ----

// Change each array of a list in place, or put a changed copy in its place; returns a tuple of the list.
template <class F> PyObject *each_of(const char *name, PyObject *given, F &&change) {
    const Lists lists(name, &given, 1);
    Results results(lists);
    for (Py_ssize_t i = 0; i < lists.length; i++) {
        Array &x = *lists.at(0, i);
        if (x.writable && x.contiguous) {
            change(x);
            continue;
        }
        Ref copy = copied(x);
        change(*copy);
        if (x.writable)
            assign(x, *copy);
        else
            results.replace(lists, 0, i, static_cast<Ref &&>(copy));
    }
    return PyTuple_Pack(1, results.lists[0].get());
}

Names<1> COUNT{"count_step", {"counts"}, 1};
PyObject *count_step(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[1];
    arguments(COUNT, args, n, names, a);
    return each_of("count_step", a[0], [](Array &x) {
        for (int64_t i = 0; i < x.size; i++) {
            char *at = x.data + i * x.itemsize();
            if (x.dtype == F32) {
                *reinterpret_cast<float *>(at) += 1;
                continue;
            }
            const Scalar next = scalar_of(to_double(at, x.dtype) + 1, x.dtype);
            __builtin_memcpy(at, next.bytes, static_cast<size_t>(x.itemsize()));
        }
    });
}

Names<2> HOLD{"hold_step", {"numbers", "value"}, 2};
PyObject *hold_step(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *a[2];
    arguments(HOLD, args, n, names, a);
    return each_of("hold_step", a[0], [&](Array &x) {
        const Scalar value = as_scalar(a[1], x.dtype);
        fill(x, value.bytes);
    });
}

}  // namespace

const Method optim_methods[] = {
    MORTICE_METHOD("sgd_step", sgd_step),
    MORTICE_METHOD("asgd_step", asgd_step),
    MORTICE_METHOD("adam_step", adam_step),
    MORTICE_METHOD("adamax_step", adamax_step),
    MORTICE_METHOD("nadam_step", nadam_step),
    MORTICE_METHOD("radam_step", radam_step),
    MORTICE_METHOD("rmsprop_step", rmsprop_step),
    MORTICE_METHOD("adagrad_step", adagrad_step),
    MORTICE_METHOD("adadelta_step", adadelta_step),
    MORTICE_METHOD("rprop_step", rprop_step),
    MORTICE_METHOD("count_step", count_step),
    MORTICE_METHOD("hold_step", hold_step),
    {},
};

}  // namespace mortice
