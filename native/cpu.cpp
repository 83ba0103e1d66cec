// A module of one function: which of the others this machine can run.
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include "cpu.h"

#include <Python.h>

static PyObject* level(PyObject*, PyObject*) { return PyLong_FromLong(level_of_machine()); }
static PyMethodDef functions[] = {{"level", level, METH_NOARGS, "0 baseline, 1 AVX2 and FMA, 2 AVX-512."},
                                  {nullptr, nullptr, 0, nullptr}};
static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_cpu", nullptr, -1, functions, nullptr, nullptr, nullptr, nullptr};
PyMODINIT_FUNC PyInit__cpu() { return PyModule_Create(&definition); }
