// Memory of one thread: all buffers of a step, in one allocation.
#pragma once

#include "acyclicity.h"
#include "problem.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace castlereg {
namespace CASTLEREG_ISA {

// Hands out pieces of memory; without memory, it only counts the bytes needed.
struct Arena {
    char* base;
    size_t used = 0;

    template <class T>
    T* take(size_t n) {
        T* at = reinterpret_cast<T*>(base + used);
        used += (n * sizeof(T) + 63) / 64 * 64;
#if defined(__SANITIZE_ADDRESS__)
        // Memory between two pieces, which must not be accessed.
        if (base != nullptr) __asan_poison_memory_region(at + n, base + used + 64 - reinterpret_cast<char*>(at + n));
        used += 64;
#endif
        return base == nullptr ? nullptr : at;
    }
};

constexpr size_t CACHE = 192 * 1024;  // most bytes for the units of a group of sub-networks on a block of rows

constexpr int VALIDATION_ROWS = 64;  // that pass through the network together

template <class Real>
struct Workspace {
    int batch;       // rows of a step, rounded up to whole vectors
    int block;       // rows that pass through the network together
    int group;       // sub-networks that pass through it together
    int run;         // sub-networks that a step trains
    int width;       // of the input layer
    int gradient_row;  // numbers from one input's row to the next in the gradient of the input weights
    int padded_nodes;

    // A batch: one row per channel or input, so that rows of the table are lanes.
    Real *inputs, *truth, *observed, *weight, *copy;
    // A pass.
    Real* units[MOST_LAYERS];   // after activation and dropout
    Real* before[MOST_LAYERS];  // before the activation, where its slope needs it
    Real* kept[MOST_LAYERS];    // dropout: 0, or what units are multiplied by
    Real *outputs, *slope, *losses, *slope_units, *slope_below, *transposed;
    Real *rest_of_turns, *waves, *slope_mixed, *slope_waves, *transposed_mixed;
    Real *head, *slope_head, *slope_from_head;
    Real *validation_inputs, *validation_truth, *validation_observed, *validation_weight;
    Real* node_loss;  // (run,), sums over rows
    Pieces<Real> gradient;
    Real *linear, *constant, *mask;  // of a row of input weights, for the penalties
    // Acyclicity.
    Square<Real> adjacency, slope_of_h, by_edge, work_square;
    Real *squares_of_input, *work;
    Real kept_h;
    // The state to which training returns if the loss of an epoch is not finite.
    Real* saved;
    Real* network;  // that predicts, for validation
    int32_t* positions;
    Real* shares;

    Workspace(const Problem<Real>& p, Arena& arena) {
        constexpr int L = LANES<Real>;
        batch = padded<Real>(p.batch);
        run = p.sampled ? p.sampled : p.trained;
        width = p.widths[0];
        int widest = p.outputs;
        for (int l = 0; l < p.layers; ++l) widest = p.widths[l] > widest ? p.widths[l] : widest;
        if (!p.layers) widest = width;
        // The likelihood of a node needs the losses of all rows before it has a slope.
        block = p.graph || batch <= 64 ? batch : 64;
        size_t per_node = size_t(widest) * block * sizeof(Real) * (p.layers + 2);
        group = per_node == 0 ? 1 : int(CACHE / per_node);
        group = group < 1 ? 1 : (group > run ? run : group);
        int rows = block > VALIDATION_ROWS ? block : VALIDATION_ROWS;
        gradient_row = padded<Real>(run * width) + L;
        padded_nodes = padded<Real>(p.nodes);

        inputs = arena.take<Real>(size_t(p.inputs) * batch);
        truth = arena.take<Real>(size_t(p.channels) * batch);
        observed = arena.take<Real>(p.has_missing ? size_t(p.nodes) * batch : 0);
        weight = arena.take<Real>(batch + 64);
        copy = arena.take<Real>(batch);
        int at_once = group > p.targets ? group : p.targets;
        for (int l = 0; l < p.layers; ++l) {
            size_t size = size_t(at_once) * p.widths[l] * rows;
            units[l] = arena.take<Real>(size);
            before[l] = arena.take<Real>(p.activation == Activation::silu ? size : 0);
            kept[l] = arena.take<Real>(p.dropout ? size : 0);
        }
        size_t of_layer = size_t(at_once) * widest * rows;
        outputs = arena.take<Real>(size_t(at_once) * p.outputs * rows);
        slope = arena.take<Real>(size_t(at_once) * p.outputs * rows);
        losses = arena.take<Real>(size_t(at_once) * rows);
        slope_units = arena.take<Real>(of_layer);
        slope_below = arena.take<Real>(of_layer);
        transposed = arena.take<Real>(size_t(rows) * (at_once * padded<Real>(widest) + 2 * L));
        size_t of_waves = size_t(p.embedded) * p.waves * rows;
        rest_of_turns = arena.take<Real>(of_waves);
        waves = arena.take<Real>(of_waves);
        slope_mixed = arena.take<Real>(size_t(p.embedded) * p.mixed * rows);
        slope_waves = arena.take<Real>(size_t(p.waves) * rows);
        transposed_mixed = arena.take<Real>(size_t(rows) * padded<Real>(p.mixed));
        size_t of_head = p.autoencoder ? size_t(p.features) * p.outputs : 0;
        head = arena.take<Real>(of_head * rows);
        slope_head = arena.take<Real>(of_head * rows);
        slope_from_head = arena.take<Real>(p.autoencoder ? size_t(p.targets) * widest * rows : 0);
        validation_inputs = arena.take<Real>(size_t(p.inputs) * VALIDATION_ROWS);
        validation_truth = arena.take<Real>(size_t(p.channels) * VALIDATION_ROWS);
        validation_observed = arena.take<Real>(p.has_missing ? size_t(p.nodes) * VALIDATION_ROWS : 0);
        validation_weight = arena.take<Real>(VALIDATION_ROWS);
        node_loss = arena.take<Real>(run);

        Pieces<Real>& g = gradient;
        g.input_weights = arena.take<Real>(size_t(p.inputs) * gradient_row + L);
        g.input_bias = arena.take<Real>(padded<Real>(run * width) + L);
        for (int l = 1; l < p.layers; ++l) {
            g.hidden_weights[l] = arena.take<Real>(size_t(p.widths[l - 1]) * padded<Real>(p.widths[l]) + L);
            g.hidden_bias[l] = arena.take<Real>(padded<Real>(p.widths[l]));
        }
        if (p.layers) {
            g.output_weights = arena.take<Real>(size_t(run) * p.widths[p.layers - 1] * p.outputs);
            g.output_bias = arena.take<Real>(size_t(run) * p.outputs);
        }
        g.frequencies = arena.take<Real>(size_t(p.embedded) * p.waves);
        g.phases = arena.take<Real>(size_t(p.embedded) * p.waves);
        g.mixing = arena.take<Real>(size_t(p.embedded) * p.waves * padded<Real>(p.mixed) + L);
        g.head_weights = arena.take<Real>(size_t(p.targets) * (p.layers ? p.widths[p.layers - 1] : 0) * of_head);
        g.head_bias = arena.take<Real>(size_t(p.targets) * of_head);
        linear = arena.take<Real>(gradient_row + L);
        constant = arena.take<Real>(gradient_row + L);
        mask = arena.take<Real>(gradient_row + L);

        size_t square = p.castle ? size_t(p.nodes) * padded_nodes : 0;
        adjacency = {arena.take<Real>(square), p.nodes, padded_nodes};
        slope_of_h = {arena.take<Real>(square), p.nodes, padded_nodes};
        by_edge = {arena.take<Real>(square), p.nodes, padded_nodes};
        work_square = {arena.take<Real>(square), p.nodes, padded_nodes};
        squares_of_input = arena.take<Real>(p.castle ? size_t(p.inputs) * p.trained : 0);
        work = arena.take<Real>(square * SQUARES_OF_EXPONENTIAL<Real> + padded_nodes + L);
        saved = arena.take<Real>(size_t(p.input_size + p.rest_size) + head_size(p));
        network = arena.take<Real>(size_t(p.input_size + p.rest_size));
        positions = arena.take<int32_t>(run);
        shares = arena.take<Real>(run);
    }

    static size_t head_size(const Problem<Real>& p) {
        if (!p.autoencoder) return 0;
        return size_t(p.targets) * p.features * p.outputs * (p.widths[p.layers - 1] + 1);
    }
};

}  // namespace CASTLEREG_ISA
}  // namespace castlereg
