// Acyclicity functions h(A) and their slopes, as in castlereg.acyclicity, which explains the formulas.
#pragma once

#include "products.h"

namespace castlereg {
namespace CASTLEREG_ISA {

constexpr double LARGEST_LOG_VALUE = 28.0;

// Square matrices are stored with rows of `row` numbers, a multiple of the lanes; the last ones of each are zero.
template <class Real>
struct Square {
    Real* at;
    int nodes, row;
};

template <class Real>
inline int padded(int n) {
    return (n + LANES<Real> - 1) / LANES<Real> * LANES<Real>;
}

template <class Real>
inline void multiply(Square<Real> left, Square<Real> right, Square<Real> to, Begin begin = Begin::zero) {
    int n = left.nodes;
    product<Real>(n, left.row, n, {left.at, left.row, 1}, right.at, right.row, to.at, to.row, begin);
}

// The lesser of the largest row sum and the largest column sum: no less than the spectral radius.
template <class Real>
Real norm(Square<Real> a, Real* column_sums) {
    constexpr int L = LANES<Real>;
    Real rows = 0, columns = 0;
    for (int j = 0; j < a.row; j += L) store(column_sums + j, Vec<Real>{});
    for (int i = 0; i < a.nodes; ++i) {
        Vec<Real> total{};
        for (int j = 0; j < a.row; j += L) {
            Vec<Real> v = load(a.at + i * a.row + j);
            total += v;
            store(column_sums + j, load(column_sums + j) + v);
        }
        Real of_row = sum<Real>(total);
        rows = of_row > rows || of_row != of_row ? of_row : rows;
    }
    for (int j = 0; j < a.nodes; ++j)
        columns = column_sums[j] > columns || column_sums[j] != column_sums[j] ? column_sums[j] : columns;
    return rows < columns ? rows : columns;
}

template <class Real>
inline Real trace(Square<Real> a) {
    Real total = 0;
    for (int i = 0; i < a.nodes; ++i) total += a.at[i * a.row + i];
    return total;
}

template <class Real>
inline Real log_of_sum(Real a, Real b) {
    Real top = a > b ? a : b;
    if (!(top > -INFINITY)) return top;
    return top + std::log(std::exp(a - top) + std::exp(b - top));
}

// The number of squarings after which the omitted closed walks are below a millionth of h.
template <class Real>
int squarings_for_long_walks(Square<Real> x, Square<Real> x2, Square<Real> x3, int halvings, Real* scratch) {
    const int enough[5] = {0, 4, 5, 6, 7};
    const double seen[5] = {9, 16, 32, 64, 128};
    // log((seen + 1)!), not by lgamma, which writes a global variable.
    const double log_factorial[5] = {15.104412573076, 33.505073450137, 85.054467017582, 209.342586752537, 501.265290891579};
    int n = x.nodes, choices = 1;
    while (choices < 5 && n > 9 && seen[choices] / 2 < n) ++choices;
    double log_2 = halvings * std::log(2.0);
    double radius = std::fmin(double(norm(x, scratch)), std::cbrt(double(norm(x3, scratch))));
    double log_radius = std::log(radius) + log_2;
    double at_least =
        log_of_sum(std::log(double(trace(x2)) / 2) + 2 * log_2, std::log(double(trace(x3)) / 6) + 3 * log_2);
    for (int i = 0; i < choices; ++i) {
        double at_most = std::log(2.0 * n) + (seen[i] + 1) * log_radius - log_factorial[i];
        if (at_most <= at_least + std::log(1e-6)) return enough[i];
    }
    return enough[choices - 1];
}

template <class Real>
constexpr int SQUARES_OF_EXPONENTIAL = 5;

// tr exp(A) - p, and its slope exp(A)^T; a is overwritten. `work` has room for five matrices and a row.
template <class Real>
Real trace_exponential(Square<Real> a, Square<Real> slope, Real* work) {
    constexpr int L = LANES<Real>;
    const int n = a.nodes, size = n * a.row;
    Square<Real> x2{work, n, a.row}, x3{work + size, n, a.row}, tail{work + 2 * size, n, a.row};
    Square<Real> middle{work + 3 * size, n, a.row}, product_of{work + 4 * size, n, a.row};
    Real* scratch = work + 5 * size;
    const Vec<Real> most = all(Real(1e30));
    for (int i = 0; i < size; i += L) {
        Vec<Real> v = load(a.at + i);
        store(a.at + i, v > most ? most : v);
    }
    Real size_of_a = norm(a, scratch);
    int halvings = 0;
    if (size_of_a > Real(0.84)) halvings = int(std::ceil(std::log2(size_of_a / Real(0.84))));
    if (halvings < 0 || halvings > 200) halvings = 200;  // not finite
    auto scale = [&](Square<Real> m, double factor) {
        Vec<Real> by = all(Real(factor));
        for (int i = 0; i < size; i += L) store(m.at + i, load(m.at + i) * by);
    };
    if (halvings > 0) scale(a, std::exp2(-double(halvings)));
    multiply(a, a, x2);
    multiply(x2, a, x3);
    int longer = squarings_for_long_walks(a, x2, x3, halvings, scratch);
    int squarings = halvings > longer ? halvings : longer;
    if (squarings > halvings) {
        double shrink = std::exp2(double(halvings - squarings));
        scale(a, shrink), scale(x2, shrink * shrink), scale(x3, shrink * shrink * shrink);
    }
    // The Taylor polynomial of degree 9, without the identity.
    for (int i = 0; i < size; i += L) {
        Vec<Real> x = load(a.at + i), y = load(x2.at + i), z = load(x3.at + i);
        store(tail.at + i, x / all(Real(5040)) + y / all(Real(40320)) + z / all(Real(362880)));
        store(middle.at + i, x / all(Real(24)) + y / all(Real(120)) + z / all(Real(720)));
        store(product_of.at + i, x + y / all(Real(2)) + z / all(Real(6)));
    }
    multiply(x3, tail, middle, Begin::c);
    multiply(x3, middle, product_of, Begin::c);
    double log_scale = 0;
    Square<Real> now = product_of, next = tail;
    for (int s = 0; s < squarings; ++s) {  // (I + F)^2 - I = 2 F + F F
        multiply(now, now, next);
        Vec<Real> twice = all(Real(2 * std::exp(-log_scale)));
        Vec<Real> top{};
        for (int i = 0; i < size; i += L) {
            Vec<Real> v = twice * load(now.at + i) + load(next.at + i);
            top = v > top ? v : top;
            store(next.at + i, v);
        }
        Real largest = 0;
        for (int lane = 0; lane < L; ++lane) largest = top[lane] > largest ? top[lane] : largest;
        log_scale *= 2;
        if (largest > Real(1e6)) {
            scale(next, 1.0 / double(largest));
            log_scale += std::log(double(largest));
        }
        Square<Real> other = now;
        now = next, next = other;
    }
    Real of_trace = trace(now);
    bool positive = of_trace > 0;
    double log_trace = positive ? log_scale + std::log(double(of_trace)) : -INFINITY;
    double excess = log_trace - LARGEST_LOG_VALUE;
    bool far = excess > 0;
    double factor = far ? std::exp(LARGEST_LOG_VALUE) / (double(of_trace) * (1 + excess))
                        : std::exp(std::fmin(log_scale, LARGEST_LOG_VALUE));
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            slope.at[j * slope.row + i] = Real(factor) * now.at[i * now.row + j] + (i == j && !far ? Real(1) : Real(0));
    if (far) return Real(std::exp(LARGEST_LOG_VALUE) * (1 + std::log1p(excess)));
    return log_scale == 0 ? of_trace : Real(std::exp(log_trace));
}

// -log det(I - A), and its slope; a is overwritten.
template <class Real>
Real log_determinant(Square<Real> a, Square<Real> slope, Real* work) {
    constexpr int L = LANES<Real>;
    const int n = a.nodes;
    const Vec<Real> most = all(Real(1e30));
    for (int i = 0; i < n * a.row; i += L) {
        Vec<Real> v = load(a.at + i);
        store(a.at + i, v > most ? most : v);
    }
    Real s = norm(a, work) / Real(0.99);
    s = s > 1 ? s : (s != s ? s : Real(1));
    Real growth = 1 + std::log(s), value = 0;
    Vec<Real> by = all(Real(1) / s);
    for (int i = 0; i < n * a.row; i += L) store(a.at + i, load(a.at + i) * by);
    for (int i = 0; i < n; ++i) {  // walks that may also pass through node i
        Real loops = a.at[i * a.row + i];
        value -= std::log1p(-loops);
        Vec<Real> share = all(Real(1) / (1 - loops));
        for (int j = 0; j < a.row; j += L) store(work + j, load(a.at + i * a.row + j) * share);
        for (int k = 0; k < n; ++k) {
            Real into = a.at[k * a.row + i];
            if (into == 0) continue;
            Vec<Real> v = all(into);
            for (int j = 0; j < a.row; j += L)
                store(a.at + k * a.row + j, load(a.at + k * a.row + j) + v * load(work + j));
        }
    }
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j)
            slope.at[j * slope.row + i] = growth / s * (a.at[i * a.row + j] + (i == j ? Real(1) : Real(0)));
    return growth * value;
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
