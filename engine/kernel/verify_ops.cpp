// Regions and ops: the part of the verifier that walks the body.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verifier.h"

namespace eagle::kernel {
namespace {

// The constant that is set, or none where the message holds none.
struct ConstantBits {
  Scalar scalar;
  std::uint64_t bits;
};
std::optional<ConstantBits> bits_of(const v1::Constant& constant) {
  switch (constant.value_case()) {
    case v1::Constant::kF64: {
      const double value = constant.f64();
      return ConstantBits{Scalar::f64,
                          std::isnan(value) ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(value)};
    }
    case v1::Constant::kF32: {
      const float value = constant.f32();
      return ConstantBits{Scalar::f32, std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value)};
    }
    case v1::Constant::kI64:
      return ConstantBits{Scalar::i64, static_cast<std::uint64_t>(constant.i64())};
    case v1::Constant::kI32:
      return ConstantBits{Scalar::i32, static_cast<std::uint32_t>(constant.i32())};
    case v1::Constant::kBoolean:
      return ConstantBits{Scalar::boolean, constant.boolean() ? 1u : 0u};
    case v1::Constant::VALUE_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

std::optional<DispatchPolicy> policy_of(v1::DispatchPolicy policy) {
  switch (policy) {
    case v1::DISPATCH_AUTO:
      return DispatchPolicy::automatic;
    case v1::DISPATCH_SWITCH:
      return DispatchPolicy::switch_;
    case v1::DISPATCH_SEGMENTED:
      return DispatchPolicy::segmented;
    case v1::DISPATCH_PREDICATED:
      return DispatchPolicy::predicated;
    default:
      return std::nullopt;
  }
}

std::span<const std::uint32_t> span_of(const google::protobuf::RepeatedField<std::uint32_t>& numbers) {
  return {numbers.data(), static_cast<std::size_t>(numbers.size())};
}

}  // namespace

// The region is already open and its entry values, if it has any, are defined.
Status Verifier::read_region(const v1::Region& message, std::uint32_t depth, const Path& path,
                             Region& region) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  EAGLE_RETURN_IF_ERROR(count_ops(static_cast<std::uint64_t>(message.ops_size()), path));
  region.ops.resize(static_cast<std::size_t>(message.ops_size()));
  for (int i = 0; i < message.ops_size(); ++i) {
    const Path op_path{&path, "ops", i, &message.ops(i)};
    EAGLE_RETURN_IF_ERROR(read_op(message.ops(i), depth, op_path, region.ops[static_cast<std::size_t>(i)]));
  }
  return read_values(span_of(message.yields()), "yields", path, region.yields);
}

Status Verifier::read_op(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  const Rule* rule = find_rule(message.code());
  if (rule == nullptr) {
    return malformed(Path{&path, "code"}, "expected an opcode, found " + found_number(message.code()));
  }
  op.code = rule->code;
  EAGLE_RETURN_IF_ERROR(check_fields(message, *rule, path));
  EAGLE_RETURN_IF_ERROR(read_location(message.location(), Path{&path, "location"}, op.location));
  EAGLE_RETURN_IF_ERROR(read_values(span_of(message.operands()), "operands", path, op.operands));
  EAGLE_RETURN_IF_ERROR(read_attributes(message, *rule, path, op));

  Stated stated;
  stated.component = op.component;
  if (rule->states_type()) {
    EAGLE_RETURN_IF_ERROR(read_type(message.type(), Path{&path, "type"}, stated.type));
  }
  if (rule->names_argument()) stated.table = &kernel_.arguments[op.argument];
  const auto typed = result_type(*rule, types_of(op.operands), stated);
  if (const auto* fault = std::get_if<TypeFault>(&typed)) {
    const std::string text = std::string(rule->name) + ": " + fault->message;
    if (fault->operand < 0) return malformed(path, text);
    return malformed(Path{&path, "operands", fault->operand}, text);
  }
  if (rule->has_regions()) return read_structure(message, *rule, depth, path, op);
  // A compiler works on components: an op on vectors of 64 is as much work for it as 64 ops.
  const Type& worked_on =
      rule->has_result() ? std::get<Type>(typed) : kernel_.value_types[op.operands.front()];
  scalar_ops_ += static_cast<std::uint32_t>(worked_on.components());
  if (scalar_ops_ > limits_.scalar_ops) {
    return over_limit(path, "ops on components", scalar_ops_, limits_.scalar_ops, "kernel_scalar_ops");
  }
  // Two blocks of the generator, of ten rounds each.
  if (rule->typing == Typing::random) EAGLE_RETURN_IF_ERROR(count_ops(31, path));
  if (rule->typing == Typing::constant) {
    EAGLE_RETURN_IF_ERROR(read_constant(message, stated.type, path, op));
  }
  if (rule->has_result()) op.results.push_back(define(std::get<Type>(typed)));
  return {};
}

// A field that does not belong to the opcode would be ignored, so it is refused instead.
Status Verifier::check_fields(const v1::Op& message, const Rule& rule, const Path& path) {
  enum class Belongs { no, may, must };
  const auto check = [&](std::string_view field, bool present, Belongs belongs) -> Status {
    if (present ? belongs != Belongs::no : belongs != Belongs::must) return {};
    return malformed(Path{&path, field},
                     std::string(rule.name) + ": expected " +
                         (present ? "nothing here, found a value" : "this field, found nothing"));
  };
  const auto only = [&](Typing typing, Belongs belongs) {
    return rule.typing == typing ? belongs : Belongs::no;
  };
  const Belongs type = rule.states_type() ? Belongs::must : Belongs::no;
  EAGLE_RETURN_IF_ERROR(check("constant", message.has_constant(), only(Typing::constant, Belongs::must)));
  EAGLE_RETURN_IF_ERROR(check("type", message.has_type(), type));
  // Numbers have no presence on the wire: 0 is the same as nothing.
  const Belongs argument = rule.names_argument() ? Belongs::may : Belongs::no;
  EAGLE_RETURN_IF_ERROR(check("argument", message.argument() != 0, argument));
  EAGLE_RETURN_IF_ERROR(check("max_trips", message.max_trips() != 0, only(Typing::loop, Belongs::may)));
  EAGLE_RETURN_IF_ERROR(check("component", message.component() != 0, only(Typing::component, Belongs::may)));
  EAGLE_RETURN_IF_ERROR(check("dispatch", message.has_dispatch(), only(Typing::selection, Belongs::may)));
  return check_region_count(message, rule, path);
}

Status Verifier::check_region_count(const v1::Op& message, const Rule& rule, const Path& path) {
  const int found = message.regions_size();
  const Path regions_path{&path, "regions"};
  if (rule.typing == Typing::selection) {
    if (found == 0) return malformed(regions_path, "switch: expected at least 1 region, found 0");
    if (static_cast<std::uint32_t>(found) <= limits_.switch_regions) return {};
    return over_limit(regions_path, "regions of a switch", static_cast<std::uint64_t>(found),
                      limits_.switch_regions, "kernel_switch_regions");
  }
  if (found == rule.least_regions()) return {};
  return malformed(regions_path, std::string(rule.name) + ": expected " +
                                     std::to_string(rule.least_regions()) + " regions, found " +
                                     std::to_string(found));
}

// What the op says beside operands, regions and a type.
Status Verifier::read_attributes(const v1::Op& message, const Rule& rule, const Path& path, Op& op) {
  op.component = message.component();
  op.max_trips = message.max_trips();
  if (rule.typing == Typing::loop && op.max_trips == 0) {
    return malformed(Path{&path, "max_trips"}, "while: expected at least 1, found 0");
  }
  if (op.max_trips > limits_.loop_trips) {
    return over_limit(Path{&path, "max_trips"}, "trips of a loop", op.max_trips, limits_.loop_trips,
                      "kernel_loop_trips");
  }
  if (rule.names_argument()) EAGLE_RETURN_IF_ERROR(read_table(message, rule, path, op));
  if (message.has_dispatch()) {
    EAGLE_RETURN_IF_ERROR(read_dispatch(message.dispatch(), Path{&path, "dispatch"}, op));
  }
  return {};
}

Status Verifier::read_constant(const v1::Op& message, const Type& type, const Path& path, Op& op) {
  const Path constant_path{&path, "constant"};
  EAGLE_RETURN_IF_ERROR(check_known(message.constant(), constant_path));
  const auto constant = bits_of(message.constant());
  if (constant && constant->scalar == type.scalar) {
    op.bits = constant->bits;
    return {};
  }
  return malformed(constant_path, "expected a value of " + to_string(type) + " (the type in `type`), found " +
                                      (constant ? std::string(name_of(constant->scalar)) : "none"));
}

Status Verifier::read_table(const v1::Op& message, const Rule& rule, const Path& path, Op& op) {
  const std::string name(rule.name);
  const Path argument_path{&path, "argument"};
  if (first_visible_ != 0) {
    return malformed(argument_path,
                     name +
                         ": a primitive sees no tables and accumulators, whose derivatives would be "
                         "lost; look them up outside and pass what was found");
  }
  op.argument = message.argument();
  if (op.argument >= kernel_.arguments.size()) {
    return malformed(argument_path, name + ": expected an index below " +
                                        std::to_string(kernel_.arguments.size()) +
                                        " (the number of arguments), found " + std::to_string(op.argument));
  }
  const Argument& argument = kernel_.arguments[op.argument];
  const Role expected = rule.typing == Typing::addition ? Role::accum : Role::table;
  const bool either = rule.typing == Typing::extent && argument.role == Role::accum;
  if (argument.role != expected && !either) {
    return malformed(argument_path, name + ": expected " +
                                        (expected == Role::table ? "a table" : "an accum") +
                                        " argument, found argument " + std::to_string(op.argument) + ", a " +
                                        std::string(name_of(argument.role)) + " one");
  }
  if (rule.typing == Typing::extent) return {};
  // Each axis is looked at and multiplied in.
  const std::size_t axes = std::max<std::size_t>(argument.axes.size(), 1);
  return count_ops(axes - 1, path);
}

Status Verifier::read_dispatch(const v1::Dispatch& message, const Path& path, Op& op) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  EAGLE_RETURN_IF_ERROR(check_name(message.name(), Path{&path, "name"}));
  const auto policy = policy_of(message.policy());
  if (!policy) {
    return malformed(Path{&path, "policy"},
                     "expected a dispatch policy, found " + found_number(message.policy()));
  }
  op.dispatch = Dispatch{message.name(), *policy};
  return {};
}

Status Verifier::read_structure(const v1::Op& message, const Rule& rule, std::uint32_t depth,
                                const Path& path, Op& op) {
  if (depth + 1 > limits_.depth) {
    return over_limit(path, "levels of nested regions", depth + 1, limits_.depth, "kernel_depth");
  }
  if (rule.typing == Typing::primitive) return read_primitive(message, depth, path, op);
  std::vector<Type> carried;
  if (rule.typing == Typing::loop) carried = types_of(op.operands);
  const std::uint32_t enclosing = current_region_;
  op.regions.resize(static_cast<std::size_t>(message.regions_size()));
  for (int i = 0; i < message.regions_size(); ++i) {
    current_region_ = static_cast<std::uint32_t>(region_open_.size());
    region_open_.push_back(true);
    const Path region_path{&path, "regions", i};
    Region& region = op.regions[static_cast<std::size_t>(i)];
    EAGLE_RETURN_IF_ERROR(read_carried(message.regions(i), carried, region_path, region));
    EAGLE_RETURN_IF_ERROR(read_region(message.regions(i), depth + 1, region_path, region));
    region_open_[current_region_] = false;
    current_region_ = enclosing;
  }
  std::vector<Type> results;
  EAGLE_RETURN_IF_ERROR(check_yields(op, path, results));
  // An op that gives many values is as much work downstream as many ops, and so is one with many regions.
  const std::size_t regions = rule.typing == Typing::selection ? op.regions.size() : 1;
  EAGLE_RETURN_IF_ERROR(count_ops(std::max<std::size_t>(results.size(), 1) * regions - 1, path));
  for (const Type& type : results) op.results.push_back(define(type));
  return {};
}

// Its regions stand alone; the rules for derivatives, which are empty where there are none, give what their
// direction wants.
Status Verifier::read_primitive(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op) {
  const std::vector<Type> operands = types_of(op.operands);
  const std::uint32_t enclosing = current_region_;
  const std::uint32_t visible = first_visible_;
  std::vector<Type> results;
  op.regions.resize(static_cast<std::size_t>(message.regions_size()));
  for (std::size_t r = 0; r < op.regions.size(); ++r) {
    const v1::Region& from = message.regions(static_cast<int>(r));
    Region& region = op.regions[r];
    const bool absent =
        r > 0 && from.arguments_size() == 0 && from.ops_size() == 0 && from.yields_size() == 0;
    if (absent) continue;
    const PrimitiveTypes types = primitive_types(r, operands, results);
    current_region_ = first_visible_ = static_cast<std::uint32_t>(region_open_.size());
    region_open_.push_back(true);
    const Path region_path{&path, "regions", static_cast<int>(r)};
    EAGLE_RETURN_IF_ERROR(read_carried(from, types.arguments, region_path, region));
    EAGLE_RETURN_IF_ERROR(read_region(from, depth + 1, region_path, region));
    region_open_[current_region_] = false;
    current_region_ = enclosing;
    first_visible_ = visible;
    if (r == 0) {
      results = types_of(region.yields);
      continue;
    }
    const auto fault = compare_yields(types.yields, types_of(region.yields),
                                      r == 1 ? "the real results" : "the real operands");
    if (fault) return malformed(Path{&region_path, "yields", fault->operand}, fault->message);
  }
  EAGLE_RETURN_IF_ERROR(count_ops(std::max<std::size_t>(results.size() + operands.size(), 1) - 1, path));
  for (const Type& type : results) op.results.push_back(define(type));
  return {};
}

// The arguments of a nested region: the values that a loop carries, none elsewhere.
Status Verifier::read_carried(const v1::Region& message, std::span<const Type> carried, const Path& path,
                              Region& region) {
  if (static_cast<std::size_t>(message.arguments_size()) != carried.size()) {
    const std::string expected = carried.empty() ? "none (no values are carried)"
                                                 : std::to_string(carried.size()) + " (one for each operand)";
    return malformed(Path{&path, "arguments"},
                     "expected " + expected + ", found " + std::to_string(message.arguments_size()));
  }
  for (int i = 0; i < message.arguments_size(); ++i) {
    const Path type_path{&path, "arguments", i};
    const Type& expected = carried[static_cast<std::size_t>(i)];
    Type type;
    EAGLE_RETURN_IF_ERROR(read_type(message.arguments(i), type_path, type));
    if (type != expected) {
      return malformed(type_path, "expected " + to_string(expected) + " (the type of operand " +
                                      std::to_string(i) + "), found " + to_string(type));
    }
    region.arguments.push_back(define(type));
  }
  return {};
}

// What each region yields, and with that the types of the op's results.
Status Verifier::check_yields(const Op& op, const Path& path, std::vector<Type>& results) {
  const auto check = [&](std::size_t region, std::span<const Type> expected, std::string_view as) -> Status {
    const auto fault = compare_yields(expected, types_of(op.regions[region].yields), as);
    if (!fault) return {};
    const Path region_path{&path, "regions", static_cast<int>(region)};
    return malformed(Path{&region_path, "yields", fault->operand}, fault->message);
  };
  if (op.code == Opcode::while_) {
    results = types_of(op.operands);
    EAGLE_RETURN_IF_ERROR(check(0, std::array{Type{Scalar::boolean}}, "the condition"));
    return check(1, results, "the carried values");
  }
  results = types_of(op.regions[0].yields);
  const std::string_view first = op.code == Opcode::if_ ? "the then side" : "the first region";
  for (std::size_t i = 1; i < op.regions.size(); ++i) EAGLE_RETURN_IF_ERROR(check(i, results, first));
  return {};
}

Status Verifier::read_values(std::span<const std::uint32_t> numbers, std::string_view field, const Path& path,
                             std::vector<ValueId>& values) {
  values.reserve(numbers.size());
  for (std::size_t n = 0; n < numbers.size(); ++n) {
    const ValueId value = numbers[n];
    const int i = static_cast<int>(n);
    if (value >= home_region_.size()) {
      return malformed(Path{&path, field, i},
                       "expected a value that is defined before this use (so far there are " +
                           std::to_string(home_region_.size()) + "), found %" + std::to_string(value));
    }
    if (home_region_[value] < first_visible_) {
      return malformed(Path{&path, field, i}, "expected a value of this primitive, found %" +
                                                  std::to_string(value) +
                                                  " from outside of it (make it an operand)");
    }
    if (!region_open_[home_region_[value]]) {
      return malformed(Path{&path, field, i}, "expected a value of this region or of one around it, found %" +
                                                  std::to_string(value) +
                                                  " of a region that has ended (yield it from there)");
    }
    values.push_back(value);
  }
  return {};
}

}  // namespace eagle::kernel
