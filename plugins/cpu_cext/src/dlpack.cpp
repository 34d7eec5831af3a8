// DLPack capsules: lending an array's memory to other libraries. The structures are those of the published standard.
#include "host.hpp"

#include <new>

namespace mortice {

namespace {

struct DLTensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

struct First {  // the form before versions
    DLTensor tensor;
    void *manager;
    void (*deleter)(First *);
};

struct Versioned {
    uint32_t major, minor;
    void *manager;
    void (*deleter)(Versioned *);
    uint64_t flags;
    DLTensor tensor;
};

constexpr uint64_t READ_ONLY = 1;

uint8_t code_of(DType d) {
    return d == BOOL ? 6 : is_unsigned(d) ? 1 : is_signed_int(d) ? 0 : d == BF16 ? 4 : is_complex(d) ? 5 : 2;
}

void describe(DLTensor &t, Array &x) {
    t = {x.data, 1, 0, x.ndim, code_of(x.dtype), static_cast<uint8_t>(8 * x.itemsize()), 1, x.shape(), x.strides(), 0};
}

// The borrower may be done on any thread.
template <class T> void give_back(T *lent) {
    PyGILState_STATE state = PyGILState_Ensure();
    Py_DECREF(static_cast<PyObject *>(lent->manager));
    PyGILState_Release(state);
    delete lent;
}

constexpr const char *name_of(First *) { return "dltensor"; }
constexpr const char *name_of(Versioned *) { return "dltensor_versioned"; }

// A capsule that was never taken gives its memory back itself; a taken one has another name.
template <class T> void drop(PyObject *capsule) {
    const char *name = name_of(static_cast<T *>(nullptr));
    if (!PyCapsule_IsValid(capsule, name)) return;
    auto *lent = static_cast<T *>(PyCapsule_GetPointer(capsule, name));
    lent->deleter(lent);
}

template <class T> PyObject *capsule_of(T *lent, Array &x) {
    lent->manager = Py_NewRef(reinterpret_cast<PyObject *>(&x));
    lent->deleter = give_back<T>;
    describe(lent->tensor, x);
    PyObject *capsule = PyCapsule_New(lent, name_of(lent), drop<T>);
    if (!capsule) {
        give_back(lent);
        throw Failed{};
    }
    return capsule;
}

}  // namespace

PyObject *to_dlpack(Array &x, bool versioned) {
    if (!versioned) return capsule_of(new First{}, x);
    auto *lent = new Versioned{};
    lent->major = 1;
    lent->flags = x.writable ? 0 : READ_ONLY;
    return capsule_of(lent, x);
}

}  // namespace mortice
