// Terms that regularizers add to the loss and to the gradient: those of castlereg.castle, and the norms L1 and L2.
#pragma once

#include "network.h"

namespace castlereg {
namespace CASTLEREG_ISA {

// Sums of squares and of absolute values of some weights.
template <class Real>
struct Sizes {
    Real squares = 0, absolute = 0;
};

template <class Real>
CASTLEREG_INLINE void add_sizes(const Real* w, ptrdiff_t n, Vec<Real>& squares, Vec<Real>& absolutes) {
    constexpr int L = LANES<Real>;
    ptrdiff_t i = 0;
    for (; i + L <= n; i += L) {
        Vec<Real> v = load(w + i);
        squares += v * v;
        absolutes += absolute<Real>(v);
    }
    if (i < n) {
        Vec<Real> v = load_some(w + i, n - i);
        squares += v * v;
        absolutes += absolute<Real>(v);
    }
}

template <class Real>
inline Sizes<Real> sizes_of(const Real* w, ptrdiff_t n) {
    Vec<Real> squares{}, absolutes{};
    add_sizes(w, n, squares, absolutes);
    return {sum<Real>(squares), sum<Real>(absolutes)};
}

// Strengths of an epoch, and values of the terms of a step.
template <class Real>
struct Strengths {
    Real beta = 0, lambda = 0, acyclicity = 0, l1 = 0, l2 = 0, autoencoder = 0, keep = 1;
};

template <class Real>
struct Terms {
    Real value[8] = {};
    Real objective = 0;
    Real& operator[](Term term) { return value[int(term)]; }
};

template <class Real>
inline Real h_and_slope(const Problem<Real>& p, Square<Real> adjacency, Workspace<Real>& ws) {
    std::memcpy(ws.work_square.at, adjacency.at, sizeof(Real) * adjacency.nodes * adjacency.row);
    if (p.acyclicity == Acyclicity::exponential) return trace_exponential(ws.work_square, ws.slope_of_h, ws.work);
    return log_determinant(ws.work_square, ws.slope_of_h, ws.work);
}

// Squared weights of the edges into some nodes, A = M * M (eq. 7), from the sums of squares by input.
template <class Real>
void fill_adjacency(const Problem<Real>& p, const Real* squares_of_input, const int32_t* columns, int n, Square<Real> a) {
    for (int j = 0; j < p.nodes; ++j)
        for (int s = 0; s < n; ++s) a.at[j * a.row + columns[s]] = 0;
    for (int i = 0; i < p.inputs; ++i)
        for (int s = 0; s < n; ++s)
            a.at[p.input_node[i] * a.row + columns[s]] += squares_of_input[size_t(i) * p.trained + columns[s]];
}

// Sizes of the weights from an input into up to four of the sub-networks that are run, from number s on.
template <class Real>
CASTLEREG_INLINE void sizes_of_four(
    const Problem<Real>& p, const Pieces<Real>& w, int input, int s, const Workspace<Real>& ws, Sizes<Real>* four
) {
    const int width = p.widths[0];
    Vec<Real> squares[4] = {}, absolutes[4] = {};
    for (int k = 0; k < 4 && s + k < ws.run; ++k)
        add_sizes(
            w.input_weights + (ptrdiff_t(input) * p.trained + ws.positions[s + k]) * width, width, squares[k], absolutes[k]
        );
    Real sums[2][4];
    store_sums(squares[0], squares[1], squares[2], squares[3], sums[0]);
    store_sums(absolutes[0], absolutes[1], absolutes[2], absolutes[3], sums[1]);
    for (int k = 0; k < 4; ++k) four[k] = {sums[0][k], sums[1][k]};
}

// Measure the input weights of the sub-networks that a step runs, and the terms that depend on weights only.
template <class Real>
void measure_weights(
    const Problem<Real>& p, const Pieces<Real>& w, const Strengths<Real>& strength, int step, Workspace<Real>& ws,
    Terms<Real>& terms
) {
    const int width = p.widths[0], last = p.layers ? p.widths[p.layers - 1] : 0;
    const bool norms = p.l1 || p.l2, edges = p.castle && (p.acyclicity != Acyclicity::none || p.sparsity != Sparsity::none);
    Real l1 = 0, l2 = 0, sparsity = 0, capacity = 0;
    Sizes<Real> four[4];
    if (norms || edges)
        for (int i = 0; i < p.inputs; ++i)
            for (int s = 0; s < ws.run; ++s) {
                const int t = ws.positions[s];
                if (s % 4 == 0) sizes_of_four(p, w, i, s, ws, four);
                const Sizes<Real> sizes = four[s % 4];
                const Real penalized = p.penalized ? p.penalized[i * p.trained + t] : Real(1);
                l1 += ws.shares[s] * sizes.absolute;
                l2 += ws.shares[s] * sizes.squares;
                sparsity += ws.shares[s] * penalized * sizes.absolute;
                if (edges) {
                    const Real square = sizes.squares > Real(1e24) ? Real(1e24) : sizes.squares;
                    ws.squares_of_input[size_t(i) * p.trained + t] = square;
                }
            }
    if (norms || p.capacity) {
        for (int l = 1; l < p.layers; ++l) {
            Sizes<Real> sizes = sizes_of(w.hidden_weights[l], ptrdiff_t(p.widths[l - 1]) * p.widths[l]);
            l1 += sizes.absolute, l2 += sizes.squares, capacity += sizes.squares;
        }
        for (int s = 0; p.layers && s < ws.run; ++s) {
            const ptrdiff_t size = ptrdiff_t(last) * p.outputs;
            Sizes<Real> sizes = sizes_of(w.output_weights + ws.positions[s] * size, size);
            l1 += ws.shares[s] * sizes.absolute, l2 += ws.shares[s] * sizes.squares;
            capacity += ws.shares[s] * sizes.squares;
        }
    }
    terms[Term::l1] = l1, terms[Term::l2] = l2;
    if (!p.castle) return;
    if (p.capacity) terms[Term::capacity] = capacity;
    if (p.sparsity == Sparsity::l1) terms[Term::sparsity] = sparsity;
    if (p.sparsity == Sparsity::group) {  // one l2 norm per edge, of its penalized weights
        for (int j = 0; j < p.nodes * ws.padded_nodes; ++j) ws.by_edge.at[j] = 0;
        for (int i = 0; i < p.inputs; ++i)
            for (int s = 0; s < ws.run; ++s) {
                const int t = ws.positions[s];
                const Real penalized = (p.penalized ? p.penalized[i * p.trained + t] : Real(1)) * ws.shares[s];
                ws.by_edge.at[p.input_node[i] * ws.padded_nodes + t] +=
                    penalized * penalized * ws.squares_of_input[size_t(i) * p.trained + t];
            }
        Real total = 0;
        for (int j = 0; j < p.nodes; ++j)
            for (int s = 0; s < ws.run; ++s) {
                Real& edge = ws.by_edge.at[j * ws.padded_nodes + ws.positions[s]];
                const Real length = edge > 0 ? std::sqrt(edge) : Real(0);
                total += length;
                edge = length > 0 ? 1 / length : Real(0);
            }
        terms[Term::sparsity] = total;
    }
    if (p.acyclicity == Acyclicity::none) return;
    if (!p.sampled) {
        fill_adjacency(p, ws.squares_of_input, ws.positions, ws.run, ws.adjacency);
        ws.kept_h = h_and_slope(p, ws.adjacency, ws);
    } else {
        const int every = p.nodes / ws.run > 1 ? p.nodes / ws.run : 1;  // as many steps as it takes to sample every sub-network once
        if (step % every == 0) ws.kept_h = h_and_slope(p, ws.adjacency, ws);
    }
    terms[Term::acyclicity] = p.graph ? ws.kept_h : ws.kept_h * ws.kept_h;
}

// Factors of a row of input weights w in their gradient, which grows by linear * w + constant * sign(w) and is then
// multiplied by the mask; every array has one entry per unit of the sub-networks that are run.
template <class Real>
void penalty_factors(
    const Problem<Real>& p, int input, const Real* edge_mask, const Strengths<Real>& strength, Workspace<Real>& ws
) {
    constexpr int L = LANES<Real>;
    const int width = p.widths[0], from = p.input_node[input];
    const Real of_h = strength.lambda * strength.acyclicity * (p.graph ? Real(1) : 2 * ws.kept_h);
    for (int s = 0; s < ws.run; ++s) {
        const int t = ws.positions[s];
        const Real share = ws.shares[s];
        const Real penalized = (p.penalized ? p.penalized[input * p.trained + t] : Real(1)) * share;
        Real linear = 2 * strength.l2 * share, constant = strength.l1 * share;
        if (p.castle) {
            if (p.acyclicity != Acyclicity::none && ws.squares_of_input[size_t(input) * p.trained + t] < Real(1e24))
                linear += 2 * of_h * share * ws.slope_of_h.at[from * ws.padded_nodes + t];
            if (p.sparsity == Sparsity::l1) constant += strength.lambda * strength.beta * penalized;
            if (p.sparsity == Sparsity::group)
                linear += strength.lambda * strength.beta * penalized * penalized *
                          ws.by_edge.at[from * ws.padded_nodes + t];
        }
        const Vec<Real> a = all(linear), b = all(constant), c = all(edge_mask[input * p.trained + t]);
        for (int h = 0; h < width; h += L) {  // the next sub-network overwrites values beyond this one
            store(ws.linear + s * width + h, a);
            store(ws.constant + s * width + h, b);
            store(ws.mask + s * width + h, c);
        }
    }
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
