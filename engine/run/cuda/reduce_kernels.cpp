#include "engine/run/cuda/reduce_kernels.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include "engine/kernel/builder.h"

namespace eagle::run::cuda {
namespace {

using kernel::Kernel;
using kernel::KernelBuilder;
using kernel::Opcode;
using kernel::ReduceOp;
using kernel::Scalar;
using kernel::Type;
using Value = KernelBuilder::Value;

// What a node holds: one number, or of a compensated sum its high part and what rounding lost.
using Node = std::vector<Value>;

constexpr std::int64_t leaf_samples = 256;          // as engine/run/reduction has them
constexpr std::int64_t leaf_rows_compensated = 16;  // of 256 samples
constexpr std::int64_t lane_count = 32;             // nodes of a leaf after the first level
constexpr std::int64_t folded = leaf_samples / lane_count;
constexpr std::int64_t neighbour_count = 32;

enum class Pass { samples, lanes, neighbours, results };

class Level {
public:
  Level(ReduceOp op, Scalar scalar, bool compensated, Pass pass)
      : op_(op),
        scalar_(scalar),
        compensated_(compensated),
        pass_(pass),
        b_("reduce", scalar == Scalar::f32 ? Scalar::f32 : Scalar::f64) {}

  Kernel kernel() {
    const bool pairs_come = compensated_ && pass_ != Pass::samples;
    const bool pairs_go = compensated_ && pass_ != Pass::results;
    n_ = b_.integer_param("n");
    const Value count = b_.integer_param("count");
    b_.table("x", pairs_come ? Type{scalar_, 1, {2, 1}} : Type{scalar_});
    b_.declare_output("y", pairs_go ? Type{scalar_, 1, {2, 1}} : Type{scalar_});
    const Value index = b_.sample_index();
    const Value row = b_.op(Opcode::floor_div, {index, count});
    first_ = b_.mul(row, n_);
    const Value at = b_.op(Opcode::modulo, {index, count});
    const Node node = pass_ == Pass::samples ? samples(at) : pass_ == Pass::lanes ? of_lanes(at) : pairs(at);
    if (pairs_go) {
      b_.commit("y", b_.compose(node, {scalar_, 1, {2, 1}}));
    } else {
      b_.commit("y", pass_ == Pass::results ? finished(node) : node[0]);
    }
    return *b_.finish();
  }

private:
  // ---- which elements

  // Slot `at` % 32 of a leaf, and those 32, 64, ... further on.
  Node samples(Value at) {
    const Value leaf = b_.op(Opcode::floor_div, {at, b_.integer(lane_count)});
    const Value lane = b_.op(Opcode::modulo, {at, b_.integer(lane_count)});
    const std::int64_t rows = compensated_ ? leaf_rows_compensated : 1;
    const Value first = b_.add(b_.mul(leaf, b_.integer(rows * leaf_samples)), lane);
    std::vector<Node> nodes;
    for (std::int64_t k = 0; k < folded; ++k) {
      const Value slot = b_.add(first, b_.integer(k * lane_count));
      nodes.push_back(compensated_ ? column(slot) : Node{sample(slot)});
    }
    return halved(std::move(nodes));
  }
  Node of_lanes(Value at) {
    const Value first = b_.mul(at, b_.integer(lane_count));
    std::vector<Node> nodes;
    for (std::int64_t k = 0; k < lane_count; ++k) nodes.push_back(element(b_.add(first, b_.integer(k))));
    return halved(std::move(nodes));
  }
  Node pairs(Value at) {
    const Value first = b_.mul(at, b_.integer(neighbour_count));
    std::vector<Node> nodes;
    std::vector<Value> there;
    for (std::int64_t k = 0; k < neighbour_count; ++k) {
      const Value index = b_.add(first, b_.integer(k));
      nodes.push_back(element(index));
      there.push_back(b_.lt(index, n_));
    }
    for (std::size_t apart = 1; apart < nodes.size(); apart *= 2) {
      for (std::size_t k = 0; k < nodes.size(); k += 2 * apart) {
        const Node both = combined(nodes[k], nodes[k + apart]);
        for (std::size_t part = 0; part < both.size(); ++part)
          nodes[k][part] = b_.select(there[k + apart], both[part], nodes[k][part]);
      }
    }
    return nodes[0];
  }
  Node halved(std::vector<Node> nodes) {
    for (std::size_t half = nodes.size() / 2; half >= 1; half /= 2) {
      for (std::size_t k = 0; k < half; ++k) nodes[k] = combined(nodes[k], nodes[k + half]);
    }
    return nodes[0];
  }

  // ---- elements

  // The element of the row, or its last one where there is none so far.
  Value loaded(Value index) {
    const Value last = b_.sub(n_, b_.integer(1));
    const Value within = b_.select(b_.lt(index, n_), index, last);
    return b_.gather("x", {b_.add(first_, within)});
  }
  Node element(Value index) {
    const Value all = loaded(index);
    if (!compensated_) return {all};
    return {b_.extract(all, 0), b_.extract(all, 1)};
  }
  Value sample(Value index) { return b_.select(b_.lt(index, n_), loaded(index), neutral()); }
  // A slot of a compensated leaf: one sample of each of its rows, one after the other.
  Node column(Value slot) {
    Node node = {b_.real(0.0), b_.real(0.0)};
    for (std::int64_t row = 0; row < leaf_rows_compensated; ++row) {
      const Value index = b_.add(slot, b_.integer(row * leaf_samples));
      const Value there = b_.lt(index, n_);
      const Value x = loaded(index);
      const Value low = b_.add(node[1], lost(node[0], x));
      const Value high = b_.add(node[0], x);
      node = {b_.select(there, high, node[0]), b_.select(there, low, node[1])};
    }
    return node;
  }
  Value neutral() {
    const bool most = op_ == ReduceOp::max, least = op_ == ReduceOp::min;
    if (scalar_ == Scalar::boolean) return b_.boolean(op_ == ReduceOp::all);
    if (kernel::is_real(scalar_)) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      return b_.real(most ? -infinity : least ? infinity : -0.0);
    }
    using Limits = std::numeric_limits<std::int64_t>;
    return b_.integer(most ? Limits::min() : least ? Limits::max() : 0);
  }

  // ---- arithmetic

  Node combined(const Node& left, const Node& right) {
    if (compensated_) {
      const Value low = b_.add(b_.add(left[1], right[1]), lost(left[0], right[0]));
      return {b_.add(left[0], right[0]), low};
    }
    const Value a = left[0], c = right[0];
    switch (op_) {
      case ReduceOp::sum:
        return {b_.add(a, c)};
      case ReduceOp::all:
        return {b_.op(Opcode::logical_and, {a, c})};
      case ReduceOp::any:
        return {b_.op(Opcode::logical_or, {a, c})};
      case ReduceOp::max:
      case ReduceOp::min:
        break;
    }
    const Value better = op_ == ReduceOp::max ? b_.gt(a, c) : b_.lt(a, c);
    const Value best = b_.select(better, a, c);
    if (!kernel::is_real(scalar_)) return {best};
    // Equal zeros may have two signs: + is greater than -. A NaN stays.
    const Value zeros = op_ == ReduceOp::max ? b_.add(a, c) : b_.neg(b_.add(b_.neg(a), b_.neg(c)));
    const Value both_zero = b_.op(Opcode::logical_and, {b_.eq(a, b_.real(0.0)), b_.eq(c, b_.real(0.0))});
    const Value number = b_.select(both_zero, zeros, best);
    return {b_.select(b_.op(Opcode::isnan, {a}), a, number)};
  }

  // What a + c loses by rounding [Knuth's TwoSum]; exact.
  Value lost(Value a, Value c) {
    const Value sum = b_.add(a, c);
    const Value of_c = b_.sub(sum, a);
    return b_.add(b_.sub(a, b_.sub(sum, of_c)), b_.sub(c, of_c));
  }

  Value finished(const Node& node) {
    if (!compensated_) return node[0];
    return b_.select(b_.op(Opcode::isfinite, {node[0]}), b_.add(node[0], node[1]), node[0]);
  }

  const ReduceOp op_;
  const Scalar scalar_;
  const bool compensated_;
  const Pass pass_;
  KernelBuilder b_;
  Value n_, first_;
};

std::int64_t pieces(std::int64_t n, std::int64_t each) { return n / each + (n % each != 0 ? 1 : 0); }

}  // namespace

std::vector<ReduceLevel> reduce_levels(ReduceOp op, Scalar scalar, bool compensated, std::int64_t samples) {
  std::vector<ReduceLevel> levels;
  const auto add = [&](Pass pass, std::int64_t n, std::int64_t count) {
    Level level(op, scalar, compensated, pass);
    const bool pairs = compensated && pass != Pass::results;
    levels.push_back({std::make_shared<const Kernel>(level.kernel()), n, count, pairs ? 2 : 1});
  };
  const std::int64_t leaves =
      pieces(samples, compensated ? leaf_rows_compensated * leaf_samples : leaf_samples);
  add(Pass::samples, samples, leaves * lane_count);
  add(Pass::lanes, leaves * lane_count, leaves);
  std::int64_t nodes = leaves;
  for (; nodes > neighbour_count; nodes = pieces(nodes, neighbour_count))
    add(Pass::neighbours, nodes, pieces(nodes, neighbour_count));
  add(Pass::results, nodes, 1);
  return levels;
}

}  // namespace eagle::run::cuda
