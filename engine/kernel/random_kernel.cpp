#include "engine/kernel/random_kernel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/scalar_math.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

template <typename Real>
Real random_real(Random& random) {
  using Range = std::numeric_limits<Real>;
  constexpr std::array special = {Real(0),
                                  -Real(0),
                                  Real(1),
                                  Real(-1),
                                  Real(0.5),
                                  Range::max(),
                                  Range::lowest(),
                                  Range::min(),
                                  Range::denorm_min(),
                                  -Range::denorm_min(),
                                  Range::infinity(),
                                  -Range::infinity(),
                                  Range::quiet_NaN(),
                                  Real(9223372036854775808.0),
                                  Real(-9223372036854775808.0),
                                  Real(2147483648.0)};
  if (random.chance(20)) return special[random.below(special.size())];
  const Real unit = static_cast<Real>(random.below(1u << 20)) / Real(1u << 20);
  if (random.chance(20)) return (unit - Real(0.5)) * Real(1e30);
  return (unit - Real(0.5)) * Real(8);
}

template <typename Integer>
Integer random_integer(Random& random) {
  using Range = std::numeric_limits<Integer>;
  if (random.chance(20)) return random.chance(50) ? Range::max() : Range::min();
  if (random.chance(20)) return static_cast<Integer>(random.next());
  return static_cast<Integer>(random.below(17)) - 8;
}

class Generator {
public:
  Generator(std::uint64_t seed, const RandomKernelOptions& options) : random_(seed), options_(options) {}

  Kernel make(std::uint64_t seed) {
    kernel_.name = "random_" + std::to_string(seed);
    kernel_.real = random_.chance(70) ? Scalar::f64 : Scalar::f32;
    kernel_.source_files = {"random.py"};
    make_arguments();
    budget_ = options_.ops;
    fill(kernel_.body, 0);
    make_outputs();
    make_reductions();
    yield_commits();

    v1::Kernel message;
    to_message(kernel_, message);
    StatusOr<Kernel> verified = verify(message);
    if (!verified.ok()) {  // a fault of the generator, not of the code under test
      std::fprintf(stderr, "random_kernel(%llu): %s\n", static_cast<unsigned long long>(seed),
                   verified.status().to_string().c_str());
      std::abort();
    }
    return std::move(verified).value();
  }

private:
  std::uint64_t between(int low, int high) {
    return static_cast<std::uint64_t>(low) +
           random_.below(static_cast<std::uint64_t>(std::max(high - low, 0)) + 1);
  }

  Type storable_type() {
    constexpr std::array<std::uint8_t, 6> ranks = {0, 0, 0, 0, 1, 2};
    Type type;
    type.scalar = random_.chance(70) ? kernel_.real : random_.chance(50) ? Scalar::i64 : Scalar::boolean;
    type.rank = ranks[random_.below(ranks.size())];
    for (std::size_t i = 0; i < type.rank; ++i)
      type.extents[i] = static_cast<std::uint16_t>(between(1, options_.extent));
    return type;
  }

  Type accumulated_type() {
    Type type = storable_type();
    if (type.scalar == Scalar::boolean) type.scalar = Scalar::i64;
    return type;
  }

  void make_arguments() {
    constexpr std::array choices = {Role::read, Role::mutable_, Role::param};
    const std::uint64_t count = between(2, options_.arguments);
    for (std::uint64_t i = 0; i < count; ++i) {
      const Role role = i == 0 ? Role::read : choices[random_.below(choices.size())];
      Type type = storable_type();
      if (role == Role::param) type = Type{type.scalar};
      add_argument(role, type);
    }
    while (random_.chance(40)) add_argument(Role::table, storable_type());
    if (random_.chance(options_.shared)) {
      do add_argument(Role::accum, accumulated_type());
      while (random_.chance(40));
    }
    if (random_.chance(options_.terminated)) add_argument(Role::terminated, Type{Scalar::boolean});
    // Entry values in argument order, wherever the mask went.
    for (const Argument& argument : kernel_.arguments) {
      if (has_entry_value(argument.role)) kernel_.body.arguments.push_back(define(argument.type));
    }
  }

  // At a random place: argument order must not matter.
  std::size_t add_argument(Role role, Type type) {
    const auto place = static_cast<std::ptrdiff_t>(random_.below(kernel_.arguments.size() + 1));
    const std::string name =
        std::string(name_of(role)).substr(0, 1) + std::to_string(kernel_.arguments.size());
    Argument argument{name, role, type, {}, ReduceOp::sum};
    if (is_indexed(role) && random_.chance(60)) argument.axes = axes();
    kernel_.arguments.insert(kernel_.arguments.begin() + place, std::move(argument));
    make_room(kernel_.body, static_cast<std::uint32_t>(place));
    return static_cast<std::size_t>(place);
  }

  // Tables and accumulators from `place` on have moved up by one argument.
  static void make_room(Region& region, std::uint32_t place) {
    for (Op& op : region.ops) {
      if (rule_of(op.code).names_argument() && op.argument >= place) ++op.argument;
      for (Region& nested : op.regions) make_room(nested, place);
    }
  }

  std::vector<Axis> axes() {
    std::vector<Axis> axes(between(1, 3));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      axes[i] = {"axis" + std::to_string(i), static_cast<std::uint32_t>(between(1, options_.extent))};
    }
    return axes;
  }

  // Outputs have no entry value, so they may be decided once it is known which types there are.
  void make_outputs() {
    const std::uint64_t count = between(1, options_.outputs);
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto value = pick([&](const Type& type) {
        return type.scalar == kernel_.real || type.scalar == Scalar::i64 || type.scalar == Scalar::boolean;
      });
      if (value) add_argument(Role::output, kernel_.value_types[*value]);
    }
  }

  // Their order must not be what decides about a value, so they come last.
  void make_reductions() {
    constexpr std::array ops = {ReduceOp::sum, ReduceOp::max, ReduceOp::min};
    while (random_.chance(options_.shared)) {
      const auto value = pick([&](const Type& type) {
        return type.rank == 0 &&
               (type.scalar == kernel_.real || type.scalar == Scalar::i64 || type.scalar == Scalar::boolean);
      });
      if (!value) return;
      const Type type = kernel_.value_types[*value];
      const std::size_t place = add_argument(Role::reduce, type);
      kernel_.arguments[place].reduce = type.scalar != Scalar::boolean ? ops[random_.below(ops.size())]
                                        : random_.chance(50)           ? ReduceOp::all
                                                                       : ReduceOp::any;
    }
  }

  void yield_commits() {
    for (const Argument& argument : kernel_.arguments) {
      if (is_committed(argument.role)) kernel_.body.yields.push_back(*pick_type(argument.type));
    }
  }

  ValueId define(const Type& type) {
    const auto id = static_cast<ValueId>(kernel_.value_types.size());
    kernel_.value_types.push_back(type);
    visible_.push_back(id);
    return id;
  }

  // A visible value whose type satisfies `wanted`; later ones more often, so that ops build on each other.
  template <typename Wanted>
  std::optional<ValueId> pick(Wanted wanted) {
    std::vector<ValueId> found;
    for (const ValueId id : visible_) {
      if (wanted(kernel_.value_types[id])) found.push_back(id);
    }
    if (found.empty()) return std::nullopt;
    return found[std::max(random_.below(found.size()), random_.below(found.size()))];
  }
  std::optional<ValueId> pick_type(const Type& type) {
    return pick([&](const Type& other) { return other == type; });
  }

  ValueId push(Region& region, Op op, const Type& type) {
    op.results = {define(type)};
    if (random_.chance(30)) op.location = {0, static_cast<std::uint32_t>(between(1, 99)), 1};
    region.ops.push_back(std::move(op));
    return region.ops.back().results[0];
  }

  ValueId constant(Region& region, Scalar scalar) {
    Op op;
    op.code = Opcode::constant;
    op.bits = random_bits(scalar, random_);
    return push(region, std::move(op), Type{scalar});
  }

  ValueId boolean(Region& region) {
    const auto value = pick_type(Type{Scalar::boolean});
    return value ? *value : constant(region, Scalar::boolean);
  }

  Scalar any_scalar() {
    constexpr std::array all = {Scalar::f64, Scalar::f32, Scalar::i64, Scalar::i32, Scalar::boolean};
    return all[random_.below(all.size())];
  }

  ValueId integer(Region& region) {
    const auto value = pick_type(Type{Scalar::i64});
    return value ? *value : constant(region, Scalar::i64);
  }

  ValueId small_integer(Region& region, std::uint64_t value) {
    Op op;
    op.code = Opcode::constant;
    op.bits = value;
    return push(region, std::move(op), Type{Scalar::i64});
  }

  ValueId binary(Region& region, Opcode code, ValueId a, ValueId b, Scalar result) {
    Op op;
    op.code = code;
    op.operands = {a, b};
    return push(region, std::move(op), Type{result});
  }

  void fill(Region& region, int depth) {
    const std::uint64_t count = between(1, budget_);
    for (std::uint64_t i = 0; i < count && budget_ > 0; ++i) {
      --budget_;
      const Rule& rule = any_rule();
      if (rule.has_regions() && depth >= options_.depth) continue;
      append(region, rule, depth);
    }
  }

  // Functions of reals are half of all rules and much alike: three of ten times it is one of them.
  const Rule& any_rule() {
    const bool function = random_.chance(30);
    while (true) {
      const Rule& rule = rules()[random_.below(rules().size())];
      if (is_math(rule.code) == function) return rule;
    }
  }

  void append(Region& region, const Rule& rule, int depth) {
    switch (rule.typing) {
      case Typing::constant:
        constant(region, any_scalar());
        return;
      case Typing::branch:
        return branch(region, depth);
      case Typing::loop:
        return loop(region, depth);
      case Typing::selection:
        return selection(region, depth);
      case Typing::lookup:
        return lookup(region);
      case Typing::addition:
        return addition(region);
      case Typing::extent:
        return length(region);
      case Typing::primitive:
        return primitive(region, depth);
      case Typing::composition:
        return composition(region);
      case Typing::component:
        return component(region);
      default:
        return plain(region, rule);
    }
  }

  void plain(Region& region, const Rule& rule) {
    Op op;
    op.code = rule.code;
    Stated stated;
    if (rule.typing == Typing::choice) op.operands.push_back(boolean(region));
    if (rule.operands > 0) {
      const auto first = pick([&](const Type& type) { return fits(rule, type); });
      if (!first) return;
      stated.type = kernel_.value_types[*first];
      op.operands.push_back(*first);
      while (op.operands.size() < static_cast<std::size_t>(rule.operands))
        op.operands.push_back(*pick_type(stated.type));
    }
    stated.type.scalar = any_scalar();
    std::vector<Type> types;
    for (const ValueId operand : op.operands) types.push_back(kernel_.value_types[operand]);
    push(region, std::move(op), std::get<Type>(result_type(rule, types, stated)));
  }

  // Whether values of this type are operands of the rule (the condition of a select aside).
  static bool fits(const Rule& rule, const Type& type) {
    std::vector<Type> operands(static_cast<std::size_t>(rule.operands), type);
    if (rule.typing == Typing::choice) operands[0] = Type{Scalar::boolean};
    Stated stated;
    stated.type = type;
    return std::holds_alternative<Type>(result_type(rule, operands, stated));
  }

  // One of the arguments of a role.
  std::optional<std::uint32_t> any_argument(Role role) {
    std::vector<std::uint32_t> found;
    for (std::size_t i = 0; i < kernel_.arguments.size(); ++i) {
      if (kernel_.arguments[i].role == role) found.push_back(static_cast<std::uint32_t>(i));
    }
    if (found.empty()) return std::nullopt;
    return found[random_.below(found.size())];
  }

  void addition(Region& region) {
    if (isolated_) return;
    const auto accumulator = any_argument(Role::accum);
    if (!accumulator) return;
    const auto value = pick_type(kernel_.arguments[*accumulator].type);
    if (!value) return;
    Op op;
    op.code = Opcode::accum_add;
    op.argument = *accumulator;
    op.operands = {*value};
    const std::size_t axes = kernel_.arguments[*accumulator].axes.size();
    while (op.operands.size() < 1 + std::max<std::size_t>(axes, 1)) op.operands.push_back(integer(region));
    if (random_.chance(30)) op.location = {0, static_cast<std::uint32_t>(between(1, 99)), 1};
    region.ops.push_back(std::move(op));
  }

  // Everyday integers are often outside a table, on either side.
  void lookup(Region& region) {
    if (isolated_) return;
    const auto looked_up = any_argument(Role::table);
    if (!looked_up) return;
    Op op;
    op.code = Opcode::gather;
    op.argument = *looked_up;
    const Argument& table = kernel_.arguments[op.argument];
    const std::size_t indices = std::max<std::size_t>(table.axes.size(), 1);
    while (op.operands.size() < indices) op.operands.push_back(integer(region));
    push(region, std::move(op), table.type);
  }

  // A primitive without rules; what is inside sees nothing of what is outside.
  void primitive(Region& region, int depth) {
    Op op;
    op.code = Opcode::primitive;
    op.regions.resize(3);
    for (std::uint64_t more = between(1, 3); more > 0; --more)
      op.operands.push_back(visible_[random_.below(visible_.size())]);
    std::vector<ValueId> outside = std::exchange(visible_, {});
    const bool before = std::exchange(isolated_, true);
    for (const ValueId operand : op.operands)
      op.regions[0].arguments.push_back(define(kernel_.value_types[operand]));
    fill(op.regions[0], depth + 1);
    const std::vector<Type> types = visible_types(between(1, 2));
    for (const Type& type : types) op.regions[0].yields.push_back(*pick_type(type));
    isolated_ = before;
    visible_ = std::move(outside);
    finish(region, std::move(op), types);
  }

  void length(Region& region) {
    if (isolated_) return;
    std::vector<std::uint32_t> indexed;
    for (std::uint32_t a = 0; a < kernel_.arguments.size(); ++a) {
      if (is_indexed(kernel_.arguments[a].role)) indexed.push_back(a);
    }
    if (indexed.empty()) return;
    Op op;
    op.code = Opcode::length;
    op.argument = indexed[random_.below(indexed.size())];
    push(region, std::move(op), Type{Scalar::i64});
  }

  void composition(Region& region) {
    const auto first = pick([](const Type& type) { return type.rank == 0; });
    if (!first) return;
    Type type;
    type.scalar = kernel_.value_types[*first].scalar;
    type.rank = static_cast<std::uint8_t>(between(1, 2));
    for (std::size_t i = 0; i < type.rank; ++i)
      type.extents[i] = static_cast<std::uint16_t>(between(1, options_.extent));
    Op op;
    op.code = Opcode::compose;
    while (op.operands.size() < static_cast<std::size_t>(type.components()))
      op.operands.push_back(*pick_type(Type{type.scalar}));
    push(region, std::move(op), type);
  }

  void component(Region& region) {
    const auto whole = pick([](const Type& type) { return type.rank != 0; });
    if (!whole) return;
    const Type type = kernel_.value_types[*whole];
    Op op;
    op.code = Opcode::extract;
    op.operands = {*whole};
    op.component = static_cast<std::uint32_t>(between(0, type.components() - 1));
    push(region, std::move(op), Type{type.scalar});
  }

  // Types that are there to be yielded.
  std::vector<Type> visible_types(std::uint64_t count) {
    std::vector<Type> types;
    while (types.size() < count)
      types.push_back(kernel_.value_types[visible_[random_.below(visible_.size())]]);
    return types;
  }

  // A region that yields a value of each type; what it defines is not visible afterwards.
  void yielding(Region& region, const std::vector<Type>& types, int depth) {
    const std::size_t outside = visible_.size();
    fill(region, depth);
    for (const Type& type : types) region.yields.push_back(*pick_type(type));
    visible_.resize(outside);
  }

  void finish(Region& region, Op op, const std::vector<Type>& types) {
    for (const Type& type : types) op.results.push_back(define(type));
    if (random_.chance(30)) op.location = {0, static_cast<std::uint32_t>(between(1, 99)), 1};
    region.ops.push_back(std::move(op));
  }

  void branch(Region& region, int depth) {
    Op op;
    op.code = Opcode::if_;
    op.operands = {boolean(region)};
    const std::vector<Type> types = visible_types(random_.below(4));
    op.regions.resize(2);
    for (Region& side : op.regions) yielding(side, types, depth + 1);
    finish(region, std::move(op), types);
  }

  void selection(Region& region, int depth) {
    constexpr std::array policies = {DispatchPolicy::automatic, DispatchPolicy::switch_,
                                     DispatchPolicy::segmented, DispatchPolicy::predicated};
    Op op;
    op.code = Opcode::switch_;
    op.regions.resize(between(1, options_.cases));
    ValueId selector = integer(region);
    if (random_.chance(60)) {  // or most samples would take the first case or the last
      selector =
          binary(region, Opcode::modulo, selector, small_integer(region, op.regions.size()), Scalar::i64);
    }
    op.operands = {selector};
    if (random_.chance(30)) op.dispatch = Dispatch{"group", policies[random_.below(policies.size())]};
    const std::vector<Type> types = visible_types(random_.below(4));
    for (Region& side : op.regions) yielding(side, types, depth + 1);
    finish(region, std::move(op), types);
  }

  // Mostly a count up to some value of the kernel, which ends at another trip in each sample; now and then
  // any condition at all. `max_trips` is small enough to end many of either kind.
  void loop(Region& region, int depth) {
    const ValueId bound = integer(region);
    Op op;
    op.code = Opcode::while_;
    op.max_trips = between(1, options_.max_trips);
    op.operands = {small_integer(region, 0)};
    for (std::uint64_t more = random_.below(4); more > 0; --more)
      op.operands.push_back(visible_[random_.below(visible_.size())]);
    std::vector<Type> types;
    for (const ValueId operand : op.operands) types.push_back(kernel_.value_types[operand]);
    op.regions.resize(2);
    const std::size_t outside = visible_.size();
    condition(op.regions[0], types, bound, depth);
    visible_.resize(outside);
    loop_body(op.regions[1], types, depth);
    visible_.resize(outside);
    finish(region, std::move(op), types);
  }

  void carry(Region& region, const std::vector<Type>& types) {
    for (const Type& type : types) region.arguments.push_back(define(type));
  }

  void condition(Region& region, const std::vector<Type>& types, ValueId bound, int depth) {
    carry(region, types);
    if (random_.chance(50)) fill(region, depth + 1);
    if (random_.chance(25)) {
      region.yields = {boolean(region)};
      return;
    }
    ValueId holds = binary(region, Opcode::lt, region.arguments[0], bound, Scalar::boolean);
    if (random_.chance(25))
      holds = binary(region, Opcode::logical_and, holds, boolean(region), Scalar::boolean);
    region.yields = {holds};
  }

  void loop_body(Region& region, const std::vector<Type>& types, int depth) {
    carry(region, types);
    const ValueId count = region.arguments[0];
    fill(region, depth + 1);
    region.yields.push_back(binary(region, Opcode::add, count, small_integer(region, 1), Scalar::i64));
    for (std::size_t i = 1; i < types.size(); ++i) region.yields.push_back(*pick_type(types[i]));
  }

  Random random_;
  const RandomKernelOptions& options_;
  Kernel kernel_;
  std::vector<ValueId> visible_;
  int budget_ = 0;
  bool isolated_ = false;  // inside of a primitive
};

void forget_locations(Region& region) {
  for (Op& op : region.ops) {
    op.location = {};
    for (Region& nested : op.regions) forget_locations(nested);
  }
}

}  // namespace

std::uint64_t Random::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::uint64_t Random::below(std::uint64_t bound) { return next() % bound; }

std::uint64_t random_bits(Scalar scalar, Random& random) {
  switch (scalar) {
    case Scalar::f64:
      return std::bit_cast<std::uint64_t>(random_real<double>(random));
    case Scalar::f32:
      return std::bit_cast<std::uint32_t>(random_real<float>(random));
    case Scalar::i64:
      return static_cast<std::uint64_t>(random_integer<std::int64_t>(random));
    case Scalar::i32:
      return static_cast<std::uint32_t>(random_integer<std::int32_t>(random));
    case Scalar::boolean:
      return random.below(2);
  }
  return 0;
}

Kernel random_kernel(std::uint64_t seed, const RandomKernelOptions& options) {
  return Generator(seed, options).make(seed);
}

Kernel without_locations(Kernel kernel) {
  kernel.source_files.clear();
  forget_locations(kernel.body);
  return kernel;
}

}  // namespace eagle::kernel
