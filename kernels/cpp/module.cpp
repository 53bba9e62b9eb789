// The Python module: reads a problem from a dict of arrays, and trains its members over threads.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#include "instruction_set.h"

namespace nb = nanobind;
using namespace castlereg;

namespace {

enum class InstructionSet { portable, avx2, avx512 };

bool is_supported(InstructionSet set) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    switch (set) {
        case InstructionSet::avx512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
        case InstructionSet::avx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
        default:
            return true;
    }
#else
    return set == InstructionSet::portable;
#endif
}

const char* name_of(InstructionSet set) {
    switch (set) {
        case InstructionSet::avx512:
            return "AVX-512";
        case InstructionSet::avx2:
            return "AVX2";
        default:
#if defined(__ARM_NEON)
            return "NEON";
#elif defined(__x86_64__)
            return "SSE2";
#else
            return "portable";
#endif
    }
}

// The best instruction set of the processor, or the one that the environment variable CASTLEREG_INSTRUCTION_SET names.
InstructionSet chosen() {
    const char* wanted = std::getenv("CASTLEREG_INSTRUCTION_SET");
    std::string known;
    for (InstructionSet set : {InstructionSet::avx512, InstructionSet::avx2, InstructionSet::portable}) {
        if (!is_supported(set)) continue;
        if (wanted == nullptr || wanted == std::string(name_of(set))) return set;
        known += (known.empty() ? "" : ", ") + std::string(name_of(set));
    }
    throw std::runtime_error(
        "CASTLEREG_INSTRUCTION_SET=" + std::string(wanted) + ", but this processor has " + known + "; set one of these"
    );
}

template <class T>
const char* type_name();
template <>
const char* type_name<float>() { return "float32"; }
template <>
const char* type_name<double>() { return "float64"; }
template <>
const char* type_name<int32_t>() { return "int32"; }
template <>
const char* type_name<uint32_t>() { return "uint32"; }
template <>
const char* type_name<int8_t>() { return "int8"; }
template <>
const char* type_name<uint8_t>() { return "uint8"; }

// Reads arrays out of a dict and checks type, layout and size.
class Arrays {
   public:
    explicit Arrays(nb::dict arrays) : arrays_(arrays) {}

    template <class T>
    T* get(const char* name, int64_t size) const {
        T* at = optional<T>(name, size);
        if (at == nullptr && size > 0) throw nb::value_error((std::string(name) + " is missing").c_str());
        return at;
    }

    // Arrays of a constant type may be read-only.
    template <class T>
    T* optional(const char* name, int64_t size) const {
        if (!arrays_.contains(name)) return nullptr;
        using Array = nb::ndarray<T, nb::c_contig, nb::device::cpu>;
        Array array;
        if (!nb::try_cast<Array>(arrays_[name], array, false))
            throw nb::value_error((std::string(name) + " must be a " + (std::is_const_v<T> ? "" : "writable, ") +
                                   "contiguous array of " + type_name<std::remove_const_t<T>>())
                                      .c_str());
        if (int64_t(array.size()) != size)
            throw nb::value_error((std::string(name) + " has " + std::to_string(array.size()) + " numbers, not " +
                                   std::to_string(size))
                                      .c_str());
        return array.data();
    }

    int64_t number(const char* name) const {
        if (!arrays_.contains(name)) throw nb::value_error((std::string(name) + " is missing").c_str());
        int64_t n;
        if (!nb::try_cast<int64_t>(arrays_[name], n)) throw nb::value_error((std::string(name) + " must be an integer").c_str());
        return n;
    }

    bool flag(const char* name) const { return number(name) != 0; }

    int count(const char* name, int64_t least = 0, int64_t most = INT32_MAX / 2) const {
        int64_t n = number(name);
        if (n < least || n > most) throw nb::value_error((std::string(name) + " is out of range").c_str());
        return int(n);
    }

   private:
    nb::dict arrays_;
};

// Consecutive pieces of one array, in the order of castlereg.network.pack.
template <class Real>
Pieces<Real> packed(const Problem<Real>& p, Real* input_weights, Real* rest) {
    Pieces<Real> pieces;
    pieces.input_weights = input_weights;
    auto next = [&](size_t size) {
        Real* at = rest;
        rest += size;
        return at;
    };
    const size_t waves = size_t(p.embedded) * p.waves;
    pieces.input_bias = next(size_t(p.trained) * p.widths[0]);
    for (int l = 1; l < p.layers; ++l) {
        pieces.hidden_weights[l] = next(size_t(p.widths[l - 1]) * p.widths[l]);
        pieces.hidden_bias[l] = next(p.widths[l]);
    }
    if (p.layers) {
        pieces.output_weights = next(size_t(p.trained) * p.widths[p.layers - 1] * p.outputs);
        pieces.output_bias = next(size_t(p.trained) * p.outputs);
    }
    if (waves) {
        pieces.frequencies = next(waves);
        pieces.phases = next(waves);
        pieces.mixing = next(waves * p.mixed);
    }
    return pieces;
}

// Moments if sub-networks are sampled: one array per piece.
template <class Real>
Pieces<Real> separate(const Problem<Real>& p, const Arrays& arrays, const std::string& prefix) {
    Pieces<Real> pieces;
    const int64_t m = p.members, waves = int64_t(p.embedded) * p.waves;
    auto get = [&](const std::string& name, int64_t size) {
        return arrays.get<Real>((prefix + name).c_str(), m * size);
    };
    pieces.input_weights = get("input_weights", p.input_size);
    pieces.input_bias = get("input_bias", int64_t(p.trained) * p.widths[0]);
    for (int l = 1; l < p.layers; ++l) {
        pieces.hidden_weights[l] = get("hidden_weights_" + std::to_string(l), int64_t(p.widths[l - 1]) * p.widths[l]);
        pieces.hidden_bias[l] = get("hidden_bias_" + std::to_string(l), p.widths[l]);
    }
    if (p.layers) {
        pieces.output_weights = get("output_weights", int64_t(p.trained) * p.widths[p.layers - 1] * p.outputs);
        pieces.output_bias = get("output_bias", int64_t(p.trained) * p.outputs);
    }
    if (waves) {
        pieces.frequencies = get("frequencies", waves);
        pieces.phases = get("phases", waves);
        pieces.mixing = get("mixing", waves * p.mixed);
    }
    return pieces;
}

void check_range(const int32_t* values, int64_t n, int low, int high, const char* name) {
    for (int64_t i = 0; i < n; ++i)
        if (values[i] < low || values[i] >= high)
            throw nb::value_error((std::string(name) + " has " + std::to_string(values[i]) + ", which is out of range").c_str());
}

template <class Real>
Problem<Real> read_problem(const Arrays& a) {
    Problem<Real> p{};
    p.members = a.count("members", 1), p.nodes = a.count("nodes", 2), p.targets = a.count("targets", 1);
    p.features = p.nodes - p.targets;
    p.channels = a.count("channels", 2), p.inputs = a.count("inputs", p.channels), p.outputs = a.count("outputs", 1);
    p.trained = a.count("trained", p.targets);
    p.embedded = a.count("embedded"), p.waves = a.count("waves"), p.mixed = a.count("mixed");
    p.batch = a.count("batch", 1), p.rows = a.count("rows", 1), p.validation = a.count("validation", 1);
    p.room_epochs = a.count("room_epochs", 1), p.room_steps = a.count("room_steps", 1);
    p.sampled = a.count("sampled");
    p.activation = a.flag("silu") ? Activation::silu : Activation::relu;
    p.layers = a.count("layers");
    if (p.features < 1 || p.layers > MOST_LAYERS || p.inputs != p.channels + int64_t(p.embedded) * p.mixed ||
        p.trained > p.nodes || p.sampled > p.trained || (p.sampled && (p.trained != p.nodes || p.sampled <= p.targets)))
        throw nb::value_error("the sizes do not fit each other");
    const int32_t* widths = a.get<const int32_t>("widths", p.layers);
    for (int l = 0; l < p.layers; ++l) p.widths[l] = widths[l];
    if (p.layers)
        check_range(widths, p.layers, 1, 1 << 20, "widths");
    else
        p.widths[0] = p.outputs;
    p.input_size = int64_t(p.inputs) * p.trained * p.widths[0];
    p.rest_size = int64_t(p.trained) * p.widths[0] + int64_t(p.embedded) * p.waves * (2 + p.mixed);
    for (int l = 1; l < p.layers; ++l) p.rest_size += (int64_t(p.widths[l - 1]) + 1) * p.widths[l];
    if (p.layers) p.rest_size += int64_t(p.trained) * (p.widths[p.layers - 1] + 1) * p.outputs;

    const int64_t m = p.members, epochs = m * p.room_epochs, steps = epochs * p.room_steps;
    p.channel_node = a.get<const int32_t>("channel_node", p.channels);
    p.input_node = a.get<const int32_t>("input_node", p.inputs);
    p.trained_node = a.get<const int32_t>("trained_node", p.trained);
    p.node_loss = a.get<const int32_t>("node_loss", p.nodes);
    p.node_outputs = a.get<const int32_t>("node_outputs", p.nodes);
    p.node_channel = a.get<const int32_t>("node_channel", p.nodes);
    p.node_middle = a.get<const int32_t>("node_middle", p.nodes);
    p.node_numeric = a.get<const int32_t>("node_numeric", p.nodes);
    p.embedded_channel = a.get<const int32_t>("embedded_channel", p.embedded);
    p.clipped = a.get<const uint8_t>("clipped", p.channels);
    p.predicted_scaled = a.get<const uint8_t>("predicted_scaled", p.channels);
    p.node_delta = a.get<const Real>("node_delta", p.nodes);
    p.node_levels = a.get<const Real>("node_levels", int64_t(p.nodes) * p.outputs);
    p.has_missing = a.flag("has_missing"), p.has_clipped = a.flag("has_clipped");
    check_range(p.channel_node, p.channels, 0, p.nodes, "channel_node");
    check_range(p.input_node, p.inputs, 0, p.nodes, "input_node");
    check_range(p.trained_node, p.trained, 0, p.nodes, "trained_node");
    check_range(p.node_loss, p.nodes, 0, int(Loss::quantiles) + 1, "node_loss");
    check_range(p.node_outputs, p.nodes, 1, p.outputs + 1, "node_outputs");
    check_range(p.node_channel, p.nodes, 0, p.channels, "node_channel");
    check_range(p.node_middle, p.nodes, 0, p.outputs, "node_middle");
    check_range(p.embedded_channel, p.embedded, 0, p.channels, "embedded_channel");
    for (int k = 0; k < p.nodes; ++k)
        if (Loss(p.node_loss[k]) == Loss::softmax && p.node_channel[k] + p.node_outputs[k] > p.channels)
            throw nb::value_error("a node has more levels than channels");

    p.encoded = a.get<const Real>("encoded", int64_t(p.rows) * p.channels);
    p.row_weight = a.get<const Real>("row_weight", p.rows);
    p.penalized = a.optional<const Real>("penalized", int64_t(p.inputs) * p.trained);
    p.node_weight = a.get<const Real>("node_weight", p.nodes);
    p.epochs = a.count("epochs"), p.max_epochs = a.count("max_epochs", 0, INT32_MAX);
    p.patience = a.count("patience", 0, INT32_MAX), p.warmup = a.count("warmup", 0, INT32_MAX);
    if (p.epochs > p.room_epochs) throw nb::value_error("more epochs than there is room for");

    p.batches = a.get<const int32_t>("batches", steps * p.batch);
    check_range(p.batches, steps * p.batch, 0, p.rows, "batches");
    if (p.sampled) {
        p.sampled_nodes = a.get<const int32_t>("sampled_nodes", steps * p.sampled);
        check_range(p.sampled_nodes, steps * p.sampled, 0, p.nodes, "sampled_nodes");
    }
    p.steps = a.get<const int32_t>("steps", m);
    check_range(p.steps, m, 1, p.room_steps + 1, "steps");
    p.validation_rows = a.get<const int32_t>("validation_rows", m * p.validation);
    check_range(p.validation_rows, m * p.validation, 0, p.rows, "validation_rows");
    p.shift = a.get<const Real>("shift", m * p.channels), p.scale = a.get<const Real>("scale", m * p.channels);
    if (p.has_clipped) {
        p.clip_center = a.get<const Real>("clip_center", m * p.channels);
        p.clip_rate = a.get<const Real>("clip_rate", m * p.channels);
    }
    p.null_loss = a.optional<const Real>("null_loss", m * p.nodes);
    p.mean_weight = a.get<const Real>("mean_weight", m);
    p.edge_mask = a.get<const Real>("edge_mask", m * p.inputs * p.trained);
    p.rate_factor = a.get<const Real>("rate_factor", epochs);
    p.averaging = a.optional<const Real>("averaging", m);
    p.weight_decay = a.optional<const Real>("weight_decay", m);
    p.input_signs = a.optional<const int8_t>("input_signs", p.input_size);
    if (p.input_signs) p.rest_signs = a.get<const int8_t>("rest_signs", p.rest_size);

    p.castle = a.flag("castle");
    if (p.castle) {
        p.reconstruction = a.flag("reconstruction"), p.graph = a.flag("graph"), p.capacity = a.flag("capacity");
        p.acyclicity = Acyclicity(a.count("acyclicity", 0, int(Acyclicity::log_determinant)));
        p.sparsity = Sparsity(a.count("sparsity", 0, int(Sparsity::group)));
        p.reg_beta = a.get<const Real>("reg_beta", epochs), p.reg_lambda = a.get<const Real>("reg_lambda", epochs);
        p.acyclicity_strength = a.get<const Real>("acyclicity_strength", epochs);
        if ((p.reconstruction || p.acyclicity != Acyclicity::none) && p.trained != p.nodes)
            throw nb::value_error("reconstruction and acyclicity need the sub-networks of all nodes");
    }
    p.l1 = a.optional<const Real>("l1", epochs), p.l2 = a.optional<const Real>("l2", epochs);
    p.autoencoder = a.optional<const Real>("autoencoder", epochs), p.dropout = a.optional<const Real>("dropout", epochs);
    if ((p.autoencoder || p.dropout) && !p.layers) throw nb::value_error("autoencoder and dropout need hidden layers");
    if (p.dropout) p.dropout_words = a.get<const uint32_t>("dropout_words", steps * p.layers * 2);
    p.batch_changes = a.count("batch_changes");
    if (p.batch_changes > MOST_BATCH_CHANGES) throw nb::value_error("too many changes of a batch");
    for (int i = 0; i < p.batch_changes; ++i) {
        const std::string name = "change_" + std::to_string(i);
        p.changes[i] = BatchChange(a.count((name + "_kind").c_str(), 0, int(BatchChange::corruption)));
        p.change_strength[i] = a.get<const Real>((name + "_strength").c_str(), epochs);
        if (p.changes[i] == BatchChange::mixup)
            p.mixup_numbers = a.get<const float>("mixup_numbers", steps * 2);
        else
            p.change_words[i] = a.get<const uint32_t>((name + "_words").c_str(), steps * 2);
    }
    if (sizeof(Real) != 4 && (p.dropout || p.batch_changes))
        throw nb::value_error("random numbers need float32");
    p.terms = a.count("terms");
    if (p.terms > MOST_TERMS) throw nb::value_error("too many terms");
    const int32_t* terms = a.get<const int32_t>("term", p.terms);
    check_range(terms, p.terms, 0, int(Term::autoencoder) + 1, "term");
    for (int i = 0; i < p.terms; ++i) p.term[i] = Term(terms[i]);

    auto network = [&](const char* input_weights, const char* rest) {
        return packed(p, a.get<Real>(input_weights, m * p.input_size), a.get<Real>(rest, m * p.rest_size));
    };
    p.weights = network("weights_input", "weights_rest");
    p.best = network("best_input", "best_rest");
    if (p.averaging) p.average = network("average_input", "average_rest");
    if (p.sampled) {
        p.first = separate(p, a, "first_"), p.second = separate(p, a, "second_");
        p.node_count = a.get<int32_t>("node_count", m * p.trained);
    } else {
        p.first = network("first_input", "first_rest"), p.second = network("second_input", "second_rest");
    }
    if (p.autoencoder) {
        const int64_t bias = m * p.targets * p.features * p.outputs, weights = bias * p.widths[p.layers - 1];
        p.weights.head_bias = a.get<Real>("head_bias", bias), p.weights.head_weights = a.get<Real>("head_weights", weights);
        p.first.head_bias = a.get<Real>("first_head_bias", bias);
        p.first.head_weights = a.get<Real>("first_head_weights", weights);
        p.second.head_bias = a.get<Real>("second_head_bias", bias);
        p.second.head_weights = a.get<Real>("second_head_weights", weights);
    }
    p.count = a.get<int32_t>("count", m);
    p.rate = a.get<Real>("rate", m), p.best_loss = a.get<Real>("best_loss", m);
    p.best_epoch = a.get<int32_t>("best_epoch", m), p.epoch = a.get<int32_t>("epoch", m);
    p.restarts = a.get<int32_t>("restarts", m), p.active = a.get<uint8_t>("active", m);
    p.log = a.get<Real>("log", epochs * (p.terms + 4));
    return p;
}

struct Memory {
    explicit Memory(size_t bytes) : at(static_cast<char*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64))) {
        if (at == nullptr) throw std::bad_alloc();
    }
    ~Memory() { std::free(at); }
    Memory(const Memory&) = delete;
    char* at;
};

template <class Real>
void run(const Problem<Real>& p, InstructionSet set, int n_threads) {
    auto bytes = set == InstructionSet::avx512 ? avx512::bytes(p) : set == InstructionSet::avx2 ? avx2::bytes(p) : portable::bytes(p);
    std::vector<int> members;
    for (int i = 0; i < p.members; ++i)
        if (p.active[i]) members.push_back(i);
    const int n = std::max(1, std::min(n_threads, int(members.size())));
    std::vector<std::unique_ptr<Memory>> memory;  // before any thread starts: allocation may fail
    for (int i = 0; i < n; ++i) memory.push_back(std::make_unique<Memory>(bytes));
    std::atomic<size_t> next{0};
    auto work = [&](int thread) {
        for (size_t i; (i = next.fetch_add(1)) < members.size();) {
            switch (set) {
                case InstructionSet::avx512:
                    avx512::train(p, members[i], memory[thread]->at);
                    break;
                case InstructionSet::avx2:
                    avx2::train(p, members[i], memory[thread]->at);
                    break;
                default:
                    portable::train(p, members[i], memory[thread]->at);
            }
        }
    };
    std::vector<std::thread> threads;
    for (int i = 1; i < n; ++i) {
        try {
            threads.emplace_back(work, i);
        } catch (const std::system_error&) {
            break;  // the system starts no more threads: the running ones do the work
        }
    }
    work(0);
    for (std::thread& thread : threads) thread.join();
}

template <class Real>
void train_as(nb::dict arrays, int n_threads) {
    const Problem<Real> p = read_problem<Real>(Arrays(arrays));
    const InstructionSet set = chosen();
    nb::gil_scoped_release released;
    run(p, set, n_threads);
}

void train(nb::dict arrays, const std::string& dtype, int n_threads) {
    if (dtype == "float32")
        train_as<float>(arrays, n_threads);
    else if (dtype == "float64")
        train_as<double>(arrays, n_threads);
    else
        throw nb::value_error(("dtype=" + dtype + " must be float32 or float64").c_str());
}

}  // namespace

NB_MODULE(_kernels, m) {
    m.def("train", &train, nb::arg("arrays"), nb::arg("dtype"), nb::arg("n_threads"));
    m.def("instruction_set", [] { return std::string(name_of(chosen())); });
}
