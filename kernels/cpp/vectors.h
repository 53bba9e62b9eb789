// Vectors of the instruction set that a file is compiled for, and the functions on them that networks need.
//
// These headers are compiled once for every instruction set, in its own namespace (CASTLEREG_ISA). No templates of the
// standard library are used here: the linker would keep one copy of each, compiled for any of the instruction sets.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__) && defined(__AVX512DQ__) && defined(__AVX512VL__) && defined(__AVX512BW__)
#define CASTLEREG_BYTES 64
#define CASTLEREG_BLOCK 12  // rows of a product that are summed side by side, times two vectors: of 32 registers
#elif defined(__AVX2__)
#define CASTLEREG_BYTES 32
#define CASTLEREG_BLOCK 6  // of 16 registers
#elif defined(__ARM_NEON)
#define CASTLEREG_BYTES 16
#define CASTLEREG_BLOCK 10  // of 32 registers
#else
#define CASTLEREG_BYTES 16
#define CASTLEREG_BLOCK 4
#endif

namespace castlereg {
namespace CASTLEREG_ISA {

template <class Real>
struct VectorOf {
    typedef Real type __attribute__((vector_size(CASTLEREG_BYTES)));
};
template <class Real>
using Vec = typename VectorOf<Real>::type;
typedef uint32_t Bits __attribute__((vector_size(CASTLEREG_BYTES)));
typedef int32_t Ints __attribute__((vector_size(CASTLEREG_BYTES)));

template <class Real>
constexpr int LANES = CASTLEREG_BYTES / sizeof(Real);

#define CASTLEREG_INLINE inline __attribute__((always_inline))

template <class Real>
CASTLEREG_INLINE Vec<Real> load(const Real* from) {
    Vec<Real> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class Real>
CASTLEREG_INLINE void store(Real* to, Vec<Real> v) {
    std::memcpy(to, &v, sizeof v);
}

// The first n numbers, n below the lanes; the other lanes are zero.
template <class Real>
CASTLEREG_INLINE Vec<Real> load_some(const Real* from, ptrdiff_t n) {
#if CASTLEREG_BYTES == 64
    if constexpr (sizeof(Real) == 4)
        return _mm512_maskz_loadu_ps(__mmask16((1u << n) - 1), from);
    else
        return _mm512_maskz_loadu_pd(__mmask8((1u << n) - 1), from);
#else
    Vec<Real> v{};
    for (ptrdiff_t i = 0; i < n; ++i) v[i] = from[i];
    return v;
#endif
}

template <class Real>
CASTLEREG_INLINE void store_some(Real* to, Vec<Real> v, ptrdiff_t n) {
#if CASTLEREG_BYTES == 64
    if constexpr (sizeof(Real) == 4)
        _mm512_mask_storeu_ps(to, __mmask16((1u << n) - 1), v);
    else
        _mm512_mask_storeu_pd(to, __mmask8((1u << n) - 1), v);
#else
    for (ptrdiff_t i = 0; i < n; ++i) to[i] = v[i];
#endif
}

template <class Real>
CASTLEREG_INLINE Vec<Real> all(Real value) {
    return value - Vec<Real>{};  // in every lane; subtracting zero changes no number
}

template <class Real>
CASTLEREG_INLINE Vec<Real> larger(Vec<Real> a, Vec<Real> b) {
    return a > b ? a : b;
}

template <class Real>
CASTLEREG_INLINE Vec<Real> absolute(Vec<Real> a) {
    return a < Vec<Real>{} ? -a : a;
}

CASTLEREG_INLINE Vec<float> root(Vec<float> a) {
#if CASTLEREG_BYTES == 64
    return _mm512_sqrt_ps(a);
#elif CASTLEREG_BYTES == 32
    return _mm256_sqrt_ps(a);
#else
    for (int lane = 0; lane < LANES<float>; ++lane) a[lane] = std::sqrt(a[lane]);
    return a;
#endif
}
CASTLEREG_INLINE Vec<double> root(Vec<double> a) {
    for (int lane = 0; lane < LANES<double>; ++lane) a[lane] = std::sqrt(a[lane]);
    return a;
}

// Sum of the lanes, always in the same order.
template <class Real>
CASTLEREG_INLINE Real sum(Vec<Real> v) {
    typedef Real Quarter __attribute__((vector_size(16)));
    Quarter parts[CASTLEREG_BYTES / 16];
    std::memcpy(parts, &v, sizeof v);
    for (int half = CASTLEREG_BYTES / 32; half > 0; half /= 2)
        for (int part = 0; part < half; ++part) parts[part] += parts[part + half];
    if constexpr (sizeof(Real) == 4)
        return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
    else
        return parts[0][0] + parts[0][1];
}

typedef float FourFloats __attribute__((vector_size(16)));

// Sums of the lanes of four vectors at once.
CASTLEREG_INLINE void store_sums(Vec<float> a, Vec<float> b, Vec<float> c, Vec<float> d, float* to) {
    FourFloats sums{};
    FourFloats parts[4][CASTLEREG_BYTES / 16];
    std::memcpy(parts[0], &a, sizeof a);
    std::memcpy(parts[1], &b, sizeof b);
    std::memcpy(parts[2], &c, sizeof c);
    std::memcpy(parts[3], &d, sizeof d);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i)
#pragma GCC unroll 2
        for (int half = CASTLEREG_BYTES / 32; half > 0; half /= 2)
#pragma GCC unroll 2
            for (int part = 0; part < half; ++part) parts[i][part] += parts[i][part + half];
    FourFloats ab = __builtin_shufflevector(parts[0][0], parts[1][0], 0, 4, 1, 5) +
                    __builtin_shufflevector(parts[0][0], parts[1][0], 2, 6, 3, 7);
    FourFloats cd = __builtin_shufflevector(parts[2][0], parts[3][0], 0, 4, 1, 5) +
                    __builtin_shufflevector(parts[2][0], parts[3][0], 2, 6, 3, 7);
    sums = __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    std::memcpy(to, &sums, sizeof sums);
}
CASTLEREG_INLINE void store_sums(Vec<double> a, Vec<double> b, Vec<double> c, Vec<double> d, double* to) {
    to[0] = sum<double>(a), to[1] = sum<double>(b), to[2] = sum<double>(c), to[3] = sum<double>(d);
}

// The nearest whole number, for numbers below 2^22 in size.
CASTLEREG_INLINE Vec<float> nearest(Vec<float> x) {
    const Vec<float> magic = all(12582912.0f);
    return (x + magic) - magic;
}
CASTLEREG_INLINE Vec<double> nearest(Vec<double> x) {
    const Vec<double> magic = all(6755399441055744.0);
    return (x + magic) - magic;
}

// exp(x): 2^n times a polynomial of the remainder. NaN stays NaN; results outside of float32's range are 0 or infinite.
CASTLEREG_INLINE Vec<float> exponential(Vec<float> x) {
    const Vec<float> low = all(-103.0f), high = all(88.72f);
    Vec<float> bounded = x < low ? low : (x > high ? high : x);
    Vec<float> n = nearest(bounded * all(1.44269504f));
    Vec<float> r = bounded - n * all(0.693359375f) + n * all(2.12194440e-4f);
    Vec<float> y = all(1.9875691500e-4f);
    y = y * r + all(1.3981999507e-3f);
    y = y * r + all(8.3334519073e-3f);
    y = y * r + all(4.1665795894e-2f);
    y = y * r + all(1.6666665459e-1f);
    y = y * r + all(5.0000001201e-1f);
    y = y * r * r + r + all(1.0f);
    // In two factors, so that results below the smallest normal number lose only some digits.
    Ints whole = __builtin_convertvector(n, Ints), first = whole >> 1, second = whole - first;
    Vec<float> a, b;
    Ints bits = (first + 127) << 23;
    std::memcpy(&a, &bits, sizeof a);
    bits = (second + 127) << 23;
    std::memcpy(&b, &bits, sizeof b);
    y = y * a * b;
    y = x > high ? all(INFINITY) : y;
    return x != x ? x : y;
}
CASTLEREG_INLINE Vec<double> exponential(Vec<double> x) {
    for (int lane = 0; lane < LANES<double>; ++lane) x[lane] = std::exp(x[lane]);
    return x;
}

// log(x) of positive numbers; -inf at 0.
CASTLEREG_INLINE Vec<float> logarithm(Vec<float> x) {
    Ints bits;
    std::memcpy(&bits, &x, sizeof bits);
    Ints n = ((bits >> 23) & 255) - 126;
    bits = (bits & 0x007fffff) | 0x3f000000;  // a number from 1/2 to 1
    Vec<float> m;
    std::memcpy(&m, &bits, sizeof m);
    Ints small = m < all(0.707106781f);
    n += small;
    m = (small ? m + m : m) - all(1.0f);
    Vec<float> z = m * m, y = all(7.0376836292e-2f);
    y = y * m + all(-1.1514610310e-1f);
    y = y * m + all(1.1676998740e-1f);
    y = y * m + all(-1.2420140846e-1f);
    y = y * m + all(1.4249322787e-1f);
    y = y * m + all(-1.6668057665e-1f);
    y = y * m + all(2.0000714765e-1f);
    y = y * m + all(-2.4999993993e-1f);
    y = y * m + all(3.3333331174e-1f);
    Vec<float> whole = __builtin_convertvector(n, Vec<float>);
    y = m * z * y + whole * all(-2.12194440e-4f) - all(0.5f) * z;
    y = m + y + whole * all(0.693359375f);
    y = x > all(3.4e38f) ? x : y;
    y = x < all(1.17549435e-38f) ? all(-INFINITY) : y;
    return x != x ? x : y;
}
CASTLEREG_INLINE Vec<double> logarithm(Vec<double> x) {
    for (int lane = 0; lane < LANES<double>; ++lane) x[lane] = std::log(x[lane]);
    return x;
}

// log(1 + x) of numbers that are not negative, without losing the digits of small ones.
template <class Real>
CASTLEREG_INLINE Vec<Real> logarithm_of_one_plus(Vec<Real> x) {
    Vec<Real> one = all(Real(1)), above = one + x, rounded = above - one;
    Vec<Real> safe = rounded == Vec<Real>{} ? one : rounded;
    return rounded == Vec<Real>{} ? x : logarithm(above) * (x / safe);
}

// log(1 + exp(x))
template <class Real>
CASTLEREG_INLINE Vec<Real> softplus(Vec<Real> x) {
    return larger<Real>(x, Vec<Real>{}) + logarithm_of_one_plus<Real>(exponential(-absolute<Real>(x)));
}

// 1 / (1 + exp(-x))
template <class Real>
CASTLEREG_INLINE Vec<Real> logistic(Vec<Real> x) {
    Vec<Real> e = exponential(-absolute<Real>(x)), one = all(Real(1));
    return (x < Vec<Real>{} ? e : one) / (one + e);
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
