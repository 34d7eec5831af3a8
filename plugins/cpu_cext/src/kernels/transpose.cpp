#include "transpose.hpp"

#include "squares.hpp"

namespace mortice::ISA {

template <class T> static void transposed(char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t rows, int64_t columns) {
    constexpr int64_t SIDE = Square<T>::SIDE, SIZE = sizeof(T);
    int64_t whole_rows = rows / SIDE * SIDE, whole_columns = columns / SIDE * SIDE;
    for (int64_t i = 0; i < whole_rows; i += SIDE)
        for (int64_t j = 0; j < whole_columns; j += SIDE) {
            typename Square<T>::Row rows[SIDE];
#pragma GCC unroll 16
            for (int k = 0; k < SIDE; k++) __builtin_memcpy(&rows[k], from + (j + k) * from_stride + i * SIZE, sizeof rows[k]);
            Square<T>::turn(rows);
#pragma GCC unroll 16
            for (int k = 0; k < SIDE; k++) __builtin_memcpy(to + (i + k) * to_stride + j * SIZE, &rows[k], sizeof rows[k]);
        }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; j++)
            __builtin_memcpy(to + i * to_stride + j * SIZE, from + j * from_stride + i * SIZE, SIZE);
}

extern const TransposeTable transpose_table;
const TransposeTable transpose_table = {transposed<int8_t>, transposed<int32_t>, transposed<int64_t>};

}  // namespace mortice::ISA
