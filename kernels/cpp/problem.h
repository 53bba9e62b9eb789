// The inputs of one call: pointers into arrays of the caller, which has checked their sizes.
//
// Arrays of members have the member as their first axis. Shapes are those of castlereg.training.state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace castlereg {

constexpr int MOST_LAYERS = 16;
constexpr int MOST_BATCH_CHANGES = 3;
constexpr int MOST_TERMS = 12;

enum class Loss : int { squared, logistic, softmax, huber, poisson, quantiles };
enum class Activation : int { relu, silu };
enum class Acyclicity : int { none, exponential, log_determinant };
enum class Sparsity : int { none, l1, group };
enum class BatchChange : int { noise, mixup, corruption };
enum class Term : int { supervised, reconstruction, acyclicity, sparsity, capacity, l1, l2, autoencoder };

// One array per piece of a network, in the order of castlereg.network.Parameters.
template <class Real>
struct Pieces {
    Real* input_weights = nullptr;  // (inputs, trained nodes, width)
    Real* input_bias = nullptr;     // (trained nodes, width)
    Real* hidden_weights[MOST_LAYERS] = {};  // (in, out), from the second hidden layer on
    Real* hidden_bias[MOST_LAYERS] = {};
    Real* output_weights = nullptr;  // (trained nodes, width, outputs); none in the linear form
    Real* output_bias = nullptr;     // (trained nodes, outputs)
    Real* frequencies = nullptr;     // (embedded nodes, waves)
    Real* phases = nullptr;
    Real* mixing = nullptr;        // (embedded nodes, waves, inputs of a node)
    Real* head_bias = nullptr;     // of the autoencoder, (targets, features * outputs)
    Real* head_weights = nullptr;  // (targets, width, features * outputs)
};

template <class Real>
struct Problem {
    // Sizes.
    int members, nodes, features, targets, channels, inputs, trained, outputs;
    int layers;               // hidden layers; 0 for the linear form
    int widths[MOST_LAYERS];  // of the hidden layers; in the linear form the first one is `outputs`
    int embedded, waves, mixed;  // numeric features with an embedding, waves of each, inputs mixed from them
    int batch, rows, room_epochs, room_steps, validation;
    int sampled;  // sub-networks that a step trains; 0 for all
    Activation activation;

    // The layout.
    const int32_t* channel_node;      // (channels,)
    const int32_t* input_node;        // (inputs,)
    const int32_t* trained_node;      // (trained,)
    const int32_t* node_loss;         // (nodes,), Loss
    const int32_t* node_outputs;      // (nodes,)
    const int32_t* node_channel;      // (nodes,), the first
    const int32_t* node_middle;       // (nodes,), of quantiles
    const int32_t* node_numeric;      // (nodes,)
    const int32_t* embedded_channel;  // (embedded,)
    const uint8_t* clipped;           // (channels,)
    const uint8_t* predicted_scaled;  // (channels,), whether the truth is the standardized value
    const Real* node_delta;           // (nodes,), of Huber's loss
    const Real* node_levels;          // (nodes, outputs), of quantiles
    bool has_missing, has_clipped;

    // The table.
    const Real* encoded;      // (rows, channels)
    const Real* row_weight;   // (rows,)
    const Real* penalized;    // (inputs, trained) or none
    const Real* node_weight;  // (nodes,)
    int epochs, max_epochs, patience, warmup;

    // Inputs of members.
    const int32_t* batches;        // (members, room epochs, room steps, batch)
    const int32_t* sampled_nodes;  // (members, room epochs, room steps, sampled) or none
    const int32_t* steps;          // (members,)
    const int32_t* validation_rows;  // (members, validation)
    const Real *shift, *scale;       // (members, channels)
    const Real *clip_center, *clip_rate;  // the same, or none
    const Real* null_loss;                // (members, nodes) or none
    const Real* mean_weight;              // (members,)
    const Real* edge_mask;                // (members, inputs, trained)
    const Real* rate_factor;              // (members, room epochs)
    const Real* averaging;                // (members,) or none
    const Real* weight_decay;             // (members,) or none
    const int8_t *input_signs, *rest_signs;  // of one network, or none: see castlereg.monotone

    // Regularizers: strengths have shape (members, room epochs).
    bool castle, reconstruction, graph, capacity;
    Acyclicity acyclicity;
    Sparsity sparsity;
    const Real *reg_beta, *reg_lambda, *acyclicity_strength;
    const Real *l1, *l2, *autoencoder;  // or none
    const Real* dropout;                // or none
    const uint32_t* dropout_words;      // (members, room epochs, room steps, layers, 2)
    int batch_changes;
    BatchChange changes[MOST_BATCH_CHANGES];  // in the order of the regularizers
    const Real* change_strength[MOST_BATCH_CHANGES];
    const uint32_t* change_words[MOST_BATCH_CHANGES];  // (members, room epochs, room steps, 2)
    const float* mixup_numbers;                        // (members, room epochs, room steps, 2)
    int terms;
    Term term[MOST_TERMS];  // of the log, after the objective

    // States of members. In `first` and `second`, Adam's moments, input weights are laid out by node if sub-networks are
    // sampled.
    Pieces<Real> weights, first, second, average, best;
    int64_t input_size, rest_size;  // of one network
    int32_t* count;                 // (members,) of shared pieces, or of all
    int32_t* node_count;            // (members, trained) where sub-networks are sampled
    Real *rate, *best_loss;         // (members,)
    int32_t *best_epoch, *epoch, *restarts;
    uint8_t* active;
    Real* log;  // (members, room epochs, 1 + terms + 3)
};

}  // namespace castlereg
