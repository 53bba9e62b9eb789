// Training of one member, as in castlereg.training.program: epochs of steps; the best weights are kept, patience is
// counted, and epochs whose loss is not finite are undone.
#pragma once

#include "adam.h"
#include "batches.h"
#include "losses.h"
#include "penalties.h"

namespace castlereg {
namespace CASTLEREG_ISA {

constexpr int MOST_RESTARTS = 5;
constexpr double RATE_AFTER_RESTART = 0.1;

// A member's part of arrays that begin with the member axis.
template <class Real>
inline Pieces<Real> of_member(const Problem<Real>& p, const Pieces<Real>& all_members, int member, bool packed) {
    Pieces<Real> its = all_members;
    auto move = [&](Real*& at, size_t size) {
        if (at != nullptr) at += size * member;
    };
    const size_t last = p.layers ? p.widths[p.layers - 1] : 0, head = size_t(p.features) * p.outputs;
    move(its.input_weights, p.input_size);
    move(its.input_bias, packed ? p.rest_size : size_t(p.trained) * p.widths[0]);
    for (int l = 1; l < p.layers; ++l) {
        move(its.hidden_weights[l], packed ? p.rest_size : size_t(p.widths[l - 1]) * p.widths[l]);
        move(its.hidden_bias[l], packed ? p.rest_size : size_t(p.widths[l]));
    }
    move(its.output_weights, packed ? p.rest_size : p.trained * last * p.outputs);
    move(its.output_bias, packed ? p.rest_size : size_t(p.trained) * p.outputs);
    const size_t waves = size_t(p.embedded) * p.waves;
    move(its.frequencies, packed ? p.rest_size : waves);
    move(its.phases, packed ? p.rest_size : waves);
    move(its.mixing, packed ? p.rest_size : waves * p.mixed);
    move(its.head_bias, p.targets * head);
    move(its.head_weights, p.targets * last * head);
    return its;
}

template <class Real>
struct Member {
    const Problem<Real>& p;
    const int member;
    Workspace<Real>& ws;
    const Pieces<Real> w, first, second;
    Strengths<Real> strength;
    const Real *null_loss, *edge_mask;

    Member(const Problem<Real>& p, int member, Workspace<Real>& ws)
        : p(p),
          member(member),
          ws(ws),
          w(of_member(p, p.weights, member, true)),
          first(of_member(p, p.first, member, !p.sampled)),
          second(of_member(p, p.second, member, !p.sampled)),
          null_loss(p.null_loss ? p.null_loss + size_t(member) * p.nodes : nullptr),
          edge_mask(p.edge_mask + size_t(member) * p.inputs * p.trained) {}

    void train() {
        for (int epoch = 0; epoch < p.epochs && p.active[member]; ++epoch) {
            Real totals[1 + MOST_TERMS] = {};
            save();
            const Real factor = p.rate_factor[size_t(member) * p.room_epochs + epoch];
            begin_epoch(epoch);
            for (int step = 0; step < p.steps[member]; ++step) {
                Terms<Real> terms = take_step(epoch, step, p.rate[member] * factor);
                totals[0] += terms.objective;
                for (int i = 0; i < p.terms; ++i) totals[1 + i] += terms[p.term[i]];
            }
            for (int i = 0; i <= p.terms; ++i) totals[i] /= Real(p.steps[member]);
            end_epoch(epoch, totals, factor);
        }
    }

    Real strength_of(const Real* strengths, int epoch) const {
        return strengths ? strengths[size_t(member) * p.room_epochs + epoch] : Real(0);
    }

    void begin_epoch(int epoch) {
        strength.beta = strength_of(p.reg_beta, epoch), strength.lambda = strength_of(p.reg_lambda, epoch);
        strength.acyclicity = strength_of(p.acyclicity_strength, epoch);
        strength.l1 = strength_of(p.l1, epoch), strength.l2 = strength_of(p.l2, epoch);
        strength.autoencoder = strength_of(p.autoencoder, epoch);
        strength.keep = 1 - strength_of(p.dropout, epoch);
        for (int s = 0; s < ws.run; ++s) ws.positions[s] = s, ws.shares[s] = 1;
        if (p.castle)
            for (int i = 0; i < p.nodes * ws.padded_nodes; ++i) ws.adjacency.at[i] = ws.slope_of_h.at[i] = 0;
        ws.kept_h = 0;
        if (p.sampled && p.castle && p.acyclicity != Acyclicity::none) {
            for (int t = 0; t < p.trained; ++t) measure_column(t);
            for (int t = 0; t < p.trained; ++t) fill_adjacency(p, ws.squares_of_input, &t, 1, ws.adjacency);
        }
    }

    void measure_column(int t) {
        for (int i = 0; i < p.inputs; ++i) {
            Real squares = sizes_of(w.input_weights + (ptrdiff_t(i) * p.trained + t) * p.widths[0], p.widths[0]).squares;
            ws.squares_of_input[size_t(i) * p.trained + t] = squares > Real(1e24) ? Real(1e24) : squares;
        }
    }

    Terms<Real> take_step(int epoch, int step, Real rate) {
        const size_t at = (size_t(member) * p.room_epochs + epoch) * p.room_steps + step;
        if (p.sampled)
            for (int s = 0; s < ws.run; ++s) {
                ws.positions[s] = p.sampled_nodes[at * p.sampled + s];
                ws.shares[s] = s < ws.run - p.targets ? Real(p.features) / Real(ws.run - p.targets) : Real(1);
            }
        prepare_batch(p, member, epoch, at, ws);
        Terms<Real> terms;
        measure_weights(p, w, strength, step, ws, terms);
        clear_gradient();
        const Dropping<Real> dropping{strength.keep, p.dropout ? p.dropout_words + at * p.layers * 2 : nullptr, p.batch, 0};
        for (int s = 0; s < ws.run; ++s) ws.node_loss[s] = 0;
        for (int row = 0; row < ws.batch; row += ws.block) pass(row, dropping, terms);
        collect(terms);
        if (!std::isfinite(terms.objective)) rate = 0;
        update(rate);
        return terms;
    }

    void clear_gradient() {
        Pieces<Real>& g = ws.gradient;
        auto clear = [](Real* at, size_t n) { std::memset(at, 0, sizeof(Real) * n); };
        clear(g.input_bias, ws.run * p.widths[0]);
        for (int l = 1; l < p.layers; ++l) {
            clear(g.hidden_weights[l], size_t(p.widths[l - 1]) * padded<Real>(p.widths[l]));
            clear(g.hidden_bias[l], padded<Real>(p.widths[l]));
        }
        if (p.layers) {
            clear(g.output_weights, size_t(ws.run) * p.widths[p.layers - 1] * p.outputs);
            clear(g.output_bias, size_t(ws.run) * p.outputs);
        }
        if (p.embedded) {
            clear(g.frequencies, size_t(p.embedded) * p.waves);
            clear(g.phases, size_t(p.embedded) * p.waves);
            clear(g.mixing, size_t(p.embedded) * p.waves * padded<Real>(p.mixed));
        }
        if (p.autoencoder) {
            clear(g.head_weights, size_t(p.targets) * p.widths[p.layers - 1] * p.features * p.outputs);
            clear(g.head_bias, size_t(p.targets) * p.features * p.outputs);
        }
    }

    // Forward and backward pass of some rows of the batch through all sub-networks.
    void pass(int first_row, Dropping<Real> dropping, Terms<Real>& terms) {
        const int rows = ws.batch - first_row < ws.block ? ws.batch - first_row : ws.block;
        Real* inputs = ws.inputs + first_row;
        dropping.first_row = first_row;
        const Dropping<Real>* drop = p.dropout ? &dropping : nullptr;
        if (p.embedded) {
            embed(p, w, inputs, ptrdiff_t(ws.batch), rows, ws.rest_of_turns, ws.waves);
            std::memset(ws.slope_mixed, 0, sizeof(Real) * p.embedded * p.mixed * rows);
        }
        for (int first_node = 0; first_node < ws.run; first_node += ws.group) {
            const int count = ws.run - first_node < ws.group ? ws.run - first_node : ws.group;
            const Group group{ws.positions + first_node, first_node, count};
            forward(p, w, group, inputs, ptrdiff_t(ws.batch), rows, ws, drop);
            for (int s = 0; s < count; ++s) losses_of(first_node + s, s, first_row, rows);
            const Real* from_head = nullptr;
            if (p.autoencoder && first_node + count > ws.run - p.targets) {
                for (int s = 0; s < count; ++s)
                    if (first_node + s >= ws.run - p.targets)
                        reconstruct(first_node + s - (ws.run - p.targets), s, count, first_row, rows, terms);
                from_head = ws.slope_from_head;
            }
            backward(
                p, w, group, inputs, ptrdiff_t(ws.batch), rows, ws, drop, from_head, ws.run - p.targets, first_row == 0
            );
        }
        if (p.embedded) embedding_backward(p, w, inputs, ptrdiff_t(ws.batch), rows, ws);
    }

    // Losses of a sub-network on some rows, and the slope of the objective in its outputs.
    void losses_of(int run, int s, int first_row, int rows) {
        constexpr int L = LANES<Real>;
        const int node = p.trained_node[ws.positions[run]];
        const bool target = run >= ws.run - p.targets;
        Real* slope = ws.slope + ptrdiff_t(s) * p.outputs * rows;
        Real* losses = ws.losses + ptrdiff_t(s) * rows;
        node_losses(
            p, node, rows, ws.outputs + ptrdiff_t(s) * p.outputs * rows, ptrdiff_t(rows),
            ws.truth + ptrdiff_t(p.node_channel[node]) * ws.batch + first_row, ptrdiff_t(ws.batch), losses, slope,
            ptrdiff_t(rows)
        );
        const Real unit = null_loss ? 1 / null_loss[node] : Real(1);
        const Real* known = p.has_missing ? ws.observed + ptrdiff_t(node) * ws.batch + first_row : nullptr;
        const Real* weight = ws.weight + first_row;
        Vec<Real> total{}, present{};
        for (int r = 0; r < rows; r += L) {
            Vec<Real> share = load(weight + r);
            if (known) share *= load(known + r);
            present += share;
            total += share * load(losses + r);
        }
        const Real loss = sum<Real>(total) * unit;
        ws.node_loss[run] += loss;
        Real factor = target ? Real(1) : Real(0);
        if (p.castle && p.reconstruction) {
            Real weighed = strength.lambda * p.node_weight[node];
            if (p.graph) {
                const Real known_weight = sum<Real>(present);
                const Real all_of_it = known_weight > Real(1e-12) ? known_weight : Real(1e-12), mean = loss / all_of_it;
                ws.node_loss[run] = mean;  // one block holds all rows
                if (p.node_numeric[node])
                    weighed *= mean > Real(1e-6) ? Real(0.5) / mean : Real(0);
                else if (null_loss)
                    weighed *= null_loss[node];
                factor += weighed / all_of_it;
                if (target) supervised_of_graph += loss;
            } else {
                factor += weighed * ws.shares[run];
            }
        }
        const Vec<Real> by = all(factor * unit);
        for (int r = 0; r < rows; r += L) {
            Vec<Real> share = load(weight + r) * by;
            if (known) share *= load(known + r);
            for (int o = 0; o < p.outputs; ++o) store(slope + o * rows + r, load(slope + o * rows + r) * share);
        }
    }

    Real supervised_of_graph = 0;

    // The autoencoder: features from the last hidden units of a target's sub-network.
    void reconstruct(int target, int s, int count, int first_row, int rows, Terms<Real>& terms) {
        constexpr int L = LANES<Real>;
        const int last = p.widths[p.layers - 1], outputs = p.features * p.outputs;
        const ptrdiff_t unit = ptrdiff_t(count) * rows;
        const Real* units = ws.units[p.layers - 1] + ptrdiff_t(s) * rows;
        const Real* weights = w.head_weights + ptrdiff_t(target) * last * outputs;
        product<Real>(
            outputs, rows, last, {weights, 1, outputs}, units, unit, ws.head, rows, Begin::bias,
            w.head_bias + ptrdiff_t(target) * outputs
        );
        Real nodes = 0;
        for (int k = 0; k < p.features; ++k) nodes += p.node_weight[k];
        nodes = nodes > 1 ? nodes : Real(1);
        for (int k = 0; k < p.features; ++k) {
            Real *slope = ws.slope_head + ptrdiff_t(k) * p.outputs * rows, *losses = ws.losses;
            node_losses(
                p, k, rows, ws.head + ptrdiff_t(k) * p.outputs * rows, ptrdiff_t(rows),
                ws.truth + ptrdiff_t(p.node_channel[k]) * ws.batch + first_row, ptrdiff_t(ws.batch), losses, slope,
                ptrdiff_t(rows)
            );
            const Real unit = p.node_weight[k] / (nodes * p.targets) / (null_loss ? null_loss[k] : Real(1));
            const Real* known = p.has_missing ? ws.observed + ptrdiff_t(k) * ws.batch + first_row : nullptr;
            Vec<Real> total{};
            for (int r = 0; r < rows; r += L) {
                Vec<Real> share = load(ws.weight + first_row + r) * all(unit);
                if (known) share *= load(known + r);
                total += share * load(losses + r);
                share *= all(strength.autoencoder);
                for (int o = 0; o < p.outputs; ++o) store(slope + o * rows + r, load(slope + o * rows + r) * share);
            }
            terms[Term::autoencoder] += sum<Real>(total);
        }
        for (int o = 0; o < outputs; ++o) {
            const Real* slope = ws.slope_head + ptrdiff_t(o) * rows;
            Vec<Real> total{};
            for (int r = 0; r < rows; r += L) total += load(slope + r);
            ws.gradient.head_bias[target * outputs + o] += sum<Real>(total);
            for (int h = 0; h < last; ++h) {
                Vec<Real> of_weight{};
                for (int r = 0; r < rows; r += L) of_weight += load(units + h * unit + r) * load(slope + r);
                ws.gradient.head_weights[(ptrdiff_t(target) * last + h) * outputs + o] += sum<Real>(of_weight);
            }
        }
        product<Real>(
            last, rows, outputs, {weights, outputs, 1}, ws.slope_head, rows,
            ws.slope_from_head + ptrdiff_t(target) * last * rows, rows
        );
    }

    // The objective (eq. 5) from its terms.
    void collect(Terms<Real>& terms) {
        Real supervised = 0, reconstruction = 0;
        for (int s = 0; s < ws.run; ++s) {
            const int node = p.trained_node[ws.positions[s]];
            const Real loss = ws.node_loss[s];
            if (s >= ws.run - p.targets) supervised += loss;
            if (p.graph)
                reconstruction += p.node_weight[node] *
                                  (p.node_numeric[node] ? Real(0.5) * std::log(loss > Real(1e-6) ? loss : Real(1e-6))
                                                        : loss * (null_loss ? null_loss[node] : Real(1)));
            else
                reconstruction += p.node_weight[node] * ws.shares[s] * loss;
        }
        if (p.graph) supervised = supervised_of_graph, supervised_of_graph = 0;
        terms[Term::supervised] = supervised;
        if (p.castle && p.reconstruction) terms[Term::reconstruction] = reconstruction;
        Real total = supervised;
        if (p.castle) {
            const Real size = terms[Term::sparsity] + terms[Term::capacity] * (p.graph ? Real(0.1) : Real(1));
            total += strength.lambda * (terms[Term::reconstruction] + strength.acyclicity * terms[Term::acyclicity] +
                                        strength.beta * size);
        }
        total += strength.l1 * terms[Term::l1] + strength.l2 * terms[Term::l2];
        total += strength.autoencoder * terms[Term::autoencoder];
        terms.objective = total;
    }

    void update(Real rate) {
        const int width = p.widths[0], last = p.layers ? p.widths[p.layers - 1] : 0;
        const Real decay = p.weight_decay ? p.weight_decay[member] : Real(0);
        const Pieces<Real>& g = ws.gradient;
        const Step<Real> shared(rate, decay, ++p.count[member]);
        const Real of_capacity =
            p.castle && p.capacity ? strength.lambda * strength.beta * (p.graph ? Real(0.1) : Real(1)) : Real(0);
        for (int i = 0; i < p.inputs; ++i) {
            penalty_factors(p, i, edge_mask, strength, ws);
            const Real* gradient = g.input_weights + ptrdiff_t(i) * ws.gradient_row;
            const ptrdiff_t row = ptrdiff_t(i) * p.trained * width;
            if (!p.sampled) {
                adam(
                    shared, w.input_weights + row, gradient, first.input_weights + row, second.input_weights + row,
                    ptrdiff_t(ws.run) * width, ws.linear, ws.constant, ws.mask
                );
                continue;
            }
            for (int s = 0; s < ws.run; ++s) {
                const int t = ws.positions[s];
                const ptrdiff_t by_node = (ptrdiff_t(t) * p.inputs + i) * width;
                adam(
                    of_node(shared, t), w.input_weights + row + ptrdiff_t(t) * width, gradient + ptrdiff_t(s) * width,
                    first.input_weights + by_node, second.input_weights + by_node, width, ws.linear + s * width,
                    ws.constant + s * width, ws.mask + s * width
                );
            }
        }
        for (int s = 0; s < (p.sampled ? ws.run : 1); ++s) {
            const int t = p.sampled ? ws.positions[s] : 0, n = p.sampled ? 1 : ws.run;
            const Step<Real> step = of_node(shared, t);
            ptrdiff_t from = ptrdiff_t(s) * width, at = ptrdiff_t(t) * width;
            adam(step, w.input_bias + at, g.input_bias + from, first.input_bias + at, second.input_bias + at, ptrdiff_t(n) * width);
            if (!p.layers) continue;
            const ptrdiff_t size = ptrdiff_t(last) * p.outputs;
            from = s * size, at = t * size;
            adam(
                step, w.output_weights + at, g.output_weights + from, first.output_weights + at,
                second.output_weights + at, n * size, 2 * (strength.l2 + of_capacity) * ws.shares[s],
                strength.l1 * ws.shares[s]
            );
            from = ptrdiff_t(s) * p.outputs, at = ptrdiff_t(t) * p.outputs;
            adam(step, w.output_bias + at, g.output_bias + from, first.output_bias + at, second.output_bias + at, ptrdiff_t(n) * p.outputs);
        }
        for (int l = 1; l < p.layers; ++l) {
            for (int k = 0; k < p.widths[l - 1]; ++k) {
                const ptrdiff_t at = ptrdiff_t(k) * p.widths[l];
                adam(
                    shared, w.hidden_weights[l] + at, g.hidden_weights[l] + ptrdiff_t(k) * padded<Real>(p.widths[l]),
                    first.hidden_weights[l] + at, second.hidden_weights[l] + at, ptrdiff_t(p.widths[l]),
                    2 * (strength.l2 + of_capacity), strength.l1
                );
            }
            adam(shared, w.hidden_bias[l], g.hidden_bias[l], first.hidden_bias[l], second.hidden_bias[l], ptrdiff_t(p.widths[l]));
        }
        if (p.embedded) {
            const ptrdiff_t waves = ptrdiff_t(p.embedded) * p.waves;
            adam(shared, w.frequencies, g.frequencies, first.frequencies, second.frequencies, waves);
            adam(shared, w.phases, g.phases, first.phases, second.phases, waves);
            for (ptrdiff_t k = 0; k < waves; ++k)
                adam(
                    shared, w.mixing + k * p.mixed, g.mixing + k * padded<Real>(p.mixed), first.mixing + k * p.mixed,
                    second.mixing + k * p.mixed, ptrdiff_t(p.mixed)
                );
        }
        if (p.autoencoder) {
            const ptrdiff_t outputs = ptrdiff_t(p.targets) * p.features * p.outputs;
            adam(shared, w.head_bias, g.head_bias, first.head_bias, second.head_bias, outputs);
            adam(shared, w.head_weights, g.head_weights, first.head_weights, second.head_weights, outputs * last);
        }
        if (p.input_signs) keep_signs();
        if (p.sampled) {
            for (int s = 0; s < ws.run; ++s) ++p.node_count[size_t(member) * p.trained + ws.positions[s]];
            if (p.castle && p.acyclicity != Acyclicity::none) move_cycles();
        }
    }

    // Adam's step for a sub-network's own weights; if sub-networks are sampled, each counts its own steps.
    Step<Real> of_node(const Step<Real>& shared, int t) const {
        if (!p.sampled) return shared;
        return {shared.rate, shared.decay, p.node_count[size_t(member) * p.trained + t] + 1};
    }

    // Set weights with the wrong sign to zero, see castlereg.monotone.
    void keep_signs() {
        auto keep = [](Real* at, const int8_t* signs, int64_t n) {
            for (int64_t i = 0; i < n; ++i)
                if (at[i] * Real(signs[i]) < 0) at[i] = 0;
        };
        keep(w.input_weights, p.input_signs, p.input_size);
        keep(w.input_bias, p.rest_signs, p.rest_size);
    }

    // Update h(A), by its slope, for the edges that a step has changed.
    void move_cycles() {
        Real change = 0;
        for (int s = 0; s < ws.run; ++s) {
            const int t = ws.positions[s];
            measure_column(t);
            for (int j = 0; j < p.nodes; ++j)
                change -= ws.slope_of_h.at[j * ws.padded_nodes + t] * ws.adjacency.at[j * ws.padded_nodes + t];
            fill_adjacency(p, ws.squares_of_input, &t, 1, ws.adjacency);
            for (int j = 0; j < p.nodes; ++j)
                change += ws.slope_of_h.at[j * ws.padded_nodes + t] * ws.adjacency.at[j * ws.padded_nodes + t];
        }
        ws.kept_h = ws.kept_h + change > 0 ? ws.kept_h + change : Real(0);
    }

    void save() {
        std::memcpy(ws.saved, w.input_weights, sizeof(Real) * p.input_size);
        std::memcpy(ws.saved + p.input_size, w.input_bias, sizeof(Real) * p.rest_size);
        if (!p.autoencoder) return;
        const size_t bias = size_t(p.targets) * p.features * p.outputs;
        Real* own = ws.saved + p.input_size + p.rest_size;
        std::memcpy(own, w.head_bias, sizeof(Real) * bias);
        std::memcpy(own + bias, w.head_weights, sizeof(Real) * bias * p.widths[p.layers - 1]);
    }

    void restore() {
        std::memcpy(w.input_weights, ws.saved, sizeof(Real) * p.input_size);
        std::memcpy(w.input_bias, ws.saved + p.input_size, sizeof(Real) * p.rest_size);
        const size_t bias = size_t(p.targets) * p.features * p.outputs, last = p.layers ? p.widths[p.layers - 1] : 0;
        if (p.autoencoder) {
            const Real* own = ws.saved + p.input_size + p.rest_size;
            std::memcpy(w.head_bias, own, sizeof(Real) * bias);
            std::memcpy(w.head_weights, own + bias, sizeof(Real) * bias * last);
        }
        p.count[member] = 0;
        if (p.sampled)
            for (int t = 0; t < p.trained; ++t) p.node_count[size_t(member) * p.trained + t] = 0;
        const size_t waves = size_t(p.embedded) * p.waves;
        const Pieces<Real>* moments[2] = {&first, &second};
        for (const Pieces<Real>* moment : moments) {
            auto clear = [](Real* at, size_t n) {
                if (at != nullptr && n) std::memset(at, 0, sizeof(Real) * n);
            };
            clear(moment->input_weights, p.input_size);
            clear(moment->input_bias, size_t(p.trained) * p.widths[0]);
            for (int l = 1; l < p.layers; ++l) {
                clear(moment->hidden_weights[l], size_t(p.widths[l - 1]) * p.widths[l]);
                clear(moment->hidden_bias[l], p.widths[l]);
            }
            clear(moment->output_weights, p.trained * last * p.outputs);
            clear(moment->output_bias, p.layers ? size_t(p.trained) * p.outputs : 0);
            clear(moment->frequencies, waves), clear(moment->phases, waves), clear(moment->mixing, waves * p.mixed);
            clear(moment->head_bias, bias), clear(moment->head_weights, bias * last);
        }
    }

    // Mean loss of the validation rows.
    Real validation_loss(const Pieces<Real>& network) {
        constexpr int L = LANES<Real>;
        const int32_t* rows = p.validation_rows + size_t(member) * p.validation;
        double total = 0, weights = 0;
        int32_t* positions = ws.positions;  // of the targets; the next step sets them again
        for (int j = 0; j < p.targets; ++j) positions[j] = p.trained - p.targets + j;
        const Group group{positions, 0, p.targets};
        for (int from = 0; from < p.validation; from += VALIDATION_ROWS) {
            const int n = p.validation - from < VALIDATION_ROWS ? p.validation - from : VALIDATION_ROWS;
            const int end = padded<Real>(n);
            gather_rows(
                p, member, rows + from, n, end, ws.validation_inputs, ws.validation_truth, ws.validation_observed,
                ws.validation_weight, VALIDATION_ROWS
            );
            if (rows_present(ws.validation_weight, n) == 0) continue;
            if (p.embedded)
                embed(p, network, ws.validation_inputs, ptrdiff_t(VALIDATION_ROWS), end, ws.rest_of_turns, ws.waves);
            forward(p, network, group, ws.validation_inputs, ptrdiff_t(VALIDATION_ROWS), end, ws, (const Dropping<Real>*)nullptr);
            for (int j = 0; j < p.targets; ++j) {
                const int node = p.features + j;
                node_losses(
                    p, node, end, ws.outputs + ptrdiff_t(j) * p.outputs * end, ptrdiff_t(end),
                    ws.validation_truth + ptrdiff_t(p.node_channel[node]) * VALIDATION_ROWS, ptrdiff_t(VALIDATION_ROWS),
                    ws.losses, (Real*)nullptr, ptrdiff_t(0)
                );
                Vec<Real> of_node{};
                for (int r = 0; r < end; r += L) {
                    Vec<Real> share = load(ws.validation_weight + r);
                    if (p.has_missing) share *= load(ws.validation_observed + ptrdiff_t(node) * VALIDATION_ROWS + r);
                    of_node += share * load(ws.losses + r);
                }
                total += double(sum<Real>(of_node)) / (null_loss ? double(null_loss[node]) : 1.0);
            }
            for (int r = 0; r < n; ++r) weights += double(ws.validation_weight[r]);
        }
        for (int s = 0; s < ws.run; ++s) ws.positions[s] = s;
        return Real(total / weights);
    }

    // Keep the best network and count patience; if the loss is not finite, undo the epoch and lower the rate.
    void end_epoch(int number, const Real* totals, Real factor) {
        Pieces<Real> predicting = w;
        Real decay = p.averaging ? p.averaging[member] : Real(0);
        if (p.averaging) {
            const Pieces<Real> average = of_member(p, p.average, member, true);
            Real *in = ws.network, *rest = ws.network + p.input_size;
            for (int64_t i = 0; i < p.input_size; ++i)
                in[i] = decay * average.input_weights[i] + (1 - decay) * w.input_weights[i];
            for (int64_t i = 0; i < p.rest_size; ++i)
                rest[i] = decay * average.input_bias[i] + (1 - decay) * w.input_bias[i];
            predicting = moved_to(in, rest);
        }
        const Real loss = validation_loss(predicting);
        const bool finite = std::isfinite(totals[0]) && std::isfinite(loss);
        Real* row = p.log + (size_t(member) * p.room_epochs + number) * (p.terms + 4);
        for (int i = 0; i <= p.terms; ++i) row[i] = totals[i];
        row[p.terms + 1] = loss;
        row[p.terms + 2] = p.rate[member] * factor;
        row[p.terms + 3] = finite ? Real(1) : Real(0);

        const int epoch = ++p.epoch[member];
        const bool better = finite && epoch > p.warmup && loss < p.best_loss[member];
        if (better) {
            const Pieces<Real> best = of_member(p, p.best, member, true);
            std::memcpy(best.input_weights, predicting.input_weights, sizeof(Real) * p.input_size);
            std::memcpy(best.input_bias, predicting.input_bias, sizeof(Real) * p.rest_size);
            p.best_loss[member] = loss;
            p.best_epoch[member] = epoch;
        }
        if (!finite) {
            restore();
            ++p.restarts[member];
            p.rate[member] *= Real(RATE_AFTER_RESTART);
        } else if (p.averaging) {
            const Pieces<Real> average = of_member(p, p.average, member, true);
            std::memcpy(average.input_weights, ws.network, sizeof(Real) * p.input_size);
            std::memcpy(average.input_bias, ws.network + p.input_size, sizeof(Real) * p.rest_size);
        }
        const int since = p.best_epoch[member] > p.warmup ? p.best_epoch[member] : p.warmup;
        p.active[member] = epoch < p.max_epochs && epoch - since < p.patience && p.restarts[member] <= MOST_RESTARTS;
    }

    // The same pieces in another packed array; `rest` begins with the input bias.
    Pieces<Real> moved_to(Real* input_weights, Real* rest) const {
        Pieces<Real> to;
        auto at = [&](Real* piece) { return piece == nullptr ? nullptr : rest + (piece - w.input_bias); };
        to.input_weights = input_weights, to.input_bias = rest;
        for (int l = 1; l < p.layers; ++l)
            to.hidden_weights[l] = at(w.hidden_weights[l]), to.hidden_bias[l] = at(w.hidden_bias[l]);
        to.output_weights = at(w.output_weights), to.output_bias = at(w.output_bias);
        to.frequencies = at(w.frequencies), to.phases = at(w.phases), to.mixing = at(w.mixing);
        return to;
    }
};

template <class Real>
size_t workspace_bytes(const Problem<Real>& p) {
    Arena arena{nullptr};
    Workspace<Real> measured(p, arena);
    return arena.used;
}

template <class Real>
void train_member(const Problem<Real>& p, int member, char* memory) {
    Arena arena{memory};
    Workspace<Real> ws(p, arena);
    Member<Real>(p, member, ws).train();
}

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
