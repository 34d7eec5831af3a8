// Products of bfloat16 by the matrix unit of newer x86 processors (AMX). Products are exact and added up in float, as
// everywhere; subnormal inputs and sums count as 0 there, as in PyTorch.
#pragma once
#include "../dtype.hpp"

namespace mortice {

constexpr int64_t TILE_ROWS = 16, TILE_DEPTH = 32, TILE_BYTES = 1024;

// Of 32 rows (or columns) of a product: 16 or fewer vectors and their elements, `step` and `deep` apart.
struct TileSide {
    const bhalf *data;
    int64_t count, step, deep;
};

// Whether this machine has the unit and the system lets the process use it.
bool tiles_ready();
// Bring 16 vectors (fewer, if that is what is left) of k elements into the form of tiles: of rows, or of columns.
void tiles_pack(TileSide side, int64_t k, bool rows, char *to);
// 32 rows by columns of C from packed tiles: blocks of 16 rows or columns follow each other. `count` blocks of 32 columns
// begin at column 0 of c; m and n are the rows and columns that there are, n counted from there.
void tiles_multiply(int64_t m, int64_t n, int64_t k, const char *a, const char *b, const float *bias, bhalf *c, int64_t ldc);

}  // namespace mortice
