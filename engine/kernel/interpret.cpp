#include "engine/kernel/interpret.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "engine/kernel/float_environment.h"

namespace eagle::kernel {
namespace {

// ---- bits and numbers ----

template <typename T>
T from_bits(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else if constexpr (sizeof(T) == 8) {
    return std::bit_cast<T>(bits);
  } else {
    return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
  }
}

template <typename T>
std::uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else if constexpr (sizeof(T) == 8) {
    return std::bit_cast<std::uint64_t>(value);
  } else {
    return std::bit_cast<std::uint32_t>(value);
  }
}

// Calls `use` with a zero of the C++ type of a scalar.
template <typename Use>
std::uint64_t with_number(Scalar scalar, Use use) {
  switch (scalar) {
    case Scalar::f64:
      return use(double{});
    case Scalar::f32:
      return use(float{});
    case Scalar::i64:
      return use(std::int64_t{});
    case Scalar::i32:
      return use(std::int32_t{});
    case Scalar::boolean:
      return use(bool{});
  }
  return 0;
}

// ---- operations ----

// Integers wrap: they are computed unsigned, where C++ defines that.
template <typename T, typename Compute>
T wrapping(T a, T b, Compute compute) {
  if constexpr (std::is_floating_point_v<T>) {
    return compute(a, b);
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(compute(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  }
}

template <typename T>
bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

template <typename T>
T absolute(T a) {
  if constexpr (std::is_floating_point_v<T>) return std::fabs(a);
  return a < 0 ? wrapping<T>(0, a, [](auto zero, auto x) { return zero - x; }) : a;
}

template <typename T>
T negated(T a) {
  if constexpr (std::is_floating_point_v<T>) return -a;  // not 0 - a: that would lose the sign of zero
  return wrapping<T>(0, a, [](auto zero, auto x) { return zero - x; });
}

template <typename T>
T arithmetic(Opcode code, T a, T b) {
  switch (code) {
    case Opcode::add:
      return wrapping(a, b, [](auto x, auto y) { return x + y; });
    case Opcode::sub:
      return wrapping(a, b, [](auto x, auto y) { return x - y; });
    case Opcode::mul:
      return wrapping(a, b, [](auto x, auto y) { return x * y; });
    case Opcode::neg:
      return negated(a);
    case Opcode::abs:
      return absolute(a);
    case Opcode::min:
      return b < a ? b : is_nan(a) ? b : a;
    case Opcode::max:
      return b > a ? b : is_nan(a) ? b : a;
    default:
      break;
  }
  if constexpr (std::is_floating_point_v<T>) {
    if (code == Opcode::div) return a / b;
    if (code == Opcode::sqrt) return std::sqrt(a);
  }
  return a;
}

template <typename T>
bool comparison(Opcode code, T a, T b) {
  switch (code) {
    case Opcode::eq:
      return a == b;
    case Opcode::ne:
      return a != b;
    case Opcode::lt:
      return a < b;
    case Opcode::le:
      return a <= b;
    case Opcode::gt:
      return a > b;
    case Opcode::ge:
      return a >= b;
    default:
      return false;
  }
}

bool logic(Opcode code, bool a, bool b) {
  switch (code) {
    case Opcode::logical_and:
      return a && b;
    case Opcode::logical_or:
      return a || b;
    case Opcode::logical_xor:
      return a != b;
    case Opcode::logical_not:
      return !a;
    default:
      return false;
  }
}

// Truncates; what is out of range becomes the nearest end of it, NaN becomes 0.
template <typename Integer>
Integer saturated(double value) {
  using Range = std::numeric_limits<Integer>;
  const double end = -static_cast<double>(Range::min());  // one above the greatest, exact as a double
  if (std::isnan(value)) return 0;
  if (value >= end) return Range::max();
  if (value <= -end) return Range::min();
  return static_cast<Integer>(value);
}

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::is_same_v<To, bool>) {
    return value != From{};  // true for NaN
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return saturated<To>(value);
  } else {
    return static_cast<To>(value);  // rounds to nearest, or keeps the low bits of an integer
  }
}

std::uint64_t apply(Opcode code, Scalar scalar, Scalar to, std::uint64_t a, std::uint64_t b) {
  switch (code) {
    case Opcode::convert:
      return with_number(scalar, [&](auto from_zero) {
        return with_number(to, [&](auto to_zero) {
          return to_bits(converted<decltype(to_zero)>(from_bits<decltype(from_zero)>(a)));
        });
      });
    case Opcode::logical_and:
    case Opcode::logical_or:
    case Opcode::logical_xor:
    case Opcode::logical_not:
      return to_bits(logic(code, from_bits<bool>(a), from_bits<bool>(b)));
    case Opcode::eq:
    case Opcode::ne:
    case Opcode::lt:
    case Opcode::le:
    case Opcode::gt:
    case Opcode::ge:
      return with_number(scalar, [&](auto zero) {
        using T = decltype(zero);
        return to_bits(comparison(code, from_bits<T>(a), from_bits<T>(b)));
      });
    default:
      return with_number(scalar, [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_same_v<T, bool>)
          return std::uint64_t{0};  // no arithmetic on bool verifies
        else
          return to_bits(arithmetic(code, from_bits<T>(a), from_bits<T>(b)));
      });
  }
}

// ---- the body ----

class Interpreter {
public:
  explicit Interpreter(const Kernel& kernel) : kernel_(kernel) {
    values_.reserve(kernel.value_types.size());
    for (const Type& type : kernel.value_types) values_.emplace_back(type.components());
  }

  // The bits of an entry value, to be set before `run`, or of any value after it.
  Bits& value(ValueId id) { return values_[id]; }
  void run() { run(kernel_.body); }

private:
  void run(const Region& region) {
    for (const Op& op : region.ops) run(op);
  }

  void run(const Op& op) {
    switch (op.code) {
      case Opcode::constant:
        values_[op.results[0]][0] = op.bits;
        return;
      case Opcode::select: {
        const bool first = values_[op.operands[0]][0] != 0;
        values_[op.results[0]] = values_[op.operands[first ? 1 : 2]];
        return;
      }
      case Opcode::if_: {
        const Region& taken = op.regions[values_[op.operands[0]][0] != 0 ? 0 : 1];
        run(taken);
        for (std::size_t i = 0; i < op.results.size(); ++i) values_[op.results[i]] = values_[taken.yields[i]];
        return;
      }
      default:
        run_elementwise(op);
    }
  }

  void run_elementwise(const Op& op) {
    const ValueId result = op.results[0];
    const Bits& a = values_[op.operands.front()];
    const Bits& b = values_[op.operands.back()];  // `a` again where there is one operand
    const Scalar scalar = kernel_.value_types[op.operands[0]].scalar;
    const Scalar to = kernel_.value_types[result].scalar;
    for (std::size_t i = 0; i < values_[result].size(); ++i)
      values_[result][i] = apply(op.code, scalar, to, a[i], b[i]);
  }

  const Kernel& kernel_;
  std::vector<Bits> values_;  // by ValueId
};

// ---- planes ----

class Launch {
public:
  Launch(const Kernel& kernel, std::span<const InterpreterPlane> planes)
      : kernel_(kernel),
        planes_(planes),
        accesses_(accesses(kernel)),
        mask_(kernel.terminated_argument()),
        interpreter_(kernel) {}

  InterpreterResult run(std::int64_t samples, std::int64_t max_steps) {
    InterpreterResult result;
    for (std::int64_t sample = 0; sample < samples; ++sample) {
      std::int64_t step = 0;
      bool stopped = is_stopped(sample);
      while (!stopped && step < max_steps) {
        take_step(sample);
        ++step;
        stopped = is_stopped(sample);
        if (stopped) ++result.finished;
      }
      result.steps = std::max(result.steps, step);
    }
    return result;
  }

private:
  [[nodiscard]] std::byte* address(std::size_t argument, std::int64_t sample, std::size_t component) const {
    const InterpreterPlane& plane = planes_[argument];
    const Argument& declared = kernel_.arguments[argument];
    if (declared.role == Role::param) return plane.data;
    return plane.data + static_cast<std::int64_t>(component) * plane.component_stride +
           sample * bytes_of(declared.type.scalar);
  }

  [[nodiscard]] std::uint64_t load(std::size_t argument, std::int64_t sample, std::size_t component) const {
    const Scalar scalar = kernel_.arguments[argument].type.scalar;
    std::uint64_t bits = 0;
    static_assert(std::endian::native == std::endian::little);
    std::memcpy(&bits, address(argument, sample, component), static_cast<std::size_t>(bytes_of(scalar)));
    return scalar == Scalar::boolean ? static_cast<std::uint64_t>(bits != 0) : bits;
  }

  [[nodiscard]] bool is_stopped(std::int64_t sample) const {
    return mask_ >= 0 && load(static_cast<std::size_t>(mask_), sample, 0) != 0;
  }

  void take_step(std::int64_t sample) {
    std::size_t entry = 0;
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i) {
      if (!has_entry_value(kernel_.arguments[i].role)) continue;
      Bits& bits = interpreter_.value(kernel_.body.arguments[entry++]);
      for (std::size_t c = 0; c < bits.size(); ++c) bits[c] = load(i, sample, c);
    }
    interpreter_.run();
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
      const auto bytes = static_cast<std::size_t>(bytes_of(argument.type.scalar));
      for (std::size_t c = 0; c < bits.size(); ++c) std::memcpy(address(i, sample, c), &bits[c], bytes);
    }
  }

  const Kernel& kernel_;
  std::span<const InterpreterPlane> planes_;
  std::vector<Access> accesses_;
  int mask_;
  Interpreter interpreter_;
};

}  // namespace

std::vector<Bits> interpret(const Kernel& kernel, std::span<const Bits> entry) {
  const FloatEnvironment environment;
  Interpreter interpreter(kernel);
  for (std::size_t i = 0; i < entry.size(); ++i) interpreter.value(kernel.body.arguments[i]) = entry[i];
  interpreter.run();
  std::vector<Bits> committed;
  committed.reserve(kernel.body.yields.size());
  for (const ValueId yield : kernel.body.yields) committed.push_back(interpreter.value(yield));
  return committed;
}

InterpreterResult interpret_launch(const Kernel& kernel, std::span<const InterpreterPlane> planes,
                                   std::int64_t samples, std::int64_t max_steps) {
  const FloatEnvironment environment;
  return Launch(kernel, planes).run(samples, max_steps);
}

}  // namespace eagle::kernel
