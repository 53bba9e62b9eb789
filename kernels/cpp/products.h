// Matrix products: C (M x N) is set to, or increased by, A (M x K) times B (K x N).
//
// Columns are lanes of vectors, so N is a multiple of the lanes: rows of the table in the forward and backward pass,
// weights of a layer in its gradient. A is read number by number with any strides, so that a product with a transposed
// matrix is the same call. A block of some rows and two vectors of columns stays in registers during the loop over K.
#pragma once

#include "vectors.h"

namespace castlereg {
namespace CASTLEREG_ISA {

enum class Begin { zero, c, bias };  // what a product is added to: nothing, C as it is, or one number per row

// How a finished product is changed: not at all; negative values become zero; or values where `gate`, which has the
// shape of C, is not above zero become zero.
enum class End { as_it_is, relu, gated };

template <class Real>
struct Factor {  // A: element (m, k) is at[m * row + k * depth]
    const Real* at;
    ptrdiff_t row, depth;
};

template <class Real>
struct Product {
    Factor<Real> a;
    const Real* b;
    ptrdiff_t b_row;
    Real* c;
    ptrdiff_t c_row;
    int N, K;
    Begin begin;
    const Real* bias;
    End end;
    const Real* gate;
};

#define CASTLEREG_FOR_BLOCK                                              \
    _Pragma("GCC unroll 16") for (int m = 0; m < ROWS; ++m)              \
        _Pragma("GCC unroll 2") for (int v = 0; v < VECTORS; ++v)

template <class Real, int ROWS, int VECTORS>
CASTLEREG_INLINE void product_block(const Product<Real>& p, ptrdiff_t n) {
    constexpr int L = LANES<Real>;
    const Vec<Real> zero{};
    Vec<Real> total[ROWS][VECTORS];
    Real* c = p.c + n;
    if (p.begin == Begin::bias) {
        CASTLEREG_FOR_BLOCK total[m][v] = all(p.bias[m]);
    } else if (p.begin == Begin::c) {
        CASTLEREG_FOR_BLOCK total[m][v] = load(c + m * p.c_row + v * L);
    } else {
        CASTLEREG_FOR_BLOCK total[m][v] = zero;
    }
    const Real *a = p.a.at, *b = p.b + n;
    const ptrdiff_t a_row = p.a.row, a_depth = p.a.depth, b_row = p.b_row;
    for (int k = p.K; k > 0; --k, a += a_depth, b += b_row) {
        Vec<Real> of_b[VECTORS];
#pragma GCC unroll 2
        for (int v = 0; v < VECTORS; ++v) of_b[v] = load(b + v * L);
#pragma GCC unroll 16
        for (int m = 0; m < ROWS; ++m) {
            const Vec<Real> factor = all(a[m * a_row]);
#pragma GCC unroll 2
            for (int v = 0; v < VECTORS; ++v) total[m][v] += factor * of_b[v];
        }
    }
    if (p.end == End::relu) {
        CASTLEREG_FOR_BLOCK total[m][v] = total[m][v] > zero ? total[m][v] : zero;
    } else if (p.end == End::gated) {
        const Real* gate = p.gate + n;
        CASTLEREG_FOR_BLOCK total[m][v] = load(gate + m * p.c_row + v * L) > zero ? total[m][v] : zero;
    }
    CASTLEREG_FOR_BLOCK store(c + m * p.c_row + v * L, total[m][v]);
}

template <class Real, int ROWS>
void product_rows(const Product<Real>& p) {
    constexpr int L = LANES<Real>;
    int n = 0;
    for (; n + 2 * L <= p.N; n += 2 * L) product_block<Real, ROWS, 2>(p, n);
    if (n < p.N) product_block<Real, ROWS, 1>(p, n);
}

// A block with the given number of rows, at most CASTLEREG_BLOCK.
template <class Real>
inline void product_of_rows(int rows, const Product<Real>& p) {
    static_assert(CASTLEREG_BLOCK <= 12, "every number of rows needs a case");
#define CASTLEREG_CASE(ROWS)                                                                      \
    case ROWS:                                                                                    \
        if constexpr (ROWS <= CASTLEREG_BLOCK) return product_rows<Real, ROWS>(p);                \
        break;
    switch (rows) {
        CASTLEREG_CASE(1)
        CASTLEREG_CASE(2)
        CASTLEREG_CASE(3)
        CASTLEREG_CASE(4)
        CASTLEREG_CASE(5)
        CASTLEREG_CASE(6)
        CASTLEREG_CASE(7)
        CASTLEREG_CASE(8)
        CASTLEREG_CASE(9)
        CASTLEREG_CASE(10)
        CASTLEREG_CASE(11)
        CASTLEREG_CASE(12)
    }
#undef CASTLEREG_CASE
}

template <class Real>
void product(
    int M, int N, int K, Factor<Real> a, const Real* b, ptrdiff_t b_row, Real* c, ptrdiff_t c_row,
    Begin begin = Begin::zero, const Real* bias = nullptr, End end = End::as_it_is, const Real* gate = nullptr
) {
    constexpr int BLOCK = CASTLEREG_BLOCK;
    Product<Real> p{a, b, b_row, c, c_row, N, K, begin, bias, end, gate};
    for (int left = (M + BLOCK - 1) / BLOCK; left > 0; --left) {
        const int rows = (M + left - 1) / left;  // blocks of about the same size
        product_of_rows(rows, p);
        M -= rows;
        p.a.at += rows * a.row;
        p.c += rows * c_row;
        if (bias != nullptr) p.bias += rows;
        if (gate != nullptr) p.gate += rows * c_row;
    }
}

typedef float Eight __attribute__((vector_size(32)));

// Eight columns of n rows, at most eight; missing rows are zero.
CASTLEREG_INLINE void transpose_eight(const float* from, ptrdiff_t from_row, int n, float* to, ptrdiff_t to_row) {
    Eight r[8], s[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
        r[i] = Eight{};
        if (i < n) std::memcpy(&r[i], from + i * from_row, 32);
    }
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

// Set the last vector of every row to zero, if `used` columns do not fill it.
template <class Real>
inline void clear_last_vector(Real* matrix, ptrdiff_t row, int rows, int used) {
    constexpr int L = LANES<Real>;
    if (used % L == 0) return;
    for (int r = 0; r < rows; ++r) store(matrix + r * row + used / L * L, Vec<Real>{});
}

// to (columns x rows) from (rows x columns), which has whole vectors of columns. Up to seven more columns of `to` become
// zero.
template <class Real>
void transpose(const Real* from, ptrdiff_t from_row, int rows, int columns, Real* to, ptrdiff_t to_row) {
    if constexpr (sizeof(Real) == 4 && LANES<Real> >= 8) {
        for (int i = 0; i < rows; i += 8)
            for (int j = 0; j < columns; j += 8)
                transpose_eight(
                    from + i * from_row + j, from_row, rows - i < 8 ? rows - i : 8, to + j * to_row + i, to_row
                );
    } else {
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j) to[j * to_row + i] = from[i * from_row + j];
    }
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
