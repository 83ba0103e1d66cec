// One module for each set of instructions; KFREE_MODULE is its name.
#include "border.h"

namespace {

constexpr const char* CAPSULE = "kfree.kernel";

PyObject* enter(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    const void* kernel = PyCapsule_GetPointer(self, CAPSULE);
    return kernel ? (*static_cast<const border::Kernel*>(kernel))(arguments, count) : nullptr;
}

// A Python function for a kernel; what describes it lives as long as the process.
PyObject* function_of(const border::Kernel& kernel, PyObject* module_name) {
    PyObject* self = PyCapsule_New(const_cast<border::Kernel*>(&kernel), CAPSULE, nullptr);
    if (!self) return nullptr;
    auto* definition =
        new PyMethodDef{kernel.name().c_str(), reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&enter)),
                        METH_FASTCALL, kernel.signature().c_str()};
    PyObject* function = PyCFunction_NewEx(definition, self, module_name);
    Py_DECREF(self);
    return function;
}

}  // namespace

#define KFREE_PASTE(a, b) a##b
#define KFREE_INIT(name) KFREE_PASTE(PyInit_, name)
#define KFREE_TEXT(name) #name
#define KFREE_NAME(name) KFREE_TEXT(name)

PyMODINIT_FUNC KFREE_INIT(KFREE_MODULE)() {
    static PyModuleDef definition = {
        PyModuleDef_HEAD_INIT, KFREE_NAME(KFREE_MODULE), nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr};
    PyObject* module = PyModule_Create(&definition);
    PyObject* name = module ? PyModule_GetNameObject(module) : nullptr;
    if (!name) return nullptr;
    for (const border::Kernel* kernel : border::published()) {
        PyObject* function = function_of(*kernel, name);
        if (!function || PyModule_AddObjectRef(module, kernel->name().c_str(), function) != 0) return nullptr;
        Py_DECREF(function);
    }
    Py_DECREF(name);
    return module;
}
