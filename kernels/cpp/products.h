// Matrix products: C (M x N) is, or grows by, A (M x K) times B (K x N).
//
// Columns are lanes of vectors, so N is a multiple of the lanes: rows of the table in the forward and backward pass,
// weights of a layer in its gradient. A is read number by number with any strides, so that a product with a transposed
// matrix is the same call. A block of some rows and two vectors of columns stays in registers while K goes by.
#pragma once

#include "vectors.h"

namespace castlereg {
namespace CASTLEREG_ISA {

enum class Begin { zero, c, bias };  // what a product is added to: nothing, C as it is, or one number per row

// What becomes of a finished product: it stays as it is, what is below zero becomes zero, or what stands where `gate`,
// which has the shape of C, is not above zero does.
enum class End { as_it_is, relu, gated };

template <class Real>
struct Factor {  // A: element (m, k) is at[m * row + k * depth]
    const Real* at;
    ptrdiff_t row, depth;
};

template <class Real, int ROWS, int VECTORS>
CASTLEREG_INLINE void product_block(
    Factor<Real> a, const Real* b, ptrdiff_t b_row, Real* c, ptrdiff_t c_row, int K, Begin begin, const Real* bias, End end,
    const Real* gate
) {
    constexpr int L = LANES<Real>;
    Vec<Real> total[ROWS][VECTORS];
#pragma GCC unroll 16
    for (int m = 0; m < ROWS; ++m)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; ++v) {
            if (begin == Begin::c)
                total[m][v] = load(c + m * c_row + v * L);
            else
                total[m][v] = begin == Begin::bias ? all(bias[m]) : Vec<Real>{};
        }
    for (int k = 0; k < K; ++k) {
        Vec<Real> of_b[VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; ++v) of_b[v] = load(b + k * b_row + v * L);
        const Real* of_a = a.at + k * a.depth;
#pragma GCC unroll 16
        for (int m = 0; m < ROWS; ++m) {
            Vec<Real> factor = all(of_a[m * a.row]);
#pragma GCC unroll 2
            for (int v = 0; v < VECTORS; ++v) total[m][v] += factor * of_b[v];
        }
    }
#pragma GCC unroll 16
    for (int m = 0; m < ROWS; ++m)
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; ++v) {
            const Vec<Real> zero{};
            Vec<Real> value = total[m][v];
            if (end == End::relu) value = value > zero ? value : zero;
            if (end == End::gated) value = load(gate + m * c_row + v * L) > zero ? value : zero;
            store(c + m * c_row + v * L, value);
        }
}

template <class Real, int ROWS>
void product_rows(
    Factor<Real> a, const Real* b, ptrdiff_t b_row, Real* c, ptrdiff_t c_row, int N, int K, Begin begin, const Real* bias, End end,
    const Real* gate
) {
    constexpr int L = LANES<Real>;
    int n = 0;
    for (; n + 2 * L <= N; n += 2 * L)
        product_block<Real, ROWS, 2>(a, b + n, b_row, c + n, c_row, K, begin, bias, end, gate + n);
    if (n < N) product_block<Real, ROWS, 1>(a, b + n, b_row, c + n, c_row, K, begin, bias, end, gate + n);
}

// The last rows, fewer than a block.
template <class Real, int ROWS>
inline void product_last(
    int rows, Factor<Real> a, const Real* b, ptrdiff_t b_row, Real* c, ptrdiff_t c_row, int N, int K, Begin begin,
    const Real* bias, End end, const Real* gate
) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS)
            product_rows<Real, ROWS>(a, b, b_row, c, c_row, N, K, begin, bias, end, gate);
        else
            product_last<Real, ROWS - 1>(rows, a, b, b_row, c, c_row, N, K, begin, bias, end, gate);
    }
}

template <class Real>
void product(
    int M, int N, int K, Factor<Real> a, const Real* b, ptrdiff_t b_row, Real* c, ptrdiff_t c_row,
    Begin begin = Begin::zero, const Real* bias = nullptr, End end = End::as_it_is, const Real* gate = nullptr
) {
    constexpr int BLOCK = CASTLEREG_BLOCK;
    int blocks = (M + BLOCK - 1) / BLOCK, m = 0;
    for (int left = blocks; left > 0; --left) {
        int rows = (M - m + left - 1) / left;  // of about the same size, each at most a block
        product_last<Real, BLOCK>(
            rows, {a.at + m * a.row, a.row, a.depth}, b, b_row, c + m * c_row, c_row, N, K, begin,
            bias == nullptr ? nullptr : bias + m, end, gate == nullptr ? c : gate + m * c_row
        );
        m += rows;
    }
}

// to (columns x rows) from (rows x columns); columns of `to` beyond the rows, up to whole vectors, become zero.
template <class Real>
inline void transpose_by_number(const Real* from, ptrdiff_t from_row, int rows, int columns, Real* to, ptrdiff_t to_row) {
    for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
}

typedef float Eight __attribute__((vector_size(32)));

CASTLEREG_INLINE void transpose_eight(const float* from, ptrdiff_t from_row, float* to, ptrdiff_t to_row) {
    Eight r[8], s[8];
    for (int i = 0; i < 8; ++i) std::memcpy(&r[i], from + i * from_row, 32);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        s[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
        r[4 * i] = __builtin_shufflevector(s[4 * i], s[4 * i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[4 * i + 1] = __builtin_shufflevector(s[4 * i], s[4 * i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[4 * i + 2] = __builtin_shufflevector(s[4 * i + 1], s[4 * i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[4 * i + 3] = __builtin_shufflevector(s[4 * i + 1], s[4 * i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
        s[i] = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        s[i + 4] = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * to_row, &s[i], 32);
}

template <class Real>
void transpose(const Real* from, ptrdiff_t from_row, int rows, int columns, Real* to, ptrdiff_t to_row) {
    int i = 0;
    if constexpr (sizeof(Real) == 4) {
        for (; i + 8 <= rows; i += 8) {
            int j = 0;
            for (; j + 8 <= columns; j += 8)
                transpose_eight(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
            transpose_by_number(from + i * from_row + j, from_row, 8, columns - j, to + j * to_row + i, to_row);
        }
    }
    transpose_by_number(from + i * from_row, from_row, rows - i, columns, to + i, to_row);
    constexpr int L = LANES<Real>;
    int end = (rows + L - 1) / L * L;
    if (rows < end)
        for (int j = 0; j < columns; ++j)
            for (int k = rows; k < end; ++k) to[j * to_row + k] = 0;
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
