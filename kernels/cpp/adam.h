// Adam (Kingma and Ba 2015), with penalties, masks and weight decay in the same pass over the weights.
#pragma once

#include "vectors.h"

namespace castlereg {
namespace CASTLEREG_ISA {

template <class Real>
struct Step {
    Real rate, decay;                // learning rate, 0 for a skipped step; weight decay
    Real first_share, second_share;  // 1 / (1 - beta^count), factors of the moments
    static constexpr Real first = Real(0.9), second = Real(0.999), small = Real(1e-8);
    static constexpr Real of_first = Real(0.1), of_second = Real(0.001);  // rounded once, as in optax

    Step(Real rate, Real decay, int count) : rate(rate), decay(decay) {
        first_share = 1 / (1 - Real(std::pow(first, Real(count))));
        second_share = 1 / (1 - Real(std::pow(second, Real(count))));
    }
};

template <class Real>
CASTLEREG_INLINE void adam_vector(const Step<Real>& step, Vec<Real>& w, Vec<Real> g, Vec<Real>& m, Vec<Real>& v) {
    m = all(Step<Real>::of_first) * g + all(Step<Real>::first) * m;
    v = all(Step<Real>::of_second) * (g * g) + all(Step<Real>::second) * v;
    Vec<Real> u = (m * all(step.first_share)) / (root(v * all(step.second_share)) + all(Step<Real>::small));
    if (step.decay != 0) u += all(step.decay) * w;
    w -= all(step.rate) * u;
}

template <class Real>
CASTLEREG_INLINE Vec<Real> with_penalty(Vec<Real> g, Vec<Real> w, Vec<Real> linear, Vec<Real> constant) {
    const Vec<Real> zero{};
    return g + linear * w + (w > zero ? constant : (w < zero ? -constant : zero));
}

// Call `on` for whole vectors of n numbers, and for the remaining numbers.
template <class Real, int ARRAYS, class On>
CASTLEREG_INLINE void in_vectors(ptrdiff_t n, Real* const (&arrays)[ARRAYS], On on) {
    constexpr int L = LANES<Real>;
    ptrdiff_t i = 0;
    Vec<Real> v[ARRAYS];
    for (; i + L <= n; i += L) {
        for (int a = 0; a < ARRAYS; ++a) v[a] = load(arrays[a] + i);
        on(v, i);
        for (int a = 0; a < ARRAYS; ++a) store(arrays[a] + i, v[a]);
    }
    if (i == n) return;
    for (int a = 0; a < ARRAYS; ++a) v[a] = load_some(arrays[a] + i, n - i);
    on(v, i);
    for (int a = 0; a < ARRAYS; ++a) store_some(arrays[a] + i, v[a], n - i);
}

// Update weights; penalties have one factor for all of them.
template <class Real>
void adam(const Step<Real>& step, Real* w, const Real* g, Real* m, Real* v, ptrdiff_t n, Real linear = 0, Real constant = 0) {
    const Vec<Real> a = all(linear), b = all(constant);
    Real* const arrays[4] = {w, m, v, const_cast<Real*>(g)};
    in_vectors<Real>(n, arrays, [&](Vec<Real>* x, ptrdiff_t) {
        adam_vector<Real>(step, x[0], with_penalty<Real>(x[3], x[0], a, b), x[1], x[2]);
    });
}

// Update weights; each has its own factors, which are padded to whole vectors.
template <class Real>
void adam(
    const Step<Real>& step, Real* w, const Real* g, Real* m, Real* v, ptrdiff_t n, const Real* linear,
    const Real* constant, const Real* mask
) {
    Real* const arrays[3] = {w, m, v};
    in_vectors<Real>(n, arrays, [&](Vec<Real>* x, ptrdiff_t i) {
        Vec<Real> of_w = with_penalty<Real>(load(g + i), x[0], load(linear + i), load(constant + i)) * load(mask + i);
        adam_vector<Real>(step, x[0], of_w, x[1], x[2]);
    });
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
