// Small squares that are transposed in registers.
#pragma once
#include "simd.hpp"

namespace mortice::ISA {

// Loops are unrolled by command: rolled up, their arrays lie in memory and not in registers.
template <class T> struct Square;  // SIDE rows of SIDE elements; `turn` makes columns of them

typedef int8_t Sixteen __attribute__((vector_size(16)));
typedef int32_t Eight __attribute__((vector_size(32)));
typedef int64_t Four __attribute__((vector_size(32)));

// 8 x 8 elements of 4 bytes: neighbours, then pairs, then halves change places.
template <> struct Square<int32_t> {
    static constexpr int SIDE = 8;
    using Row = Eight;
    INLINE void turn(Row *r) {
        Row s[8];
        const Eight low = {0, 8, 1, 9, 4, 12, 5, 13}, high = {2, 10, 3, 11, 6, 14, 7, 15};
#pragma GCC unroll 8
        for (int i = 0; i < 8; i += 2) {
            s[i] = mixed(r[i], r[i + 1], low);
            s[i + 1] = mixed(r[i], r[i + 1], high);
        }
        const Eight pairs_low = {0, 1, 8, 9, 4, 5, 12, 13}, pairs_high = {2, 3, 10, 11, 6, 7, 14, 15};
#pragma GCC unroll 8
        for (int i = 0; i < 8; i += 4)
#pragma GCC unroll 8
            for (int j = 0; j < 2; j++) {
                r[i + 2 * j] = mixed(s[i + j], s[i + j + 2], pairs_low);
                r[i + 2 * j + 1] = mixed(s[i + j], s[i + j + 2], pairs_high);
            }
        const Eight first = {0, 1, 2, 3, 8, 9, 10, 11}, second = {4, 5, 6, 7, 12, 13, 14, 15};
#pragma GCC unroll 8
        for (int i = 0; i < 4; i++) {
            s[i] = mixed(r[i], r[i + 4], first);
            s[i + 4] = mixed(r[i], r[i + 4], second);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) r[i] = s[i];
    }
};

template <> struct Square<int64_t> {
    static constexpr int SIDE = 4;
    using Row = Four;
    INLINE void turn(Row *r) {
        Row s[4];
        const Four even = {0, 4, 2, 6}, odd = {1, 5, 3, 7}, first = {0, 1, 4, 5}, second = {2, 3, 6, 7};
#pragma GCC unroll 8
        for (int i = 0; i < 4; i += 2) {
            s[i] = mixed(r[i], r[i + 1], even);
            s[i + 1] = mixed(r[i], r[i + 1], odd);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 2; i++) {
            r[i] = mixed(s[i], s[i + 2], first);
            r[i + 2] = mixed(s[i], s[i + 2], second);
        }
    }
};

// Four times each row and that eight below it become two rows in which their elements take turns.
template <> struct Square<int8_t> {
    static constexpr int SIDE = 16;
    using Row = Sixteen;
    INLINE void turn(Row *r) {
        Row s[16];
        const Sixteen low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, high = low + 8;
        for (int round = 0; round < 4; round++) {
            for (int i = 0; i < 8; i++) {
                s[2 * i] = mixed(r[i], r[i + 8], low);
                s[2 * i + 1] = mixed(r[i], r[i + 8], high);
            }
            for (int i = 0; i < 16; i++) r[i] = s[i];
        }
    }
};

}  // namespace mortice::ISA
