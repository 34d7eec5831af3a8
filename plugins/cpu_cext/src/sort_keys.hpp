// Elements as unsigned integers of the same order: what sorting, selecting and searching compare.
//
// Every nan is the largest key, and both zeros are one. A key of up to 32 bits is packed with its position into a word, so
// words are all different, and any way of sorting them is stable.
#pragma once
#include <cstring>

#include "array.hpp"

namespace mortice {

using Wide128 = unsigned __int128;

template <class T> struct Order;
#define MORTICE_UNSIGNED(T, K, BITS)                                             \
    template <> struct Order<T> {                                                \
        using Key = K;                                                           \
        static constexpr int bits = BITS;                                        \
        static Key key(T x) { return static_cast<Key>(x); }                      \
    };
MORTICE_UNSIGNED(bool, uint32_t, 8)
MORTICE_UNSIGNED(uint8_t, uint32_t, 8)
MORTICE_UNSIGNED(uint16_t, uint32_t, 16)
MORTICE_UNSIGNED(uint32_t, uint32_t, 32)
MORTICE_UNSIGNED(uint64_t, uint64_t, 64)
#undef MORTICE_UNSIGNED
#define MORTICE_SIGNED(T, U, K, BITS)                                                                \
    template <> struct Order<T> {                                                                    \
        using Key = K;                                                                               \
        static constexpr int bits = BITS;                                                            \
        static Key key(T x) { return static_cast<U>(static_cast<U>(x) ^ (U{1} << (BITS - 1))); }     \
    };
MORTICE_SIGNED(int8_t, uint8_t, uint32_t, 8)
MORTICE_SIGNED(int16_t, uint16_t, uint32_t, 16)
MORTICE_SIGNED(int32_t, uint32_t, uint32_t, 32)
MORTICE_SIGNED(int64_t, uint64_t, uint64_t, 64)
#undef MORTICE_SIGNED
// U: the bits; S: the same, signed; INFINITE: the bits of infinity.
#define MORTICE_FLOAT(T, U, S, K, BITS, INFINITE)                                                    \
    template <> struct Order<T> {                                                                    \
        using Key = K;                                                                               \
        static constexpr int bits = BITS;                                                            \
        static Key key(T x) {                                                                        \
            constexpr U sign = static_cast<U>(U{1} << (BITS - 1));                                   \
            U b;                                                                                     \
            memcpy(&b, &x, sizeof b);                                                                \
            const U size = static_cast<U>(b & ~sign);                                                \
            const U negative = static_cast<U>(static_cast<S>(b) >> (BITS - 1));                      \
            U key = static_cast<U>(b ^ (negative | sign));                                           \
            key = size == 0 ? sign : key;                                                            \
            return size > static_cast<U>(INFINITE) ? static_cast<U>(~U{0}) : key;                    \
        }                                                                                            \
    };
MORTICE_FLOAT(half, uint16_t, int16_t, uint32_t, 16, 0x7c00)
MORTICE_FLOAT(bhalf, uint16_t, int16_t, uint32_t, 16, 0x7f80)
MORTICE_FLOAT(float, uint32_t, int32_t, uint32_t, 32, 0x7f800000)
MORTICE_FLOAT(double, uint64_t, int64_t, uint64_t, 64, 0x7ff0000000000000)
#undef MORTICE_FLOAT

// All the bits of a type's keys: exclusive or with them turns the order round.
template <class T> constexpr typename Order<T>::Key key_mask() {
    return static_cast<typename Order<T>::Key>(~uint64_t{0} >> (64 - Order<T>::bits));
}
template <class T> constexpr bool has_nan = false;
template <> inline constexpr bool has_nan<half> = true;
template <> inline constexpr bool has_nan<bhalf> = true;
template <> inline constexpr bool has_nan<float> = true;
template <> inline constexpr bool has_nan<double> = true;

// Call f(T()) with the C++ type of a dtype that has an order.
template <class F> auto with_order(DType d, F &&f) {
    switch (d) {
        case BOOL: return f(bool());
        case U8: return f(uint8_t());
        case U16: return f(uint16_t());
        case U32: return f(uint32_t());
        case U64: return f(uint64_t());
        case I8: return f(int8_t());
        case I16: return f(int16_t());
        case I32: return f(int32_t());
        case I64: return f(int64_t());
        case F16: return f(half());
        case BF16: return f(bhalf());
        case F32: return f(float());
        default: return f(double());
    }
}

// Sort n words by the bits from 32 to 32 + width, keeping the order of what is equal there; `room` is for n more. Returns
// which of the two holds the result. On several threads where it is worth it, unless inside parallel_for.
uint64_t *sort_words(uint64_t *words, uint64_t *room, int64_t n, int width);

}  // namespace mortice
