// The border to Python: the stable ABI of 3.11 and its buffers, nothing else.
//
// A kernel is declared in one line, with the names of its arguments and their lengths:
//
//     border::kernel<own<double>, own<float>>("own(X[N,p], rows[n]<N, scale[N]?, mean[K,p], labels[n]<K, cost[n])")
//
// Equal letters are equal lengths. Also: [*] any length, [3], [N+1], [2K], [n..] n or more; `?` an array of length 0
// stands for "none"; `<K` its values are indices below K, `<K|-1` or -1; a tuple is name(item, item). Every form of the
// kernel (here double and float) has these arguments; the first whose types fit is called, without the GIL.
// Nothing is converted or copied. Errors name the kernel and the argument.
#pragma once
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#endif
#include <Python.h>

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "views.h"

namespace border {

// What a kernel takes in one place. Codes of arrays: 'f' float32, 'd' float64, 'i' int32, 'q' int64, 'B' uint8,
// 'Q' uint64, '?' bool; of scalars (rank -1): 'R' real, 'W' whole, 'T' truth.
struct Want {
    char code;
    signed char rank;
    bool writes;
};

// What was given in one place: an array or a number.
struct Leaf {
    Py_buffer view;
    double real;
    i64 whole;
    char code;
    signed char rank;
};

template <class T> constexpr char code_of() {
    using V = std::remove_const_t<T>;
    if constexpr (std::is_same_v<V, bool>) return '?';
    else if constexpr (std::is_same_v<V, float>) return 'f';
    else if constexpr (std::is_same_v<V, double>) return 'd';
    else if constexpr (std::is_same_v<V, i32>) return 'i';
    else if constexpr (std::is_same_v<V, i64>) return 'q';
    else if constexpr (std::is_same_v<V, u8>) return 'B';
    else if constexpr (std::is_same_v<V, u32>) return 'I';
    else if constexpr (std::is_same_v<V, u64>) return 'Q';
    else static_assert(sizeof(V) == 0, "no array of this type crosses the border");
}

// Parameter<A>: the places a parameter takes, and how a kernel's argument is made of what was given there.
template <class A> struct Parameter;
template <class T> struct Parameter<Vec<T>> {
    static constexpr int places = 1;
    static constexpr Want want{code_of<T>(), 1, !std::is_const_v<T>};
    static Vec<T> take(const Leaf*& at) {
        const Py_buffer& view = (at++)->view;
        return {static_cast<T*>(view.buf), view.shape[0]};
    }
};
template <class T> struct Parameter<Mat<T>> {
    static constexpr int places = 1;
    static constexpr Want want{code_of<T>(), 2, !std::is_const_v<T>};
    static Mat<T> take(const Leaf*& at) {
        const Py_buffer& view = (at++)->view;
        return {static_cast<T*>(view.buf), view.shape[0], view.shape[1]};
    }
};
template <class T> struct Parameter<Cube<T>> {
    static constexpr int places = 1;
    static constexpr Want want{code_of<T>(), 3, !std::is_const_v<T>};
    static Cube<T> take(const Leaf*& at) {
        const Py_buffer& view = (at++)->view;
        return {static_cast<T*>(view.buf), view.shape[0], view.shape[1], view.shape[2]};
    }
};
template <> struct Parameter<Flag> {
    static constexpr int places = 1;
    static constexpr Want want{'?', 1, false};
    static Flag take(const Leaf*& at) { return {static_cast<const bool*>((at++)->view.buf)}; }
};
template <> struct Parameter<double> {
    static constexpr int places = 1;
    static constexpr Want want{'R', -1, false};
    static double take(const Leaf*& at) { return (at++)->real; }
};
template <> struct Parameter<i64> {
    static constexpr int places = 1;
    static constexpr Want want{'W', -1, false};
    static i64 take(const Leaf*& at) { return (at++)->whole; }
};
template <> struct Parameter<bool> {
    static constexpr int places = 1;
    static constexpr Want want{'T', -1, false};
    static bool take(const Leaf*& at) { return (at++)->whole != 0; }
};
template <class... P> struct Parameter<std::tuple<P...>> {
    static constexpr int places = (0 + ... + Parameter<P>::places);
    static std::tuple<P...> take(const Leaf*& at) { return std::tuple<P...>{Parameter<P>::take(at)...}; }
};

template <class A> struct Wants {
    static void append(std::vector<Want>& wants) { wants.push_back(Parameter<A>::want); }
};
template <class... P> struct Wants<std::tuple<P...>> {
    static void append(std::vector<Want>& wants) { (Wants<P>::append(wants), ...); }
};

inline PyObject* give(double value) { return PyFloat_FromDouble(value); }
inline PyObject* give(i64 value) { return PyLong_FromLongLong(value); }
inline PyObject* give(bool value) { return PyBool_FromLong(value); }
template <class... P> PyObject* give(const std::tuple<P...>& values) {
    PyObject* out = PyTuple_New(sizeof...(P));
    Py_ssize_t at = 0;
    if (out) std::apply([&](auto... value) { (PyTuple_SetItem(out, at++, give(value)), ...); }, values);
    return out;
}

struct NoGil {
    PyThreadState* state = PyEval_SaveThread();
    NoGil() = default;
    NoGil(const NoGil&) = delete;
    NoGil& operator=(const NoGil&) = delete;
    ~NoGil() {
        try {
            PyEval_RestoreThread(state);
        } catch (...) {
            // The interpreter is ending and unwinds this thread, a daemon. What is up the stack would touch objects
            // without the GIL, so the thread waits for the end of the process, as it would in Python 3.14.
            for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
        }
    }
};

// One form of a kernel: the types it takes, and how it is called.
struct Form {
    std::vector<Want> wants;
    PyObject* (*call)(const Leaf* leaves);
};

template <class R, class... A> PyObject* run(R (*kernel)(A...), const Leaf* at) {
    const std::tuple<A...> arguments{Parameter<A>::take(at)...};  // braces: from left to right
    if constexpr (std::is_void_v<R>) {
        {
            const NoGil free;
            std::apply(kernel, arguments);
        }
        return Py_NewRef(Py_None);
    } else {
        R result;
        {
            const NoGil free;
            result = std::apply(kernel, arguments);
        }
        return give(result);
    }
}

template <class R, class... A> Form form(R (*)(A...), PyObject* (*call)(const Leaf*)) {
    Form made{{}, call};
    (Wants<A>::append(made.wants), ...);
    return made;
}

// A length: times * symbol + plus, or `plus` alone where there is no symbol; at least that much if `open`.
struct Length {
    int symbol = -1;
    i64 times = 1, plus = 0;
    bool any = false, open = false;
};

struct Item {
    std::string name;
    std::vector<Length> lengths;
    bool optional = false, indexes = false, minus_one = false;
    Length below;             // of indices
    std::vector<Item> items;  // of a tuple
};

class Kernel {
  public:
    Kernel(const char* declaration, std::vector<Form> forms);
    PyObject* operator()(PyObject* const* arguments, Py_ssize_t count) const;
    const std::string& name() const { return name_; }
    const std::string& signature() const { return signature_; }

  private:
    struct Reading;
    bool read(const std::vector<Item>& items, PyObject* const* arguments, Reading& reading) const;
    bool check_lengths(const Reading& reading) const;
    bool fits(const Form& form, const Reading& reading) const;
    void complain_of_types(const Reading& reading) const;

    std::string name_, signature_;  // the second with the names of arguments, as Python's inspect reads it
    std::vector<Item> items_;
    std::vector<std::string> symbols_;
    std::vector<Form> forms_;
};

// Kernels that the module offers; every file of kernels adds its own.
std::vector<const Kernel*>& published();

struct Publish {
    explicit Publish(std::span<const Kernel> kernels) {
        for (const Kernel& kernel : kernels) published().push_back(&kernel);
    }
};

template <auto... KERNELS> Kernel kernel(const char* declaration) {
    return Kernel(declaration, {form(KERNELS, [](const Leaf* at) { return run(KERNELS, at); })...});
}

}  // namespace border
