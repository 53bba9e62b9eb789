// Losses of the cells of one node and their slopes in its outputs, as in castlereg.losses.
#pragma once

#include "problem.h"
#include "vectors.h"

namespace castlereg {
namespace CASTLEREG_ISA {

// Outputs have shape (outputs, rows), as does the slope that replaces them. The truth of output o is in row
// truth + o * truth_row; losses have shape (rows,).
template <class Real>
void node_losses(
    const Problem<Real>& p, int node, int rows, const Real* outputs, ptrdiff_t row, const Real* truth,
    ptrdiff_t truth_row, Real* losses, Real* slope, ptrdiff_t slope_row
) {
    constexpr int L = LANES<Real>;
    typedef Vec<Real> V;
    const int n = p.node_outputs[node];
    const V zero{}, one = all(Real(1)), two = all(Real(2));
    for (int r = 0; r < rows; r += L) {
        const V z = load(outputs + r), y = load(truth + r);
        switch (Loss(p.node_loss[node])) {
            case Loss::squared: {
                V error = z - y;
                store(losses + r, error * error);
                if (slope) store(slope + r, two * error);
                break;
            }
            case Loss::logistic: {
                store(losses + r, softplus<Real>(z) - y * z);
                if (slope) store(slope + r, logistic<Real>(z) - y);
                break;
            }
            case Loss::softmax: {
                V top = z;
                for (int o = 1; o < n; ++o) top = larger<Real>(top, load(outputs + o * row + r));
                V total{}, chosen{};
                for (int o = 0; o < n; ++o) {
                    V x = load(outputs + o * row + r), share = exponential(x - top);
                    total += share;
                    chosen += load(truth + o * truth_row + r) * x;
                    if (slope) store(slope + o * slope_row + r, share);
                }
                store(losses + r, top + logarithm(total) - chosen);
                if (slope)
                    for (int o = 0; o < n; ++o) {
                        V share = load(slope + o * slope_row + r) / total;
                        store(slope + o * slope_row + r, share - load(truth + o * truth_row + r));
                    }
                break;
            }
            case Loss::huber: {
                V delta = all(p.node_delta[node]), error = z - y, size = absolute<Real>(error);
                V small = size < delta ? size : delta;
                store(losses + r, small * (two * size - small));
                V sign = error > zero ? one : (error < zero ? -one : zero);
                if (slope) store(slope + r, two * small * sign);
                break;
            }
            case Loss::poisson: {
                V rate = exponential(z), safe = y > zero ? y : one;
                store(losses + r, two * (y * logarithm(safe) - y * z - y + rate));
                if (slope) store(slope + r, two * (rate - y));
                break;
            }
            case Loss::quantiles: {
                // The middle output is a quantile; each other one is the distance from its neighbour.
                const int middle = p.node_middle[node];
                const Real* levels = p.node_levels + node * p.outputs;
                V total{}, at = load(outputs + middle * row + r), of_middle{};
                const V share = all(Real(1) / Real(n));
                auto pinball = [&](int k, V value, V& slope_of) {
                    V above = y - value, level = all(levels[k]), other = level - one;
                    V first = level * above, second = other * above;
                    total += larger<Real>(first, second);
                    V half = all(Real(-0.5)) * (level + other);
                    slope_of = share * (first > second ? -level : (first < second ? -other : half));
                };
                V its;
                pinball(middle, at, its);
                of_middle += its;
                for (int direction = 1; direction >= -1; direction -= 2) {
                    V value = at;
                    int end = direction > 0 ? n - 1 : 0;
                    for (int k = middle; k != end;) {
                        k += direction;
                        V distance = softplus<Real>(load(outputs + k * row + r));
                        value = direction > 0 ? value + distance : value - distance;
                        pinball(k, value, its);
                        if (slope) store(slope + k * slope_row + r, its);
                    }
                    if (!slope) continue;
                    V beyond{};  // slope in the value of all quantiles from k to the end
                    for (int k = end; k != middle; k -= direction) {
                        beyond += load(slope + k * slope_row + r);
                        V change = logistic<Real>(load(outputs + k * row + r));
                        store(slope + k * slope_row + r, direction > 0 ? beyond * change : -beyond * change);
                    }
                    of_middle += beyond;
                }
                store(losses + r, total * share);
                if (slope) store(slope + middle * slope_row + r, of_middle);
                break;
            }
        }
    }
    if (slope)
        for (int o = n; o < p.outputs; ++o)  // unused outputs
            for (int r = 0; r < rows; r += L) store(slope + o * slope_row + r, zero);
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
