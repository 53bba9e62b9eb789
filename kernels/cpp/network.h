// The network of castlereg.network: forward (eq. 3), and backward through the same layers.
//
// Units have shape (width, sub-networks, rows). Rows of the table are the lanes of vectors, so any width is equally
// efficient, and a hidden layer, which all sub-networks share, is one product. A group of sub-networks passes a block of
// rows through all layers and back before the next group, so that its units stay in the cache.
#pragma once

#include "random_numbers.h"
#include "workspace.h"

namespace castlereg {
namespace CASTLEREG_ISA {

// Coefficients of cos(2 pi t) in powers of t squared, highest first; castlereg.network.COSINE.
constexpr double COSINE[6] = {-21.0711056, 58.7904921, -85.2716215, 64.9286574, -19.7389804, 0.999999211};

// Some sub-networks, by their positions among the trained ones and among those that a step runs.
struct Group {
    const int32_t* positions;
    int first, count;  // among those that are run
};

template <class Real>
struct Dropping {
    Real keep;              // share of units
    const uint32_t* words;  // (layers, 2); none without dropout
    int rows, first_row;    // of the batch, and the first of this block
};

// The embedding of numbers: waves, mixed into further inputs after the channels.
template <class Real>
void embed(
    const Problem<Real>& p, const Pieces<Real>& w, Real* inputs, ptrdiff_t row, int rows, Real* rest_of_turns, Real* waves
) {
    constexpr int L = LANES<Real>;
    for (int e = 0; e < p.embedded; ++e) {
        const Real* x = inputs + p.embedded_channel[e] * row;
        Real *rest = rest_of_turns + size_t(e) * p.waves * rows, *wave = waves + size_t(e) * p.waves * rows;
        for (int f = 0; f < p.waves; ++f) {
            const Vec<Real> frequency = all(w.frequencies[e * p.waves + f]), phase = all(w.phases[e * p.waves + f]);
            for (int r = 0; r < rows; r += L) {
                Vec<Real> turns = load(x + r) * frequency + phase;
                Vec<Real> t = turns - nearest(turns), square = t * t, value = all(Real(COSINE[0]));
#pragma GCC unroll 5
                for (int i = 1; i < 6; ++i) value = value * square + all(Real(COSINE[i]));
                store(rest + f * rows + r, t);
                store(wave + f * rows + r, value);
            }
        }
        product<Real>(
            p.mixed, rows, p.waves, {w.mixing + size_t(e) * p.waves * p.mixed, 1, p.mixed}, wave, rows,
            inputs + (p.channels + size_t(e) * p.mixed) * row, row
        );
    }
}

// From inputs, shape (inputs, row), to outputs, shape (sub-networks * outputs, rows).
template <class Real>
void forward(
    const Problem<Real>& p, const Pieces<Real>& w, const Group& group, const Real* inputs, ptrdiff_t row, int rows,
    Workspace<Real>& ws, const Dropping<Real>* dropping
) {
    constexpr int L = LANES<Real>;
    const int width = p.widths[0];
    const ptrdiff_t columns = ptrdiff_t(p.trained) * width;
    Real* first = p.layers ? ws.units[0] : ws.outputs;
    const End end = p.layers && p.activation == Activation::relu ? End::relu : End::as_it_is;
    const ptrdiff_t unit = ptrdiff_t(group.count) * rows;  // from one unit to the next
    for (int s = 0; s < group.count; ++s) {
        const ptrdiff_t at = ptrdiff_t(group.positions[s]) * width;
        const bool linear = !p.layers;  // the outputs of a sub-network are contiguous
        product<Real>(
            width, rows, p.inputs, {w.input_weights + at, 1, columns}, inputs, row,
            first + ptrdiff_t(s) * rows * (linear ? width : 1), linear ? rows : unit, Begin::bias, w.input_bias + at, end
        );
    }
    if (!p.layers) return;
    for (int l = 0; l < p.layers; ++l) {
        const int size = p.widths[l];
        Real* z = ws.units[l];
        if (l > 0) {
            product<Real>(
                size, int(unit), p.widths[l - 1], {w.hidden_weights[l], 1, size}, ws.units[l - 1], unit, z, unit,
                Begin::bias, w.hidden_bias[l], end
            );
        }
        const ptrdiff_t n = ptrdiff_t(group.count) * size * rows;
        if (p.activation == Activation::silu) {
            for (ptrdiff_t i = 0; i < n; i += L) {
                Vec<Real> v = load(z + i);
                store(ws.before[l] + i, v);
                store(z + i, v * logistic<Real>(v));
            }
        }
        if (dropping == nullptr) continue;
        const Key key{dropping->words[2 * l], dropping->words[2 * l + 1]};
        const Real scaled = 1 / dropping->keep;
        for (int s = 0; s < group.count; ++s)
            for (int h = 0; h < size; ++h) {
                const ptrdiff_t at = h * unit + ptrdiff_t(s) * rows;
                const uint32_t stride = uint32_t(ws.run) * uint32_t(size);
                for (int r = 0; r < rows; r += LANES<float>) {
                    Bits cell;
                    for (int lane = 0; lane < LANES<float>; ++lane)
                        cell[lane] = uint32_t(dropping->first_row + r + lane) * stride +
                                     uint32_t(group.first + s) * uint32_t(size) + uint32_t(h);
                    Vec<float> u = uniform(key, cell);
                    for (int lane = 0; lane < LANES<float> && r + lane < rows; ++lane) {
                        Real factor = u[lane] < float(dropping->keep) ? scaled : Real(0);
                        ws.kept[l][at + r + lane] = factor;
                        z[at + r + lane] = factor == 0 ? Real(0) : z[at + r + lane] * factor;
                    }
                }
            }
    }
    const int last = p.widths[p.layers - 1];
    for (int s = 0; s < group.count; ++s) {
        const int t = group.positions[s];
        product<Real>(
            p.outputs, rows, last, {w.output_weights + ptrdiff_t(t) * last * p.outputs, 1, p.outputs},
            ws.units[p.layers - 1] + ptrdiff_t(s) * rows, unit, ws.outputs + ptrdiff_t(s) * p.outputs * rows, rows,
            Begin::bias, w.output_bias + ptrdiff_t(t) * p.outputs
        );
    }
}

// Add the sums over rows of a gradient, shape (units, rows), to those of biases; transposed, shape (rows, row).
template <class Real>
inline void add_bias_gradient(const Real* transposed, ptrdiff_t row, int rows, int units, Real* bias) {
    constexpr int L = LANES<Real>;
    for (int u = 0; u < units; u += L) {
        Vec<Real> total = load(bias + u);
        for (int r = 0; r < rows; ++r) total += load(transposed + r * row + u);
        store(bias + u, total);
    }
}

// Add the products of some units, shape (n, unit), with a slope, shape (rows,), to every `stride`-th number.
template <class Real>
inline void add_dot_products(
    const Real* units, ptrdiff_t unit, int n, const Real* slope, int rows, Real* to, ptrdiff_t stride
) {
    constexpr int L = LANES<Real>;
    int u = 0;
    for (; u + 4 <= n; u += 4) {
        Vec<Real> a{}, b{}, c{}, d{};
        for (int r = 0; r < rows; r += L) {
            const Vec<Real> s = load(slope + r);
            const Real* at = units + u * unit + r;
            a += load(at) * s, b += load(at + unit) * s, c += load(at + 2 * unit) * s, d += load(at + 3 * unit) * s;
        }
        Real sums[4];
        store_sums(a, b, c, d, sums);
        for (int i = 0; i < 4; ++i) to[(u + i) * stride] += sums[i];
    }
    for (; u < n; ++u) {
        Vec<Real> a{};
        for (int r = 0; r < rows; r += L) a += load(units + u * unit + r) * load(slope + r);
        to[u * stride] += sum<Real>(a);
    }
}

// The slope in the embedding's weights, from the slope in the inputs that it computes.
template <class Real>
void embedding_backward(const Problem<Real>& p, const Pieces<Real>& w, const Real* inputs, ptrdiff_t row, int rows, Workspace<Real>& ws) {
    constexpr int L = LANES<Real>;
    const int padded_mixed = padded<Real>(p.mixed);
    for (int e = 0; e < p.embedded; ++e) {
        const Real* x = inputs + p.embedded_channel[e] * row;
        const Real* slope_mixed = ws.slope_mixed + ptrdiff_t(e) * p.mixed * rows;
        const Real* wave = ws.waves + ptrdiff_t(e) * p.waves * rows;
        const Real* rest = ws.rest_of_turns + ptrdiff_t(e) * p.waves * rows;
        clear_last_vector(ws.transposed_mixed, ptrdiff_t(padded_mixed), rows, p.mixed);
        transpose(slope_mixed, ptrdiff_t(rows), p.mixed, rows, ws.transposed_mixed, ptrdiff_t(padded_mixed));
        product<Real>(
            p.waves, padded_mixed, rows, {wave, rows, 1}, ws.transposed_mixed, padded_mixed,
            ws.gradient.mixing + ptrdiff_t(e) * p.waves * padded_mixed, padded_mixed, Begin::c
        );
        product<Real>(
            p.waves, rows, p.mixed, {w.mixing + ptrdiff_t(e) * p.waves * p.mixed, p.mixed, 1}, slope_mixed, rows,
            ws.slope_waves, rows
        );
        for (int f = 0; f < p.waves; ++f) {
            Vec<Real> of_frequency{}, of_phase{};
            for (int r = 0; r < rows; r += L) {
                Vec<Real> t = load(rest + f * rows + r), square = t * t, change = all(Real(5 * COSINE[0]));
#pragma GCC unroll 4
                for (int i = 1; i < 5; ++i) change = change * square + all(Real((5 - i) * COSINE[i]));
                Vec<Real> of_turn = load(ws.slope_waves + f * rows + r) * change * (t + t);
                of_phase += of_turn;
                of_frequency += of_turn * load(x + r);
            }
            ws.gradient.frequencies[e * p.waves + f] += sum<Real>(of_frequency);
            ws.gradient.phases[e * p.waves + f] += sum<Real>(of_phase);
        }
    }
}

// From the slope in the outputs (ws.slope) to the gradient of all layers, added to ws.gradient. `slope_of_units`, if
// not null, is added to the slope in the last hidden units; its first rows belong to the targets, which come last. The
// first rows of a step reset the gradient of the input weights; the gradient of the others must be zero before.
template <class Real>
void backward(
    const Problem<Real>& p, const Pieces<Real>& w, const Group& group, const Real* inputs, ptrdiff_t row, int rows,
    Workspace<Real>& ws, const Dropping<Real>* dropping, const Real* slope_of_units, int first_with_slope, bool first_rows
) {
    constexpr int L = LANES<Real>;
    Pieces<Real>& g = ws.gradient;
    const ptrdiff_t unit = ptrdiff_t(group.count) * rows;
    Real *above = ws.slope_units, *below = ws.slope_below;
    const bool is_relu = p.activation == Activation::relu;
    const End end = is_relu ? End::gated : End::as_it_is;  // units that are zero have no slope
    if (p.layers) {
        const int last = p.widths[p.layers - 1];
        const Real* units = ws.units[p.layers - 1];
        for (int s = 0; s < group.count; ++s) {
            const ptrdiff_t run = group.first + s, trained = group.positions[s];
            const Real* slope = ws.slope + ptrdiff_t(s) * p.outputs * rows;
            for (int o = 0; o < p.outputs; ++o) {
                Vec<Real> total{};
                for (int r = 0; r < rows; r += L) total += load(slope + o * rows + r);
                g.output_bias[run * p.outputs + o] += sum<Real>(total);
                add_dot_products(
                    units + ptrdiff_t(s) * rows, unit, last, slope + o * rows, rows,
                    g.output_weights + run * last * p.outputs + o, p.outputs
                );
            }
            Real* to = above + ptrdiff_t(s) * rows;
            bool more = slope_of_units != nullptr && group.first + s >= first_with_slope;
            for (int h = 0; more && h < last; ++h)
                std::memcpy(
                    to + h * unit, slope_of_units + (ptrdiff_t(group.first + s - first_with_slope) * last + h) * rows,
                    sizeof(Real) * rows
                );
            product<Real>(
                last, rows, p.outputs, {w.output_weights + trained * last * p.outputs, p.outputs, 1}, slope, rows, to,
                unit, more ? Begin::c : Begin::zero, nullptr, end, units + ptrdiff_t(s) * rows
            );
        }
    } else {
        above = ws.slope;
    }
    for (int l = p.layers - 1; l >= 0; --l) {
        const int size = p.widths[l];
        const ptrdiff_t n = ptrdiff_t(group.count) * size * rows;
        if (is_relu && dropping) {
            const Vec<Real> scaled = all(1 / dropping->keep);
            for (ptrdiff_t i = 0; i < n; i += L) store(above + i, load(above + i) * scaled);
        }
        if (!is_relu) {
            const Vec<Real> one = all(Real(1));
            for (ptrdiff_t i = 0; i < n; i += L) {
                Vec<Real> z = load(ws.before[l] + i), share = logistic<Real>(z), v = load(above + i);
                if (dropping) v *= load(ws.kept[l] + i);
                store(above + i, v * (share * (one + z * (one - share))));
            }
        }
        if (l == 0) break;
        const int narrower = p.widths[l - 1], padded_size = padded<Real>(size), all_rows = int(unit);
        clear_last_vector(ws.transposed, ptrdiff_t(padded_size), all_rows, size);
        transpose(above, unit, size, all_rows, ws.transposed, ptrdiff_t(padded_size));
        add_bias_gradient(ws.transposed, ptrdiff_t(padded_size), all_rows, size, g.hidden_bias[l]);
        product<Real>(
            narrower, padded_size, all_rows, {ws.units[l - 1], unit, 1}, ws.transposed, padded_size,
            g.hidden_weights[l], padded_size, Begin::c
        );
        product<Real>(
            narrower, all_rows, size, {w.hidden_weights[l], size, 1}, above, unit, below, unit, Begin::zero, nullptr, end,
            ws.units[l - 1]
        );
        Real* other = above;
        above = below, below = other;
    }
    // The input layer: gradient of the sub-networks of this group, in its columns.
    const int width = p.widths[0], columns = group.count * width, padded_columns = padded<Real>(columns);
    const ptrdiff_t row_of_transposed = padded_columns + L;  // room for values written after the last column
    const bool linear = !p.layers;
    clear_last_vector(ws.transposed, row_of_transposed, rows, columns);
    for (int s = 0; s < group.count; ++s)
        transpose(
            above + ptrdiff_t(s) * rows * (linear ? width : 1), linear ? ptrdiff_t(rows) : unit, width, rows,
            ws.transposed + s * width, row_of_transposed
        );
    add_bias_gradient(ws.transposed, row_of_transposed, rows, columns, g.input_bias + group.first * width);
    product<Real>(
        p.inputs, padded_columns, rows, {inputs, row, 1}, ws.transposed, row_of_transposed,
        g.input_weights + group.first * width, ws.gradient_row, first_rows ? Begin::zero : Begin::c
    );
    if (!p.embedded) return;
    const int made = p.embedded * p.mixed;
    for (int s = 0; s < group.count; ++s) {
        ptrdiff_t at = ptrdiff_t(group.positions[s]) * width;
        product<Real>(
            made, rows, width,
            {w.input_weights + ptrdiff_t(p.channels) * p.trained * width + at, ptrdiff_t(p.trained) * width, 1},
            above + ptrdiff_t(s) * rows * (linear ? width : 1), linear ? ptrdiff_t(rows) : unit, ws.slope_mixed, rows, Begin::c
        );
    }
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
