// Elements as unsigned integers of the same order: what sorting, selecting and searching compare.
//
// Every nan is the largest key, and both zeros are one. A key of up to 32 bits is packed with its position into a word, so
// words are all different, and any way of sorting them is stable.
#pragma once
#include <cstring>

#include "array.hpp"

namespace mortice {

using Wide128 = unsigned __int128;

// There are keys of five types: narrow numbers are widened first.
template <class T> struct Order;
template <> struct Order<uint64_t> {
    using Key = uint64_t;
    static constexpr int bits = 64;
    static Key key(uint64_t x) { return x; }
};
#define MORTICE_SIGNED(T, U, BITS)                                                                   \
    template <> struct Order<T> {                                                                    \
        using Key = U;                                                                               \
        static constexpr int bits = BITS;                                                            \
        static Key key(T x) { return static_cast<U>(x) ^ (U{1} << (BITS - 1)); }                     \
    };
MORTICE_SIGNED(int32_t, uint32_t, 32)
MORTICE_SIGNED(int64_t, uint64_t, 64)
#undef MORTICE_SIGNED
// U: the bits; S: the same, signed; INFINITE: the bits of infinity.
#define MORTICE_FLOAT(T, U, S, BITS, INFINITE)                                                       \
    template <> struct Order<T> {                                                                    \
        using Key = U;                                                                               \
        static constexpr int bits = BITS;                                                            \
        static Key key(T x) {                                                                        \
            constexpr U sign = U{1} << (BITS - 1);                                                   \
            U b;                                                                                     \
            memcpy(&b, &x, sizeof b);                                                                \
            const U size = b & ~sign, negative = static_cast<U>(static_cast<S>(b) >> (BITS - 1));    \
            U key = b ^ (negative | sign);                                                           \
            key = size == 0 ? sign : key;                                                            \
            return size > static_cast<U>(INFINITE) ? ~U{0} : key;                                    \
        }                                                                                            \
    };
MORTICE_FLOAT(float, uint32_t, int32_t, 32, 0x7f800000)
MORTICE_FLOAT(double, uint64_t, int64_t, 64, 0x7ff0000000000000)
#undef MORTICE_FLOAT

// All the bits of a type's keys: exclusive or with them turns the order round.
template <class T> constexpr typename Order<T>::Key key_mask() {
    return static_cast<typename Order<T>::Key>(~uint64_t{0} >> (64 - Order<T>::bits));
}

// x, or its elements in a wider dtype of the same order: one of those that with_order knows.
inline Ref in_order(Array &x) {
    const DType d = x.dtype;
    return converted(x, d == F16 || d == BF16 ? F32 : d == U32 ? I64 : ITEMSIZE[d] < 4 ? I32 : d);
}
// Call f(T()) with the C++ type of a dtype of in_order's.
template <class F> auto with_order(DType d, F &&f) {
    switch (d) {
        case I32: return f(int32_t());
        case I64: return f(int64_t());
        case U64: return f(uint64_t());
        case F32: return f(float());
        default: return f(double());
    }
}

// Sort n words by the bits from 32 to 32 + width, keeping the order of what is equal there; `room` is for n more. Returns
// which of the two holds the result. On several threads where it is worth it, unless inside parallel_for.
uint64_t *sort_words(uint64_t *words, uint64_t *room, int64_t n, int width);

}  // namespace mortice
