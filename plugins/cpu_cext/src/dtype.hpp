// The element types, in the order of mortice.dtype.DTYPES, and how C++ types stand for them.
#pragma once
#include <cstddef>
#include <cstdint>

namespace mortice {

enum DType : uint8_t { BOOL, U8, U16, U32, U64, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128, DTYPES };

// Halves are stored as their bits; arithmetic on them is done in float (see kernels/half.hpp).
struct half { uint16_t bits; };
struct bhalf { uint16_t bits; };
template <class T> struct complex_of { T re, im; };
using cfloat = complex_of<float>;
using cdouble = complex_of<double>;

template <class T> inline constexpr bool FLOATING = __is_same(T, float) || __is_same(T, double);

constexpr uint8_t ITEMSIZE[DTYPES] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 8, 16};

constexpr bool is_unsigned(DType d) { return d >= U8 && d <= U64; }
constexpr bool is_signed_int(DType d) { return d >= I8 && d <= I64; }
constexpr bool is_int(DType d) { return d >= U8 && d <= I64; }
constexpr bool is_half(DType d) { return d == F16 || d == BF16; }
constexpr bool is_float(DType d) { return d >= F16 && d <= F64; }
constexpr bool is_complex(DType d) { return d >= C64; }
constexpr DType real_of(DType d) { return d == C64 ? F32 : d == C128 ? F64 : d; }
constexpr DType complex_with(DType d) { return d == F64 || d == C128 ? C128 : C64; }

extern const char *const DTYPE_NAMES[DTYPES];

// Return what `body` gives for a type of so many bytes, which is all that a copy asks of elements.
template <class F> auto by_width(int itemsize, F body) {
    switch (itemsize) {
        case 1: return body(uint8_t{});
        case 2: return body(uint16_t{});
        case 4: return body(uint32_t{});
        case 8: return body(uint64_t{});
        default: return body(cdouble{});
    }
}

template <class T> struct dtype_of;
#define MORTICE_DTYPE(T, D) template <> struct dtype_of<T> { static constexpr DType value = D; };
MORTICE_DTYPE(bool, BOOL) MORTICE_DTYPE(uint8_t, U8) MORTICE_DTYPE(uint16_t, U16) MORTICE_DTYPE(uint32_t, U32)
MORTICE_DTYPE(uint64_t, U64) MORTICE_DTYPE(int8_t, I8) MORTICE_DTYPE(int16_t, I16) MORTICE_DTYPE(int32_t, I32)
MORTICE_DTYPE(int64_t, I64) MORTICE_DTYPE(half, F16) MORTICE_DTYPE(bhalf, BF16) MORTICE_DTYPE(float, F32)
MORTICE_DTYPE(double, F64) MORTICE_DTYPE(cfloat, C64) MORTICE_DTYPE(cdouble, C128)
#undef MORTICE_DTYPE

}  // namespace mortice
