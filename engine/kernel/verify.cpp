#include "engine/kernel/verify.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "eagle/v1/kernel.pb.h"
#include "engine/kernel/names.h"
#include "engine/kernel/unknown_field.h"
#include "engine/kernel/verifier.h"
#include "engine/kernel/verify_at.h"

namespace eagle::kernel {
namespace {

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
    case v1::ROLE_TABLE:
      return Role::table;
    case v1::ROLE_ACCUM:
      return Role::accum;
    case v1::ROLE_REDUCE:
      return Role::reduce;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::string Path::text() const {
  std::string result = parent != nullptr ? parent->text() : std::string();
  if (!result.empty()) result += ".";
  result += field;
  if (index >= 0) result += "[" + std::to_string(index) + "]";
  return result;
}

std::string found_number(int number) {
  return number == 0 ? std::string("none") : "the unknown number " + std::to_string(number);
}

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
  if (!real) return malformed(real_path, "expected F64 or F32, found " + found_number(message_.real()));
  if (!is_real(*real)) {
    return malformed(real_path, "expected F64 or F32, found " + std::string(name_of(*real)));
  }
  kernel_.real = *real;

  for (int i = 0; i < message_.source_files_size(); ++i) {
    EAGLE_RETURN_IF_ERROR(check_name(message_.source_files(i), Path{nullptr, "source_files", i}));
    kernel_.source_files.push_back(message_.source_files(i));
  }
  if (!message_.derivative_of().empty()) {
    EAGLE_RETURN_IF_ERROR(check_name(message_.derivative_of(), Path{nullptr, "derivative_of"}));
    kernel_.derivative_of = message_.derivative_of();
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
  bool any_samples = false;
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
    any_samples = any_samples || is_per_sample(argument.role);
    kernel_.arguments.push_back(std::move(argument));
  }
  if (!any_samples) {
    return malformed(all, std::string("expected at least one argument with a plane of samples (their number "
                                      "comes from its length), found ") +
                              (count == 0 ? "no arguments" : "params and planes of other lengths only"));
  }
  return {};
}

Status Verifier::read_argument(const v1::Argument& message, const Path& path, Argument& argument) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  EAGLE_RETURN_IF_ERROR(check_name(message.name(), Path{&path, "name"}));
  argument.name = message.name();
  const auto role = role_of(message.role());
  if (!role) return malformed(Path{&path, "role"}, "expected a role, found " + found_number(message.role()));
  argument.role = *role;
  EAGLE_RETURN_IF_ERROR(read_type(message.type(), Path{&path, "type"}, argument.type));
  EAGLE_RETURN_IF_ERROR(check_role(argument, path));
  EAGLE_RETURN_IF_ERROR(read_reduction(message, path, argument));
  return read_axes(message, path, argument);
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
  if (argument.role == Role::accum && type.scalar == Scalar::boolean) {
    return malformed(type_path, "expected numbers" + who + ", found " + to_string(type));
  }
  const bool one_number = argument.role == Role::param || argument.role == Role::reduce;
  if (one_number && type.rank != 0) {
    return malformed(type_path, "expected a scalar (no extents)" + who + ", found " + to_string(type));
  }
  return {};
}

Status Verifier::read_reduction(const v1::Argument& message, const Path& path, Argument& argument) {
  const Path reduce_path{&path, "reduce"};
  if (argument.role != Role::reduce) {
    if (message.reduce() == v1::REDUCE_OP_UNSPECIFIED) return {};
    return malformed(reduce_path, "expected none (only reduce arguments have one), found a value");
  }
  if (message.reduce() < v1::REDUCE_SUM || message.reduce() > v1::REDUCE_ANY) {
    return malformed(reduce_path, "expected a reduction, found " + found_number(message.reduce()));
  }
  argument.reduce = static_cast<ReduceOp>(message.reduce());
  if (can_reduce(argument.reduce, argument.type.scalar)) return {};
  return malformed(
      reduce_path,
      "expected " +
          std::string(argument.type.scalar == Scalar::boolean ? "all or any (of bools)" : "sum, max or min") +
          " for " + quote_name(argument.name) + " of " + to_string(argument.type) + ", found " +
          std::string(name_of(argument.reduce)));
}

Status Verifier::read_axes(const v1::Argument& message, const Path& path, Argument& argument) {
  if (!is_indexed(argument.role) && message.axes_size() != 0) {
    return malformed(Path{&path, "axes"}, "expected none (only tables and accumulators have axes), found " +
                                              std::to_string(message.axes_size()));
  }
  std::unordered_set<std::string_view> names;
  std::uint64_t elements = 1;
  for (int i = 0; i < message.axes_size(); ++i) {
    const v1::Axis& axis = message.axes(i);
    const Path axis_path{&path, "axes", i};
    EAGLE_RETURN_IF_ERROR(check_known(axis, axis_path));
    EAGLE_RETURN_IF_ERROR(check_name(axis.name(), Path{&axis_path, "name"}));
    if (!names.insert(axis.name()).second) {
      return malformed(Path{&axis_path, "name"},
                       "expected a name of its own, found " + quote_name(axis.name()) + " for a second time");
    }
    if (axis.extent() == 0) return malformed(Path{&axis_path, "extent"}, "expected at least 1, found 0");
    elements *= axis.extent();  // both below 2^32
    if (elements > limits_.table_elements) {
      return over_limit(Path{&path, "axes"}, "elements of a table", elements, limits_.table_elements,
                        "kernel_table_elements");
    }
    argument.axes.push_back({axis.name(), axis.extent()});
  }
  return {};
}

Status Verifier::read_body() {
  const Path path{nullptr, "body"};
  if (message_.body().arguments_size() != 0) {
    return malformed(Path{&path, "arguments"},
                     "expected none (the kernel's arguments are its values), found " +
                         std::to_string(message_.body().arguments_size()));
  }
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
                         " values (one for each mutable, output, terminated and reduce argument), found " +
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

Status Verifier::read_type(const v1::Type& message, const Path& path, Type& type) {
  EAGLE_RETURN_IF_ERROR(check_known(message, path));
  const auto scalar = scalar_of(message.scalar());
  if (!scalar)
    return malformed(Path{&path, "scalar"},
                     "expected a scalar type, found " + found_number(message.scalar()));
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
  const int unknown = unknown_field(message);
  if (unknown == 0) return {};
  return malformed(path, "expected fields of this version only, found field number " +
                             std::to_string(unknown) +
                             " (made by a newer version? it could change what the kernel means)");
}

Status Verifier::count_ops(std::uint64_t count, const Path& path) {
  if (count <= limits_.ops - ops_) {
    ops_ += static_cast<std::uint32_t>(count);
    return {};
  }
  return over_limit(path, "ops", ops_ + count, limits_.ops, "kernel_ops");
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
