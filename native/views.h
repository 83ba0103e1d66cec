// Arrays as the kernels see them: contiguous, C order, nothing owned.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <new>
#include <stdexcept>
#include <tuple>
#include <type_traits>

using i32 = std::int32_t;
using i64 = std::int64_t;
using u8 = std::uint8_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;

#define KF_INLINE [[gnu::always_inline]] inline

template <class T> struct Vec {
    T* data = nullptr;
    i64 n = 0;
    KF_INLINE T& operator[](i64 i) const { return data[i]; }
    KF_INLINE Vec part(i64 start, i64 stop) const { return {data + start, stop - start}; }
    KF_INLINE T* begin() const { return data; }
    KF_INLINE T* end() const { return data + n; }
    KF_INLINE operator Vec<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {data, n};
    }
};

template <class T> struct Mat {
    T* data = nullptr;
    i64 n = 0, p = 0;
    KF_INLINE T* operator[](i64 i) const { return data + i * p; }
    KF_INLINE T& operator()(i64 i, i64 j) const { return data[i * p + j]; }
    KF_INLINE Vec<T> row(i64 i) const { return {data + i * p, p}; }
    KF_INLINE operator Mat<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {data, n, p};
    }
};

// A stack of n matrices of p rows and q columns.
template <class T> struct Cube {
    T* data = nullptr;
    i64 n = 0, p = 0, q = 0;
    KF_INLINE Mat<T> operator[](i64 i) const { return {data + i * p * q, p, q}; }
    KF_INLINE operator Cube<const T>() const
        requires(!std::is_const_v<T>)
    {
        return {data, n, p, q};
    }
};

using In = Vec<const double>;
using Out = Vec<double>;
using Rows = Vec<const i64>;
using Labels = Vec<const i32>;
using MatIn = Mat<const double>;
using MatOut = Mat<double>;

// A word that another thread sets while a kernel runs: read anew every time.
struct Flag {
    const volatile bool* word = nullptr;
    KF_INLINE explicit operator bool() const { return *word; }
};

// Memory for the time of a call, aligned for the widest vectors.
template <class T> class Room {
    static_assert(std::is_trivially_destructible_v<T>);

  public:
    explicit Room(i64 size) : data(allocate(size)), n(size) {}
    Room(i64 size, T value) : Room(size) {
        for (i64 i = 0; i < n; ++i) data[i] = value;
    }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    ~Room() { ::operator delete(data, std::align_val_t(64)); }
    KF_INLINE T& operator[](i64 i) const { return data[i]; }
    KF_INLINE T* begin() const { return data; }
    KF_INLINE T* end() const { return data + n; }
    KF_INLINE operator Vec<T>() const { return {data, n}; }
    KF_INLINE operator Vec<const T>() const { return {data, n}; }
    KF_INLINE Mat<T> as(i64 rows, i64 columns) const { return {data, rows, columns}; }

    T* const data;
    const i64 n;

  private:
    static T* allocate(i64 size) {
        if (size < 0 || size > (i64(1) << 48)) throw std::bad_alloc();
        return static_cast<T*>(::operator new(static_cast<std::size_t>(size) * sizeof(T), std::align_val_t(64)));
    }
};

constexpr double INF = std::numeric_limits<double>::infinity();
constexpr double NOT_A_NUMBER = std::numeric_limits<double>::quiet_NaN();

// As Python's max and min: the first where neither is larger, and where one is not a number.
KF_INLINE double larger(double a, double b) { return b > a ? b : a; }
KF_INLINE double smaller(double a, double b) { return b < a ? b : a; }
KF_INLINE i64 larger(i64 a, i64 b) { return b > a ? b : a; }
KF_INLINE i64 smaller(i64 a, i64 b) { return b < a ? b : a; }

// What lengths alone do not tell of an argument: the border says which kernel it was.
KF_INLINE void require(bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(what);
}
