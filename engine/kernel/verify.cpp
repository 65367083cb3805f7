#include "engine/kernel/verify.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/typing.h"
#include "engine/kernel/verify_at.h"

namespace eagle::kernel {
namespace {

using google::protobuf::Message;

// Where in the message the verifier is: a chain on the call stack that becomes text only in an error.
struct Path {
  const Path* parent = nullptr;
  std::string_view field;
  int index = -1;                    // -1: the field is not repeated
  const Message* subject = nullptr;  // the argument or op that starts here

  [[nodiscard]] std::string text() const {
    std::string result = parent != nullptr ? parent->text() : std::string();
    if (!result.empty()) result += ".";
    result += field;
    if (index >= 0) result += "[" + std::to_string(index) + "]";
    return result;
  }
};

std::optional<Scalar> scalar_of(v1::ScalarType type) {
  switch (type) {
    case v1::F64:
      return Scalar::f64;
    case v1::F32:
      return Scalar::f32;
    case v1::I64:
      return Scalar::i64;
    case v1::I32:
      return Scalar::i32;
    case v1::BOOL:
      return Scalar::boolean;
    default:
      return std::nullopt;
  }
}

std::optional<Role> role_of(v1::Role role) {
  switch (role) {
    case v1::ROLE_READ:
      return Role::read;
    case v1::ROLE_MUTABLE:
      return Role::mutable_;
    case v1::ROLE_OUTPUT:
      return Role::output;
    case v1::ROLE_PARAM:
      return Role::param;
    case v1::ROLE_TERMINATED:
      return Role::terminated;
    default:
      return std::nullopt;
  }
}

std::string found(int number) {
  return number == 0 ? std::string("none") : "the unknown number " + std::to_string(number);
}

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

class Verifier {
public:
  Verifier(const v1::Kernel& message, const Limits& limits) : message_(message), limits_(limits) {}

  StatusOr<Kernel> run();
  [[nodiscard]] const Message* refused() const { return refused_; }

private:
  Status read_header();
  Status read_arguments();
  Status read_argument(const v1::Argument& message, const Path& path, Argument& argument);
  Status check_role(const Argument& argument, const Path& path);
  Status read_body();
  Status read_region(const v1::Region& message, std::uint32_t depth, const Path& path, Region& region);
  Status read_op(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op);
  Status check_fields(const v1::Op& message, const Rule& rule, const Path& path);
  Status read_constant(const v1::Op& message, const Type& type, const Path& path, Op& op);
  Status read_branch(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op);
  Status read_values(const google::protobuf::RepeatedField<std::uint32_t>& numbers, std::string_view field,
                     const Path& path, std::vector<ValueId>& values);
  Status read_type(const v1::Type& message, const Path& path, Type& type);
  Status read_location(const v1::Location& message, const Path& path, Location& location);
  Status check_name(std::string_view name, const Path& path);
  Status check_known(const Message& message, const Path& path);
  Status count_ops(std::uint32_t count, const Path& path);

  ValueId define(const Type& type);
  [[nodiscard]] std::vector<Type> types_of(std::span<const ValueId> values) const;

  Status fail(Reason reason, const Path* path, const std::string& text);
  Status malformed(const Path& path, const std::string& text) {
    return fail(Reason::malformed_kernel, &path, text);
  }
  Status over_limit(const Path& path, std::string_view what, std::uint64_t found, std::uint64_t limit,
                    std::string_view key);

  const v1::Kernel& message_;
  const Limits& limits_;
  Kernel kernel_;
  std::uint32_t ops_ = 0;
  // A value is visible while the region that defines it is open.
  std::vector<bool> region_open_;           // by region, in the order in which they begin
  std::vector<std::uint32_t> home_region_;  // by value
  std::uint32_t current_region_ = 0;
  const Message* refused_ = nullptr;
};

StatusOr<Kernel> Verifier::run() {
  EAGLE_RETURN_IF_ERROR(read_header());
  EAGLE_RETURN_IF_ERROR(read_arguments());
  EAGLE_RETURN_IF_ERROR(read_body());
  return std::move(kernel_);
}

Status Verifier::read_header() {
  const Path root{nullptr, "the kernel"};
  EAGLE_RETURN_IF_ERROR(check_name(message_.name(), Path{nullptr, "name"}));
  kernel_.name = message_.name();
  EAGLE_RETURN_IF_ERROR(check_known(message_, root));

  const Path real_path{nullptr, "real"};
  const auto real = scalar_of(message_.real());
  if (!real) return malformed(real_path, "expected F64 or F32, found " + found(message_.real()));
  if (!is_real(*real)) {
    return malformed(real_path, "expected F64 or F32, found " + std::string(name_of(*real)));
  }
  kernel_.real = *real;

  for (int i = 0; i < message_.source_files_size(); ++i) {
    EAGLE_RETURN_IF_ERROR(check_name(message_.source_files(i), Path{nullptr, "source_files", i}));
    kernel_.source_files.push_back(message_.source_files(i));
  }
  return {};
}

Status Verifier::read_arguments() {
  const Path all{nullptr, "arguments"};
  const auto count = static_cast<std::uint32_t>(message_.arguments_size());
  if (count > limits_.arguments) {
    return over_limit(all, "arguments", count, limits_.arguments, "kernel_arguments");
  }
  std::unordered_set<std::string_view> names;
  bool any_plane = false;
  int terminated = -1;
  for (int i = 0; i < message_.arguments_size(); ++i) {
    const v1::Argument& message = message_.arguments(i);
    const Path path{nullptr, "arguments", i, &message};
    Argument argument;
    EAGLE_RETURN_IF_ERROR(read_argument(message, path, argument));
    if (!names.insert(message.name()).second) {
      return malformed(Path{&path, "name"}, "expected a name of its own, found " + quote_name(argument.name) +
                                                " for a second time");
    }
    if (argument.role == Role::terminated) {
      if (terminated >= 0) {
        return malformed(Path{&path, "role"},
                         "expected at most one terminated argument, found a second (the first is argument " +
                             std::to_string(terminated) + ")");
      }
      terminated = i;
    }
    any_plane = any_plane || has_plane(argument.role);
    kernel_.arguments.push_back(std::move(argument));
  }
  if (!any_plane) {
    return malformed(
        all, "expected at least one argument with a plane (the samples come from its length), found " +
                 (count == 0 ? std::string("no arguments") : std::string("params only")));
  }
  return {};
}

Status Verifier::read_argument(const v1::Argument& message, const Path& path, Argument& argument) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  EAGLE_RETURN_IF_ERROR(check_name(message.name(), Path{&path, "name"}));
  argument.name = message.name();
  const auto role = role_of(message.role());
  if (!role) return malformed(Path{&path, "role"}, "expected a role, found " + found(message.role()));
  argument.role = *role;
  EAGLE_RETURN_IF_ERROR(read_type(message.type(), Path{&path, "type"}, argument.type));
  return check_role(argument, path);
}

Status Verifier::check_role(const Argument& argument, const Path& path) {
  const Type& type = argument.type;
  const std::string who =
      " for the " + std::string(name_of(argument.role)) + " argument " + quote_name(argument.name);
  const Path type_path{&path, "type"};
  if (argument.role == Role::terminated && type != Type{Scalar::boolean}) {
    return malformed(type_path, "expected bool" + who + ", found " + to_string(type));
  }
  const bool storable =
      type.scalar == kernel_.real || type.scalar == Scalar::i64 || type.scalar == Scalar::boolean;
  if (!storable) {
    return malformed(type_path, "expected elements of " + std::string(name_of(kernel_.real)) +
                                    " (the kernel's real type), i64 or bool" + who + ", found " +
                                    to_string(type));
  }
  if (argument.role == Role::param && type.rank != 0) {
    return malformed(type_path, "expected a scalar (no extents)" + who + ", found " + to_string(type));
  }
  return {};
}

Status Verifier::read_body() {
  const Path path{nullptr, "body"};
  region_open_.push_back(true);
  for (const Argument& argument : kernel_.arguments) {
    if (has_entry_value(argument.role)) kernel_.body.arguments.push_back(define(argument.type));
  }
  EAGLE_RETURN_IF_ERROR(read_region(message_.body(), 0, path, kernel_.body));

  std::vector<const Argument*> committed;
  for (const Argument& argument : kernel_.arguments) {
    if (is_committed(argument.role)) committed.push_back(&argument);
  }
  const auto& yields = kernel_.body.yields;
  if (yields.size() != committed.size()) {
    return malformed(Path{&path, "yields"},
                     "expected " + std::to_string(committed.size()) +
                         " values (one for each mutable, output and terminated argument), found " +
                         std::to_string(yields.size()));
  }
  for (std::size_t i = 0; i < yields.size(); ++i) {
    const Type& type = kernel_.value_types[yields[i]];
    if (type == committed[i]->type) continue;
    return malformed(Path{&path, "yields", static_cast<int>(i)},
                     "expected " + to_string(committed[i]->type) + " (the type of argument " +
                         quote_name(committed[i]->name) + "), found " + to_string(type));
  }
  return {};
}

// The region is already open and its entry values, if it has any, are defined.
Status Verifier::read_region(const v1::Region& message, std::uint32_t depth, const Path& path,
                             Region& region) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  if (message.arguments_size() != 0) {
    return malformed(Path{&path, "arguments"}, "expected none (only loops carry values), found " +
                                                   std::to_string(message.arguments_size()));
  }
  EAGLE_RETURN_IF_ERROR(count_ops(static_cast<std::uint32_t>(message.ops_size()), path));
  region.ops.resize(static_cast<std::size_t>(message.ops_size()));
  for (int i = 0; i < message.ops_size(); ++i) {
    const Path op_path{&path, "ops", i, &message.ops(i)};
    EAGLE_RETURN_IF_ERROR(read_op(message.ops(i), depth, op_path, region.ops[static_cast<std::size_t>(i)]));
  }
  return read_values(message.yields(), "yields", path, region.yields);
}

Status Verifier::read_op(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  const Rule* rule = find_rule(message.code());
  if (rule == nullptr) {
    return malformed(Path{&path, "code"}, "expected an opcode, found " + found(message.code()));
  }
  op.code = rule->code;
  EAGLE_RETURN_IF_ERROR(check_fields(message, *rule, path));
  EAGLE_RETURN_IF_ERROR(read_location(message.location(), Path{&path, "location"}, op.location));
  EAGLE_RETURN_IF_ERROR(read_values(message.operands(), "operands", path, op.operands));

  Type requested;
  if (rule->states_type()) {
    EAGLE_RETURN_IF_ERROR(read_type(message.type(), Path{&path, "type"}, requested));
  }
  const auto typed = result_type(*rule, types_of(op.operands), requested);
  if (const auto* fault = std::get_if<TypeFault>(&typed)) {
    const std::string text = std::string(rule->name) + ": " + fault->message;
    if (fault->operand < 0) return malformed(path, text);
    return malformed(Path{&path, "operands", fault->operand}, text);
  }
  if (rule->typing == Typing::branch) return read_branch(message, depth, path, op);
  if (rule->typing == Typing::constant) {
    EAGLE_RETURN_IF_ERROR(read_constant(message, requested, path, op));
  }
  op.results.push_back(define(std::get<Type>(typed)));
  return {};
}

// A field that does not belong to the opcode would be ignored, so it is refused instead.
Status Verifier::check_fields(const v1::Op& message, const Rule& rule, const Path& path) {
  const auto check = [&](std::string_view field, bool present, bool wanted) -> Status {
    if (present == wanted) return {};
    return malformed(Path{&path, field},
                     std::string(rule.name) + ": expected " +
                         (wanted ? "this field, found nothing" : "nothing here, found a value"));
  };
  EAGLE_RETURN_IF_ERROR(check("constant", message.has_constant(), rule.typing == Typing::constant));
  EAGLE_RETURN_IF_ERROR(check("type", message.has_type(), rule.states_type()));
  const int regions = rule.typing == Typing::branch ? 2 : 0;
  if (message.regions_size() == regions) return {};
  return malformed(Path{&path, "regions"}, std::string(rule.name) + ": expected " + std::to_string(regions) +
                                               " regions, found " + std::to_string(message.regions_size()));
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

Status Verifier::read_branch(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op) {
  if (depth + 1 > limits_.depth) {
    return over_limit(path, "levels of nested regions", depth + 1, limits_.depth, "kernel_depth");
  }
  const std::uint32_t enclosing = current_region_;
  op.regions.resize(2);
  for (int i = 0; i < 2; ++i) {
    current_region_ = static_cast<std::uint32_t>(region_open_.size());
    region_open_.push_back(true);
    const Path region_path{&path, "regions", i};
    EAGLE_RETURN_IF_ERROR(
        read_region(message.regions(i), depth + 1, region_path, op.regions[static_cast<std::size_t>(i)]));
    region_open_[current_region_] = false;
    current_region_ = enclosing;
  }
  const std::vector<Type> types = types_of(op.regions[0].yields);
  if (const auto fault = compare_yields(types, types_of(op.regions[1].yields))) {
    const Path region_path{&path, "regions", 1};
    return malformed(Path{&region_path, "yields", fault->operand}, fault->message);
  }
  // An op that gives many values is as much work downstream as many ops.
  if (types.size() > 1) EAGLE_RETURN_IF_ERROR(count_ops(static_cast<std::uint32_t>(types.size() - 1), path));
  for (const Type& type : types) op.results.push_back(define(type));
  return {};
}

Status Verifier::read_values(const google::protobuf::RepeatedField<std::uint32_t>& numbers,
                             std::string_view field, const Path& path, std::vector<ValueId>& values) {
  values.reserve(static_cast<std::size_t>(numbers.size()));
  for (int i = 0; i < numbers.size(); ++i) {
    const ValueId value = numbers[i];
    if (value >= home_region_.size()) {
      return malformed(Path{&path, field, i},
                       "expected a value that is defined before this use (so far there are " +
                           std::to_string(home_region_.size()) + "), found %" + std::to_string(value));
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

Status Verifier::read_type(const v1::Type& message, const Path& path, Type& type) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  const auto scalar = scalar_of(message.scalar());
  if (!scalar)
    return malformed(Path{&path, "scalar"}, "expected a scalar type, found " + found(message.scalar()));
  type = Type{*scalar};
  if (message.extents_size() > 2) {
    return malformed(Path{&path, "extents"},
                     "expected at most 2 (a matrix), found " + std::to_string(message.extents_size()));
  }
  const std::uint32_t limit =
      std::min<std::uint32_t>(limits_.components, std::numeric_limits<std::uint16_t>::max());
  std::uint64_t components = 1;
  for (int i = 0; i < message.extents_size(); ++i) {
    const std::uint32_t extent = message.extents(i);
    if (extent == 0) return malformed(Path{&path, "extents", i}, "expected at least 1, found 0");
    components *= extent;  // two factors of 32 bits
  }
  if (components > limit) {
    return over_limit(Path{&path, "extents"}, "components", components, limit, "kernel_components");
  }
  type.rank = static_cast<std::uint8_t>(message.extents_size());
  for (int i = 0; i < message.extents_size(); ++i) {
    type.extents[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(message.extents(i));
  }
  return {};
}

Status Verifier::read_location(const v1::Location& message, const Path& path, Location& location) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  location = Location{message.file(), message.line(), message.column()};
  const bool known = location != Location{};
  if (known && location.file >= kernel_.source_files.size()) {
    return malformed(Path{&path, "file"},
                     "expected an index below " + std::to_string(kernel_.source_files.size()) +
                         " (the number of source files), found " + std::to_string(location.file));
  }
  return {};
}

Status Verifier::check_name(std::string_view name, const Path& path) {
  if (name.size() > limits_.name_bytes) {
    return over_limit(path, "bytes of a name", name.size(), limits_.name_bytes, "kernel_name_bytes");
  }
  if (name.empty()) return malformed(path, "expected a name, found an empty one");
  if (!is_utf8(name)) return malformed(path, "expected UTF-8, found " + quote_name(name));
  return {};
}

Status Verifier::check_known(const Message& message, const Path& path) {
  const auto& unknown = message.GetReflection()->GetUnknownFields(message);
  if (unknown.empty()) return {};
  return malformed(path, "expected fields of this version only, found field number " +
                             std::to_string(unknown.field(0).number()) +
                             " (made by a newer version? it could change what the kernel means)");
}

Status Verifier::count_ops(std::uint32_t count, const Path& path) {
  if (count <= limits_.ops - ops_) {
    ops_ += count;
    return {};
  }
  return over_limit(path, "ops", std::uint64_t{ops_} + count, limits_.ops, "kernel_ops");
}

ValueId Verifier::define(const Type& type) {
  kernel_.value_types.push_back(type);
  home_region_.push_back(current_region_);
  return static_cast<ValueId>(kernel_.value_types.size() - 1);
}

std::vector<Type> Verifier::types_of(std::span<const ValueId> values) const {
  std::vector<Type> types;
  types.reserve(values.size());
  for (const ValueId value : values) types.push_back(kernel_.value_types[value]);
  return types;
}

Status Verifier::fail(Reason reason, const Path* path, const std::string& text) {
  for (const Path* at = path; at != nullptr && refused_ == nullptr; at = at->parent) refused_ = at->subject;
  return Status(reason, "kernel " + quote_name(message_.name()) + ": " + path->text() + ": " + text);
}

Status Verifier::over_limit(const Path& path, std::string_view what, std::uint64_t found, std::uint64_t limit,
                            std::string_view key) {
  return fail(Reason::kernel_limit, &path,
              "expected at most " + std::to_string(limit) + " " + std::string(what) + " (limit " +
                  std::string(key) + "), found " + std::to_string(found) +
                  (key == "kernel_ops" ? " or more" : ""));
}

}  // namespace

StatusOr<Kernel> verify_at(const v1::Kernel& message, const Limits& limits, const Message*& refused) {
  Verifier verifier(message, limits);
  StatusOr<Kernel> kernel = verifier.run();
  refused = kernel.ok() ? nullptr : verifier.refused();
  return kernel;
}

StatusOr<Kernel> verify(const v1::Kernel& message, const Limits& limits) {
  const Message* refused = nullptr;
  return verify_at(message, limits, refused);
}

}  // namespace eagle::kernel
