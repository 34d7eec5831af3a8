// How kernels meet Python: arguments in, arrays out, C++ failures as exceptions, the GIL let go around real work.
#pragma once
#include <new>

#include "array.hpp"
#include "parallel.hpp"

namespace mortice {

// ---- functions ----

using Fast = PyObject *(*)(PyObject *const *args, Py_ssize_t nargs, PyObject *names);

void set_out_of_memory(PyObject *type);

// A row of a table of kernels; a table ends with an empty one.
struct Method {
    const char *name;  // the kernel's
    Fast body;
};
// Give a module the functions of a table.
int add_methods(PyObject *module, const Method *methods);
#define MORTICE_METHOD(name, ...) {name, __VA_ARGS__}

// Gives a kernel's results of so many dims, an array or some of a tuple, channels last. Takes the reference.
PyObject *with_channels_last(PyObject *results, int ndim);

// A kernel whose results of as many dims as its first two operands, `most` at most, have their channels last where one of
// them has: filters beside what they are moved over, what a gradient was taken of beside it.
PyObject *keep(PyObject *found, int most, PyObject *const *args, Py_ssize_t nargs);
template <Fast body, int most> PyObject *keeping(PyObject *const *args, Py_ssize_t nargs, PyObject *names) {
    return keep(body(args, nargs, names), most, args, nargs);
}
#define MORTICE_KEEPING(name, body, most) MORTICE_METHOD(name, ::mortice::keeping<body, most>)

// Sort positional and keyword arguments into `out`, in the order of `names`; what is not given is nullptr.
// The first `required` must be there. Names must be string literals of static life.
template <int N> struct Names {
    const char *function;
    const char *names[N];
    int required;
    PyObject *interned[N] = {};
};
void sort_arguments(const char *function, const char *const *names, PyObject **interned, int count, int required,
                    PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject **out);
template <int N>
inline void arguments(Names<N> &n, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames, PyObject *(&out)[N]) {
    sort_arguments(n.function, n.names, n.interned, N, n.required, args, nargs, kwnames, out);
}

// The one operand, `x`, of a kernel without attributes.
Array &only(const char *function, PyObject *const *args, Py_ssize_t nargs, PyObject *kwnames);

// ---- arguments ----

Array &as_array(PyObject *x);                          // TypeError for anything else
inline Array *as_optional(PyObject *x) { return x == nullptr || x == Py_None ? nullptr : &as_array(x); }
DType as_dtype(PyObject *d);                           // of a mortice DType
PyObject *dtype_object(DType d);                       // borrowed
// What a `partial_` kernel returns for operands that it leaves to the default body.
inline PyObject *default_body() { return Py_NewRef(Py_NotImplemented); }
int64_t as_int(PyObject *x);
double as_double(PyObject *x);
bool as_bool(PyObject *x);                             // nullptr and None are False
int as_axis(PyObject *x, int ndim);                    // -ndim..ndim-1, IndexError outside
// The axes that a reduction goes over: None (or nullptr) for all, an int, or a tuple. Returns a bit mask.
uint64_t as_axes(PyObject *x, int ndim);
// A tuple or list of ints; returns how many.
int as_ints(PyObject *x, int64_t *out, int at_most);

// One element of any dtype: a Python number on its way to be an operand.
struct alignas(16) Scalar { char bytes[16]; };
// A bool, int, float or complex as an element of `dtype`; TypeError where it is none, OverflowError where it does not fit.
Scalar as_scalar(PyObject *x, DType dtype);
Scalar scalar_of(double x, DType dtype);
PyObject *to_python(const char *element, DType dtype);  // new reference: bool, int, float or complex
double to_double(const char *element, DType dtype);     // the real part

PyObject *tuple_of(int n, const int64_t *values);       // new reference

inline PyObject *object(const Ref &x) { return x ? reinterpret_cast<PyObject *>(x.get()) : Py_None; }
// The results of a kernel with several of them; an empty one is None.
template <class... Rs> PyObject *as_tuple(const Rs &...items) {
    return PyTuple_Pack(static_cast<Py_ssize_t>(sizeof...(items)), object(items)...);
}

// ---- the GIL ----

// The state of this thread while it has let go of the GIL; by it parallel_for asks Python for signals now and then.
extern constinit thread_local PyThreadState *unlocked_state;
extern constinit thread_local bool must_finish;  // whether this thread's kernel overwrites what somebody has: signals wait
extern constinit thread_local int unlocked_threads;  // what num_threads() stays meanwhile: others may set it

// Lets other Python threads run while it lives, where there is enough work to be worth it.
class Unlocked {
    bool active_;

  public:
    // `work` is about the number of element steps to come.
    explicit Unlocked(int64_t work) : active_(work > 20000 && !unlocked_state) {
        if (!active_) return;
        unlocked_threads = num_threads();
        unlocked_state = PyEval_SaveThread();
    }
    ~Unlocked() {
        if (!active_) return;
        PyThreadState *state = unlocked_state;
        unlocked_state = nullptr;
        PyEval_RestoreThread(state);
    }
    Unlocked(const Unlocked &) = delete;
    Unlocked &operator=(const Unlocked &) = delete;
};

}  // namespace mortice
