#include "engine/kernel/builder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/float_environment.h"
#include "engine/kernel/names.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verify.h"
#include "engine/kernel/wire.h"

namespace eagle::kernel {
namespace {

// Extents as the caller gives them; what is out of range becomes 0, which no type may have.
std::uint16_t extent(int value) {
  return value > 0 && value <= std::numeric_limits<std::uint16_t>::max() ? static_cast<std::uint16_t>(value)
                                                                         : 0;
}

std::vector<ValueId> ids_of(const std::vector<KernelBuilder::Value>& values) {
  std::vector<ValueId> ids;
  ids.reserve(values.size());
  for (const auto& value : values) ids.push_back(value.id);
  return ids;
}

// "an if", "a while"
std::string article_name(Opcode code) {
  return (code == Opcode::if_ ? "an " : "a ") + std::string(name_of(code));
}

std::vector<Type> types_of(const std::vector<KernelBuilder::Value>& values) {
  std::vector<Type> types;
  types.reserve(values.size());
  for (const auto& value : values) types.push_back(value.type);
  return types;
}

const Argument* find_argument(const Kernel& kernel, std::string_view name) {
  for (const Argument& argument : kernel.arguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

}  // namespace

KernelBuilder::KernelBuilder(std::string name, Scalar real) {
  kernel_.name = std::move(name);
  kernel_.real = real;
}

std::uint32_t KernelBuilder::source_file(std::string_view path) {
  const auto known = std::find(kernel_.source_files.begin(), kernel_.source_files.end(), path);
  if (known == kernel_.source_files.end()) {
    kernel_.source_files.emplace_back(path);
    return static_cast<std::uint32_t>(kernel_.source_files.size() - 1);
  }
  return static_cast<std::uint32_t>(known - kernel_.source_files.begin());
}

void KernelBuilder::at(Location location) { location_ = location; }

KernelBuilder::Value KernelBuilder::scalar(std::string name) {
  return entry(std::move(name), Role::read, Type{kernel_.real});
}

KernelBuilder::Value KernelBuilder::vector(std::string name, int width) {
  return entry(std::move(name), Role::read, Type{kernel_.real, 1, {extent(width), 1}});
}

KernelBuilder::Value KernelBuilder::matrix(std::string name, int rows, int columns) {
  return entry(std::move(name), Role::read, Type{kernel_.real, 2, {extent(rows), extent(columns)}});
}

KernelBuilder::Value KernelBuilder::index(std::string name) {
  return entry(std::move(name), Role::read, Type{Scalar::i64});
}

KernelBuilder::Value KernelBuilder::param(std::string name) {
  return entry(std::move(name), Role::param, Type{kernel_.real});
}

KernelBuilder::Value KernelBuilder::integer_param(std::string name) {
  return entry(std::move(name), Role::param, Type{Scalar::i64});
}

KernelBuilder::Value KernelBuilder::state(std::string name, Type type) {
  return entry(std::move(name), Role::mutable_, type);
}

KernelBuilder::Value KernelBuilder::terminated(std::string name) {
  return entry(std::move(name), Role::terminated, Type{Scalar::boolean});
}

void KernelBuilder::declare_output(std::string name, Type type) {
  declare({std::move(name), Role::output, type, {}});
}

void KernelBuilder::table(std::string name, Type type, std::vector<Axis> axes) {
  declare({std::move(name), Role::table, type, std::move(axes)});
}

void KernelBuilder::accumulator(std::string name, Type type, std::vector<Axis> axes) {
  declare({std::move(name), Role::accum, type, std::move(axes)});
}

void KernelBuilder::declare_reduction(std::string name, Type type, ReduceOp op) {
  declare({std::move(name), Role::reduce, type, {}, op});
}

void KernelBuilder::commit(std::string_view name, Value value) {
  if (!usable({value}, "commit")) return;
  const Argument* argument = find_argument(kernel_, name);
  if (argument == nullptr) {
    fail(Reason::malformed_kernel, "commit: there is no argument " + quote_name(name) + "; declare it first");
  } else if (!is_committed(argument->role)) {
    fail(Reason::malformed_kernel, "commit: " + quote_name(name) + " is a " +
                                       std::string(name_of(argument->role)) +
                                       " argument; expected a mutable, output, terminated or reduce one");
  } else if (value.type != argument->type) {
    fail(Reason::malformed_kernel, "commit: expected " + to_string(argument->type) + " for " +
                                       quote_name(name) + ", found " + to_string(value.type));
  } else if (!open_.empty()) {
    fail(Reason::malformed_kernel, "commit: " + quote_name(name) + " inside " +
                                       article_name(open_.back().op.code) +
                                       "; yield the value from there and commit the result");
  } else {
    commits_.push_back({std::string(name), value});
  }
}

void KernelBuilder::output(const std::string& name, Value value) {
  declare_output(name, value.type);
  commit(name, value);
}

KernelBuilder::Value KernelBuilder::real(double value) {
  if (kernel_.real == Scalar::f64) return constant(Scalar::f64, std::bit_cast<std::uint64_t>(value));
  const FloatEnvironment environment;
  return constant(Scalar::f32, std::bit_cast<std::uint32_t>(static_cast<float>(value)));
}

KernelBuilder::Value KernelBuilder::integer(std::int64_t value) {
  return constant(Scalar::i64, static_cast<std::uint64_t>(value));
}

KernelBuilder::Value KernelBuilder::boolean(bool value) { return constant(Scalar::boolean, value ? 1 : 0); }

KernelBuilder::Value KernelBuilder::op(Opcode code, const std::vector<Value>& operands, Type type) {
  const Rule* rule = find_rule(static_cast<int>(code));
  const bool plain = rule != nullptr && !rule->has_regions() && rule->typing != Typing::constant &&
                     !rule->names_argument() && rule->typing != Typing::component;
  if (!plain) {
    return fail(Reason::malformed_kernel,
                "op: expected a plain operation; constants are made by real, integer and boolean, and if, "
                "while, switch, gather, accum_add and extract have calls of their own");
  }
  Op made;
  made.code = code;
  Stated stated;
  stated.type = type;
  return push_typed(std::move(made), operands, stated);
}

KernelBuilder::Value KernelBuilder::convert(Value a, Scalar to) {
  Type type = a.type;
  type.scalar = to;
  return op(Opcode::convert, {a}, type);
}

KernelBuilder::Value KernelBuilder::gather(std::string_view table, const std::vector<Value>& indices) {
  if (!usable(indices, "gather")) return {};
  const Argument* argument = find_indexed(table, Role::table, "gather");
  if (argument == nullptr) return {};
  Op made;
  made.code = Opcode::gather;
  made.argument = static_cast<std::uint32_t>(argument - kernel_.arguments.data());
  Stated stated;
  stated.table = argument;
  return push_typed(std::move(made), indices, stated);
}

KernelBuilder::Value KernelBuilder::length(std::string_view indexed) {
  if (!usable({}, "length")) return {};
  const Argument* found = find_argument(kernel_, indexed);
  const bool accumulates = found != nullptr && found->role == Role::accum;
  const Argument* argument = find_indexed(indexed, accumulates ? Role::accum : Role::table, "length");
  if (argument == nullptr) return {};
  Op made;
  made.code = Opcode::length;
  made.argument = static_cast<std::uint32_t>(argument - kernel_.arguments.data());
  Stated stated;
  stated.table = argument;
  return push_typed(std::move(made), {}, stated);
}

void KernelBuilder::accum_add(std::string_view accumulator, Value value, const std::vector<Value>& indices) {
  std::vector<Value> operands = {value};
  operands.insert(operands.end(), indices.begin(), indices.end());
  if (!usable(operands, "accum_add")) return;
  const Argument* argument = find_indexed(accumulator, Role::accum, "accum_add");
  if (argument == nullptr) return;
  Stated stated;
  stated.table = argument;
  if (!checked_type(rule_of(Opcode::accum_add), operands, stated)) return;
  Op made;
  made.code = Opcode::accum_add;
  made.argument = static_cast<std::uint32_t>(argument - kernel_.arguments.data());
  made.operands = ids_of(operands);
  made.location = location_;
  region_.ops.push_back(std::move(made));
}

const Argument* KernelBuilder::find_indexed(std::string_view name, Role role, std::string_view user) {
  const Argument* argument = find_argument(kernel_, name);
  if (argument != nullptr && argument->role == role) return argument;
  const std::string found =
      argument == nullptr ? "no argument" : "a " + std::string(name_of(argument->role)) + " argument";
  const bool table = role == Role::table;
  fail(Reason::malformed_kernel, std::string(user) + ": expected " + (table ? "a table" : "an accumulator") +
                                     " named " + quote_name(name) + ", found " + found +
                                     " of that name; declare it with " + (table ? "table" : "accumulator") +
                                     " first");
  return nullptr;
}

KernelBuilder::Value KernelBuilder::extract(Value a, std::uint32_t component) {
  Op made;
  made.code = Opcode::extract;
  made.component = component;
  Stated stated;
  stated.component = component;
  return push_typed(std::move(made), {a}, stated);
}

StatusOr<Kernel> KernelBuilder::finish() {
  if (spent_)
    return Status(Reason::bad_value, "kernel " + quote_name(kernel_.name) + ": finish: the builder is spent");
  location_ = {};  // what is found from here on belongs to no line
  if (!open_.empty()) {
    const Opcode code = open_.back().op.code;
    fail(Reason::malformed_kernel,
         "finish: " + article_name(code) + " is still open (call end_" + std::string(name_of(code)) + ")");
  }
  std::size_t entry = 0;
  for (const Argument& argument : kernel_.arguments) {
    const Value own{has_entry_value(argument.role) ? kernel_.body.arguments[entry++] : Value{}.id,
                    argument.type};
    if (!is_committed(argument.role)) continue;
    const auto names_it = [&](const Commit& commit) { return commit.name == argument.name; };
    const auto last = std::find_if(commits_.rbegin(), commits_.rend(), names_it);
    const Value value = last == commits_.rend() ? own : last->value;
    if (!value.valid()) {
      fail(Reason::malformed_kernel,
           "finish: output " + quote_name(argument.name) + " was declared but never committed");
    }
    region_.yields.push_back(value.id);
  }
  spent_ = true;
  if (!status_.ok()) return status_;
  region_.arguments = std::move(kernel_.body.arguments);
  kernel_.body = std::move(region_);
  // The message is what any other client would have sent, and the verifier judges it alike.
  v1::Kernel message;
  to_message(kernel_, message);
  return verify(message);
}

KernelBuilder::Value KernelBuilder::fail(Reason reason, std::string message) {
  if (!status_.ok()) return {};
  message = "kernel " + quote_name(kernel_.name) + ": " + message;
  if (location_.line != 0 && location_.file < kernel_.source_files.size()) {
    message += " (at " + escaped(kernel_.source_files[location_.file], '\0') + ":" +
               std::to_string(location_.line) + ":" + std::to_string(location_.column) + ")";
  }
  status_ = Status(reason, std::move(message));
  return {};
}

bool KernelBuilder::usable(const std::vector<Value>& values, std::string_view user) {
  if (!status_.ok()) return false;
  if (spent_) {
    fail(Reason::bad_value, std::string(user) + ": the builder is spent (finish was called)");
    return false;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Value& value = values[i];
    if (value.id < kernel_.value_types.size() && kernel_.value_types[value.id] == value.type) continue;
    fail(Reason::malformed_kernel, std::string(user) +
                                       ": expected a value of this kernel, found another (operand " +
                                       std::to_string(i) + ")");
    return false;
  }
  return true;
}

// At once, not in `finish()`: what is built on a type counts its components.
bool KernelBuilder::check_type(const Type& type, std::string_view user) {
  if (!status_.ok()) return false;
  const bool in_rank =
      type.rank <= 2 && (type.rank > 0 || type.extents[0] == 1) && (type.rank > 1 || type.extents[1] == 1);
  const std::int64_t components = std::int64_t{type.extents[0]} * type.extents[1];
  const Limits limits;
  if (!in_rank || components == 0) {
    fail(Reason::malformed_kernel,
         std::string(user) + ": expected at most 2 extents, each from 1 to 65535, found " + to_string(type));
    return false;
  }
  if (components > limits.components) {
    fail(Reason::kernel_limit, std::string(user) + ": expected at most " + std::to_string(limits.components) +
                                   " components (limit kernel_components), found " +
                                   std::to_string(components) + " in " + to_string(type));
    return false;
  }
  return true;
}

std::optional<Type> KernelBuilder::checked_type(const Rule& rule, const std::vector<Value>& operands,
                                                const Stated& stated) {
  const auto typed = result_type(rule, types_of(operands), stated);
  if (const auto* type = std::get_if<Type>(&typed)) return *type;
  const auto& fault = std::get<TypeFault>(typed);
  const std::string which = fault.operand < 0 ? "" : "operand " + std::to_string(fault.operand) + ": ";
  fail(Reason::malformed_kernel, std::string(rule.name) + ": " + which + fault.message);
  return std::nullopt;
}

KernelBuilder::Value KernelBuilder::push_typed(Op op, const std::vector<Value>& operands,
                                               const Stated& stated) {
  const Rule& rule = rule_of(op.code);
  if (!usable(operands, rule.name) || !check_type(stated.type, rule.name)) return {};
  const auto typed = checked_type(rule, operands, stated);
  if (!typed) return {};
  op.operands = ids_of(operands);
  return push(std::move(op), *typed);
}

bool KernelBuilder::declare(Argument argument) {
  const std::string role(name_of(argument.role));
  if (!usable({}, role) || !check_type(argument.type, role + ": argument " + quote_name(argument.name)))
    return false;
  if (find_argument(kernel_, argument.name) != nullptr) {
    fail(Reason::malformed_kernel, role + ": there is already an argument " + quote_name(argument.name));
    return false;
  }
  kernel_.arguments.push_back(std::move(argument));
  return true;
}

KernelBuilder::Value KernelBuilder::entry(std::string name, Role role, Type type) {
  if (status_.ok() && (!region_.ops.empty() || !open_.empty())) {
    return fail(Reason::malformed_kernel, std::string(name_of(role)) + ": argument " + quote_name(name) +
                                              " comes after the first op; declare arguments first");
  }
  if (!declare({std::move(name), role, type, {}})) return {};
  const Value value = new_value(type);
  kernel_.body.arguments.push_back(value.id);
  return value;
}

KernelBuilder::Value KernelBuilder::constant(Scalar scalar, std::uint64_t bits) {
  if (!usable({}, "constant")) return {};
  Op made;
  made.code = Opcode::constant;
  made.bits = bits;
  return push(std::move(made), Type{scalar});
}

KernelBuilder::Value KernelBuilder::new_value(Type type) {
  kernel_.value_types.push_back(type);
  return {static_cast<ValueId>(kernel_.value_types.size() - 1), type};
}

KernelBuilder::Value KernelBuilder::push(Op op, Type type) {
  const Value value = new_value(type);
  op.results = {value.id};
  op.location = location_;
  region_.ops.push_back(std::move(op));
  return value;
}

}  // namespace eagle::kernel
