// The rows of a step as inputs of the network: standardized, one channel after the other, then changed by regularizers.
#pragma once

#include "random_numbers.h"
#include "workspace.h"

namespace castlereg {
namespace CASTLEREG_ISA {

// Standardize rows of the table into `inputs` and `truth`, shape (channels, to_row), and weights of the rows.
template <class Real>
void gather_rows(
    const Problem<Real>& p, int member, const int32_t* rows, int n, int end, Real* inputs, Real* truth, Real* observed,
    Real* weight, int to_row
) {
    const Real *shift = p.shift + size_t(member) * p.channels, *scale = p.scale + size_t(member) * p.channels;
    const Real* center = p.has_clipped ? p.clip_center + size_t(member) * p.channels : nullptr;
    const Real* clip_rate = p.has_clipped ? p.clip_rate + size_t(member) * p.channels : nullptr;
    for (int c = 0; c < p.channels; ++c) {
        Real *x = inputs + size_t(c) * to_row, *y = truth + size_t(c) * to_row;
        const Real* column = p.encoded + c;
        const Real by = scale[c], from = shift[c];
        if (p.has_clipped && p.clipped[c]) {
            for (int r = 0; r < n; ++r) {
                Real value = column[ptrdiff_t(rows[r]) * p.channels];
                Real z = (value - center[c]) * clip_rate[c], third = z / Real(3);
                x[r] = (z / std::sqrt(1 + third * third) - from) * by;
                y[r] = p.predicted_scaled[c] ? x[r] : value;
            }
        } else if (p.predicted_scaled[c]) {
            for (int r = 0; r < n; ++r) x[r] = (column[ptrdiff_t(rows[r]) * p.channels] - from) * by;
            std::memcpy(y, x, sizeof(Real) * n);
        } else {
            for (int r = 0; r < n; ++r) {
                y[r] = column[ptrdiff_t(rows[r]) * p.channels];
                x[r] = (y[r] - from) * by;
            }
        }
        for (int r = n; r < end; ++r) x[r] = y[r] = 0;
    }
    if (p.has_missing) {
        for (int k = 0; k < p.nodes; ++k) {
            const Real* y = truth + size_t(p.node_channel[k]) * to_row;
            Real* known = observed + size_t(k) * to_row;
            for (int r = 0; r < end; ++r) known[r] = y[r] != y[r] ? Real(0) : Real(1);
        }
        // A missing value is missing in all predicted channels.
        for (int c = 0; c < p.channels; ++c) {
            Real *x = inputs + size_t(c) * to_row, *y = truth + size_t(c) * to_row;
            for (int r = 0; r < end; ++r) {
                x[r] = x[r] != x[r] ? Real(0) : x[r];
                y[r] = y[r] != y[r] ? Real(0) : y[r];
            }
        }
    }
    for (int r = 0; r < n; ++r) weight[r] = p.row_weight[rows[r]];
    for (int r = n; r < end; ++r) weight[r] = 0;
}

// Number of rows with a weight, which come first.
template <class Real>
inline int rows_present(const Real* weight, int n) {
    int present = 0;
    for (int r = 0; r < n; ++r) present += weight[r] > 0;
    return present;
}

template <class Real>
void add_noise(const Problem<Real>& p, Workspace<Real>& ws, Real sigma, Key key) {
    if constexpr (sizeof(Real) == 4) {
        const float low = -0.99999994f;
        Real* x = ws.inputs;
        for (int c = 0; c < p.channels; ++c)
            for (int r = 0; r < p.batch; r += LANES<float>) {
                Bits cell;
                for (int lane = 0; lane < LANES<float>; ++lane) cell[lane] = uint32_t((r + lane) * p.channels + c);
                Vec<float> u = uniform(key, cell);
                for (int lane = 0; lane < LANES<float> && r + lane < p.batch; ++lane) {
                    float between = u[lane] * (1.0f - low) + low;
                    between = between < low ? low : between;
                    x[size_t(c) * ws.batch + r + lane] += sigma * normal(between);
                }
            }
    }
}

template <class Real>
void mix_rows(const Problem<Real>& p, Workspace<Real>& ws, Real share, Real turn) {
    const int n = p.batch, present = rows_present(ws.weight, n);
    int offset = int(turn * Real(present));
    offset = offset < present - 1 ? offset : present - 1;
    if (offset < 0) return;  // no rows
    Real* copy = ws.copy;
    auto mixed = [&](Real* values) {
        std::memcpy(copy, values, sizeof(Real) * n);
        for (int r = 0; r < present; ++r) {
            int partner = r + offset;
            partner -= partner >= present ? present : 0;
            values[r] = share * copy[r] + (1 - share) * copy[partner];
        }
    };
    for (int c = 0; c < p.channels; ++c) {
        mixed(ws.inputs + size_t(c) * ws.batch);
        mixed(ws.truth + size_t(c) * ws.batch);
    }
    mixed(ws.weight);
    if (p.has_missing)
        for (int k = 0; k < p.nodes; ++k) {
            Real* known = ws.observed + size_t(k) * ws.batch;
            std::memcpy(copy, known, sizeof(Real) * n);
            for (int r = 0; r < present; ++r) known[r] = copy[r] * copy[(r + offset) % present];
        }
}

template <class Real>
void corrupt_cells(const Problem<Real>& p, Workspace<Real>& ws, Real rate, Key key) {
    const int n = p.batch;
    int present = rows_present(ws.weight, n);
    present = present > 1 ? present : 1;
    Real* copy = ws.copy;
    const uint32_t nodes = uint32_t(p.nodes);
    for (int c = 0; c < p.channels; ++c) {
        Real* x = ws.inputs + size_t(c) * ws.batch;
        std::memcpy(copy, x, sizeof(Real) * n);
        for (int r = 0; r < present; r += LANES<float>) {
            Bits cell;
            for (int lane = 0; lane < LANES<float>; ++lane)
                cell[lane] = uint32_t(r + lane) * nodes + uint32_t(p.channel_node[c]);
            Vec<float> u = uniform(key, cell);
            for (int lane = 0; lane < LANES<float> && r + lane < present; ++lane) {
                int row = r + lane, donor = row + 1 == present ? 0 : row + 1;
                if (u[lane] < float(rate)) x[row] = copy[donor];
            }
        }
    }
}

// The batch of a step; `at` is the number of the step among all of the member's epochs and steps.
template <class Real>
void prepare_batch(const Problem<Real>& p, int member, int epoch, size_t at, Workspace<Real>& ws) {
    gather_rows(
        p, member, p.batches + at * p.batch, p.batch, ws.batch, ws.inputs, ws.truth, ws.observed, ws.weight, ws.batch
    );
    int present = rows_present(ws.weight, p.batch);
    Real share = 1 / (Real(present > 1 ? present : 1) * p.mean_weight[member]);
    for (int r = 0; r < ws.batch; ++r) ws.weight[r] *= share;
    for (int i = 0; i < p.batch_changes; ++i) {
        Real strength = p.change_strength[i][size_t(member) * p.room_epochs + epoch];
        const uint32_t* words = p.change_words[i] ? p.change_words[i] + 2 * at : nullptr;
        switch (p.changes[i]) {
            case BatchChange::noise:
                add_noise(p, ws, strength, {words[0], words[1]});
                break;
            case BatchChange::mixup:
                mix_rows(p, ws, Real(p.mixup_numbers[2 * at]), Real(p.mixup_numbers[2 * at + 1]));
                break;
            case BatchChange::corruption:
                corrupt_cells(p, ws, strength, {words[0], words[1]});
                break;
        }
    }
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
