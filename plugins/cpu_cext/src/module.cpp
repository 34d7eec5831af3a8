// The extension module: the methods of all families.
#include "families.hpp"
#include "isa.hpp"

namespace mortice {

static int execute(PyObject *module) {
    if (PyType_Ready(&ArrayType) < 0) return -1;
    if (PyModule_AddObjectRef(module, "Array", reinterpret_cast<PyObject *>(&ArrayType)) < 0) return -1;
#define MORTICE_ADD(name) \
    if (add_methods(module, name##_methods) < 0) return -1;
    MORTICE_FAMILIES(MORTICE_ADD)
    if (!modern()) return 0;
    MORTICE_MODERN_FAMILIES(MORTICE_ADD)
#undef MORTICE_ADD
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void *>(execute)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, nullptr},
};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_cext", "Arrays and kernels of mortice's C extension backend.", 0,
                                 nullptr, slots, nullptr, nullptr, nullptr};

}  // namespace mortice

PyMODINIT_FUNC PyInit__cext() { return PyModuleDef_Init(&mortice::definition); }
