// Inside the verifier: one pass over a message, in verify.cpp (arguments and the parts that everything
// shares) and verify_ops.cpp (regions and ops). Everyone else includes verify.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"
#include "engine/kernel/verify.h"

namespace google::protobuf {
class Message;
}
namespace eagle::v1 {
class Argument;
class Dispatch;
class Location;
class Op;
class Region;
class Type;
}  // namespace eagle::v1

namespace eagle::kernel {

struct Rule;

using google::protobuf::Message;

// Where in the message the verifier is: a chain on the call stack that becomes text only in an error.
struct Path {
  const Path* parent = nullptr;
  std::string_view field;
  int index = -1;                    // -1: the field is not repeated
  const Message* subject = nullptr;  // the argument or op that starts here

  [[nodiscard]] std::string text() const;
};

// "none" for 0, else that the number is unknown.
std::string found_number(int number);

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
  Status read_reduction(const v1::Argument& message, const Path& path, Argument& argument);
  Status read_axes(const v1::Argument& message, const Path& path, Argument& argument);
  Status read_body();

  Status read_region(const v1::Region& message, std::uint32_t depth, const Path& path, Region& region);
  Status read_op(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op);
  Status check_fields(const v1::Op& message, const Rule& rule, const Path& path);
  Status check_region_count(const v1::Op& message, const Rule& rule, const Path& path);
  Status read_attributes(const v1::Op& message, const Rule& rule, const Path& path, Op& op);
  Status read_constant(const v1::Op& message, const Type& type, const Path& path, Op& op);
  Status read_table(const v1::Op& message, const Rule& rule, const Path& path, Op& op);
  Status read_dispatch(const v1::Dispatch& message, const Path& path, Op& op);
  Status read_structure(const v1::Op& message, const Rule& rule, std::uint32_t depth, const Path& path,
                        Op& op);
  Status read_primitive(const v1::Op& message, std::uint32_t depth, const Path& path, Op& op);
  Status read_carried(const v1::Region& message, std::span<const Type> carried, const Path& path,
                      Region& region);
  Status check_yields(const Op& op, const Path& path, std::vector<Type>& results);
  Status read_values(std::span<const std::uint32_t> numbers, std::string_view field, const Path& path,
                     std::vector<ValueId>& values);

  Status read_type(const v1::Type& message, const Path& path, Type& type);
  Status read_location(const v1::Location& message, const Path& path, Location& location);
  Status check_name(std::string_view name, const Path& path);
  Status check_known(const Message& message, const Path& path);
  Status count_ops(std::uint64_t count, const Path& path);

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
  std::uint32_t scalar_ops_ = 0;
  // A value is visible while the region that defines it is open.
  std::vector<bool> region_open_;           // by region, in the order in which they begin
  std::vector<std::uint32_t> home_region_;  // by value
  std::uint32_t current_region_ = 0;
  // Regions of a primitive see nothing from outside: what began before this one is out of their sight.
  std::uint32_t first_visible_ = 0;
  const Message* refused_ = nullptr;
};

}  // namespace eagle::kernel
