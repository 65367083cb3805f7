#include "engine/kernel/interpret.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "engine/kernel/float_environment.h"
#include "engine/kernel/random_words.h"
#include "engine/kernel/reduce_reference.h"
#include "engine/kernel/scalar_ops.h"

namespace eagle::kernel {
namespace {

// ---- planes ----

// Memory at an argument's plane; `index` counts samples, or elements of a table.
class Planes {
public:
  Planes(const Kernel& kernel, std::span<const InterpreterPlane> planes) : kernel_(kernel), planes_(planes) {}

  [[nodiscard]] std::byte* address(std::size_t argument, std::int64_t index, std::size_t component) const {
    const InterpreterPlane& plane = planes_[argument];
    const Argument& declared = kernel_.arguments[argument];
    if (declared.role == Role::param) return plane.data;
    return plane.data + static_cast<std::int64_t>(component) * plane.component_stride +
           index * bytes_of(declared.type.scalar);
  }

  [[nodiscard]] std::uint64_t load(std::size_t argument, std::int64_t index, std::size_t component) const {
    const Scalar scalar = kernel_.arguments[argument].type.scalar;
    std::uint64_t bits = 0;
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(&bits, address(argument, index, component), static_cast<std::size_t>(bytes_of(scalar)));
    return scalar == Scalar::boolean ? static_cast<std::uint64_t>(bits != 0) : bits;
  }

  void store(std::size_t argument, std::int64_t index, std::size_t component, std::uint64_t bits) const {
    std::memcpy(address(argument, index, component), &bits,
                static_cast<std::size_t>(bytes_of(kernel_.arguments[argument].type.scalar)));
  }

  // How long a table or accumulator is along one of its axes.
  [[nodiscard]] std::int64_t extent(std::size_t table, std::size_t axis) const {
    const auto& axes = kernel_.arguments[table].axes;
    return axes.empty() ? planes_[table].length : axes[axis].extent;
  }

  [[nodiscard]] std::int64_t elements(std::size_t table) const {
    std::int64_t product = 1;
    const std::size_t axes = std::max<std::size_t>(kernel_.arguments[table].axes.size(), 1);
    for (std::size_t axis = 0; axis < axes; ++axis) product *= extent(table, axis);
    return product;
  }

private:
  const Kernel& kernel_;
  std::span<const InterpreterPlane> planes_;
};

// ---- the body ----

// Where a run of the body is, and what it counted.
struct Run {
  std::int64_t sample = 0;  // in the whole ensemble
  std::int64_t samples = 0;
  std::int64_t step = 0;
  std::int64_t clamped = 0;
  std::int64_t zero_divisions = 0;
  std::int64_t dropped = 0;
};

class Interpreter {
public:
  Interpreter(const Kernel& kernel, const Planes& planes) : kernel_(kernel), planes_(planes) {
    values_.reserve(kernel.value_types.size());
    for (const Type& type : kernel.value_types) values_.emplace_back(type.components());
  }

  // The bits of an entry value, to be set before `run`, or of any value after it.
  Bits& value(ValueId id) { return values_[id]; }
  void run(Run& run) {
    run_ = &run;
    run_region(kernel_.body);
  }

private:
  void run_region(const Region& region) {
    for (const Op& op : region.ops) run_op(op);
  }

  void run_op(const Op& op) {
    switch (op.code) {
      case Opcode::constant:
        return set_scalar(op, op.bits);
      case Opcode::sample_index:
        return set_scalar(op, static_cast<std::uint64_t>(run_->sample));
      case Opcode::n_samples:
        return set_scalar(op, static_cast<std::uint64_t>(run_->samples));
      case Opcode::step_index:
        return set_scalar(op, static_cast<std::uint64_t>(run_->step));
      case Opcode::select:
        return run_select(op);
      case Opcode::if_:
        return run_one_of(op, scalar(op.operands[0]) != 0 ? 0 : 1);
      case Opcode::while_:
        return run_while(op);
      case Opcode::switch_: {
        const auto last = static_cast<std::int64_t>(op.regions.size()) - 1;
        const std::int64_t selector = integer(op.operands[0]);
        return run_one_of(op, static_cast<std::size_t>(std::clamp(selector, std::int64_t{0}, last)));
      }
      case Opcode::primitive:
        copy(op.operands, op.regions[0].arguments);
        return run_one_of(op, 0);
      case Opcode::gather:
        return run_gather(op);
      case Opcode::length:
        return set_scalar(op, static_cast<std::uint64_t>(planes_.elements(op.argument)));
      case Opcode::accum_add:
        return run_accum_add(op);
      case Opcode::random_words:
        return run_random_words(op);
      case Opcode::compose:
        for (std::size_t i = 0; i < op.operands.size(); ++i)
          values_[op.results[0]][i] = scalar(op.operands[i]);
        return;
      case Opcode::extract:
        return set_scalar(op, values_[op.operands[0]][op.component]);
      default:
        return run_elementwise(op);
    }
  }

  [[nodiscard]] std::uint64_t scalar(ValueId id) const { return values_[id][0]; }
  [[nodiscard]] std::int64_t integer(ValueId id) const { return static_cast<std::int64_t>(scalar(id)); }
  void set_scalar(const Op& op, std::uint64_t bits) { values_[op.results[0]][0] = bits; }

  // All at once: a loop's body may yield its arguments in another order.
  void copy(const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
    std::vector<Bits> held;
    held.reserve(from.size());
    for (const ValueId id : from) held.push_back(values_[id]);
    for (std::size_t i = 0; i < to.size(); ++i) values_[to[i]] = std::move(held[i]);
  }

  void run_select(const Op& op) {
    const bool first = scalar(op.operands[0]) != 0;
    values_[op.results[0]] = values_[op.operands[first ? 1 : 2]];
  }

  void run_one_of(const Op& op, std::size_t taken) {
    run_region(op.regions[taken]);
    copy(op.regions[taken].yields, op.results);
  }

  // After `max_trips` bodies the condition is not looked at again.
  void run_while(const Op& op) {
    const Region& condition = op.regions[0];
    const Region& body = op.regions[1];
    copy(op.operands, op.results);  // the results hold what is carried
    for (std::uint64_t trip = 0; trip < op.max_trips; ++trip) {
      copy(op.results, condition.arguments);
      run_region(condition);
      if (scalar(condition.yields[0]) == 0) return;
      copy(op.results, body.arguments);
      run_region(body);
      copy(body.yields, op.results);
    }
  }

  void run_gather(const Op& op) {
    std::int64_t element = 0;
    bool clamped = false;
    for (std::size_t axis = 0; axis < op.operands.size(); ++axis) {
      const std::int64_t extent = planes_.extent(op.argument, axis);
      const std::int64_t asked = integer(op.operands[axis]);
      const std::int64_t index = std::clamp(asked, std::int64_t{0}, extent - 1);
      clamped = clamped || index != asked;
      element = element * extent + index;
    }
    if (clamped) ++run_->clamped;
    Bits& result = values_[op.results[0]];
    for (std::size_t c = 0; c < result.size(); ++c) result[c] = planes_.load(op.argument, element, c);
  }

  void run_accum_add(const Op& op) {
    std::int64_t element = 0;
    for (std::size_t axis = 0; axis + 1 < op.operands.size(); ++axis) {
      const std::int64_t extent = planes_.extent(op.argument, axis);
      const std::int64_t index = integer(op.operands[axis + 1]);
      if (index < 0 || index >= extent) {
        ++run_->dropped;
        return;
      }
      element = element * extent + index;
    }
    const Scalar scalar = kernel_.arguments[op.argument].type.scalar;
    const Bits& added = values_[op.operands[0]];
    for (std::size_t c = 0; c < added.size(); ++c) {
      const std::uint64_t before = planes_.load(op.argument, element, c);
      planes_.store(op.argument, element, c, apply(Opcode::add, scalar, scalar, before, added[c]));
    }
  }

  void run_random_words(const Op& op) {
    Bits& words = values_[op.results[0]];
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = random_word(scalar(op.operands[0]), scalar(op.operands[1]) + i,
                             static_cast<std::uint64_t>(run_->sample));
    }
  }

  void run_elementwise(const Op& op) {
    const ValueId result = op.results[0];
    const Bits& a = values_[op.operands.front()];
    const Bits& b =
        values_[op.operands[op.operands.size() > 1 ? 1 : 0]];  // `a` again where there is one operand
    const Bits& c = values_[op.operands.back()];
    const Scalar from = kernel_.value_types[op.operands[0]].scalar;
    const Scalar to = kernel_.value_types[result].scalar;
    const bool divides = op.code == Opcode::floor_div || op.code == Opcode::modulo;
    for (std::size_t i = 0; i < values_[result].size(); ++i) {
      if (divides && b[i] == 0) ++run_->zero_divisions;
      values_[result][i] = apply(op.code, from, to, a[i], b[i], c[i]);
    }
  }

  const Kernel& kernel_;
  const Planes& planes_;
  std::vector<Bits> values_;  // by ValueId
  Run* run_ = nullptr;
};

// ---- launches ----

class Launch {
public:
  Launch(const Kernel& kernel, std::span<const InterpreterPlane> planes, const InterpreterPosition& position)
      : kernel_(kernel),
        planes_(kernel, planes),
        position_(position),
        accesses_(accesses(kernel)),
        mask_(kernel.terminated_argument()),
        interpreter_(kernel, planes_) {}

  InterpreterResult run(std::int64_t samples, std::int64_t max_steps) {
    InterpreterResult result;
    Run run;
    run.samples = position_.total_samples;
    if (kernel_.shares()) {
      for (std::int64_t step = 0; step < max_steps && (step == 0 || any_runs(samples)); ++step) {
        begin_reductions(samples);
        for (std::int64_t sample = 0; sample < samples; ++sample)
          take_steps(sample, step, step + 1, run, result);
        end_reductions();
      }
    } else {
      for (std::int64_t sample = 0; sample < samples; ++sample) take_steps(sample, 0, max_steps, run, result);
    }
    result.clamped = run.clamped;
    result.zero_divisions = run.zero_divisions;
    result.dropped = run.dropped;
    return result;
  }

private:
  [[nodiscard]] bool any_runs(std::int64_t samples) const {
    std::int64_t sample = 0;
    while (sample < samples && is_stopped(sample)) ++sample;
    return sample < samples;
  }

  // A sample's steps [step, end), as far as it is not stopped.
  void take_steps(std::int64_t sample, std::int64_t step, std::int64_t end, Run& run,
                  InterpreterResult& result) {
    bool stopped = is_stopped(sample);
    while (!stopped && step < end) {
      run.sample = position_.first_sample + sample;
      run.step = position_.first_step + step;
      take_step(sample, run);
      ++step;
      result.steps = std::max(result.steps, step);
      stopped = is_stopped(sample);
      if (stopped) ++result.finished;
    }
  }

  void begin_reductions(std::int64_t samples) {
    reduced_.resize(kernel_.arguments.size());
    for (std::size_t i = 0; i < reduced_.size(); ++i) {
      const Argument& argument = kernel_.arguments[i];
      if (argument.role != Role::reduce) continue;
      reduced_[i].assign(static_cast<std::size_t>(samples),
                         neutral_bits(argument.reduce, argument.type.scalar));
    }
  }

  void end_reductions() {
    for (std::size_t i = 0; i < reduced_.size(); ++i) {
      const Argument& argument = kernel_.arguments[i];
      if (argument.role != Role::reduce || reduced_[i].empty()) continue;
      planes_.store(i, 0, 0, reduce(argument.reduce, argument.type.scalar, reduced_[i]));
    }
  }

  [[nodiscard]] bool is_stopped(std::int64_t sample) const {
    return mask_ >= 0 && planes_.load(static_cast<std::size_t>(mask_), sample, 0) != 0;
  }

  void take_step(std::int64_t sample, Run& run) {
    std::size_t entry = 0;
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i) {
      if (!has_entry_value(kernel_.arguments[i].role)) continue;
      Bits& bits = interpreter_.value(kernel_.body.arguments[entry++]);
      for (std::size_t c = 0; c < bits.size(); ++c) bits[c] = planes_.load(i, sample, c);
    }
    interpreter_.run(run);
    commit(sample, false);
    commit(sample, true);
  }

  // Stores the mask or everything else. The mask is clear at the start of a step, so storing it ORs it.
  void commit(std::int64_t sample, bool mask) {
    std::size_t commit = 0;
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i) {
      const Argument& argument = kernel_.arguments[i];
      if (!is_committed(argument.role)) continue;
      const Bits& bits = interpreter_.value(kernel_.body.yields[commit++]);
      if ((argument.role == Role::terminated) != mask || !accesses_[i].written) continue;
      if (argument.role == Role::reduce) {
        reduced_[i][static_cast<std::size_t>(sample)] = bits[0];
        continue;
      }
      for (std::size_t c = 0; c < bits.size(); ++c) planes_.store(i, sample, c, bits[c]);
    }
  }

  const Kernel& kernel_;
  Planes planes_;
  InterpreterPosition position_;
  std::vector<Access> accesses_;
  int mask_;
  std::vector<Bits> reduced_;  // by argument: the samples' values of this step
  Interpreter interpreter_;
};

}  // namespace

std::vector<Bits> interpret(const Kernel& kernel, std::span<const Bits> entry,
                            std::span<const InterpreterPlane> planes, const InterpreterPosition& position) {
  const FloatEnvironment environment;
  const Planes tables(kernel, planes);
  Interpreter interpreter(kernel, tables);
  for (std::size_t i = 0; i < entry.size(); ++i) interpreter.value(kernel.body.arguments[i]) = entry[i];
  Run run{position.first_sample, position.total_samples, position.first_step};
  interpreter.run(run);
  std::vector<Bits> committed;
  committed.reserve(kernel.body.yields.size());
  for (const ValueId yield : kernel.body.yields) committed.push_back(interpreter.value(yield));
  return committed;
}

InterpreterResult interpret_launch(const Kernel& kernel, std::span<const InterpreterPlane> planes,
                                   std::int64_t samples, std::int64_t max_steps,
                                   const InterpreterPosition& position) {
  const FloatEnvironment environment;
  return Launch(kernel, planes, position).run(samples, max_steps);
}

}  // namespace eagle::kernel
