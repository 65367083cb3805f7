#include "engine/graph/param.h"

#include <bit>
#include <limits>
#include <string>

namespace eagle::graph {
namespace {

using kernel::Scalar;

StatusOr<std::uint64_t> real_bits(double value, Scalar scalar, std::string_view where) {
  if (scalar == Scalar::f64) return std::bit_cast<std::uint64_t>(value);
  if (scalar == Scalar::f32) return std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(value))};
  return Status(Reason::wrong_dtype, std::string(where) + ": expected an integer, found the real number " +
                                         std::to_string(value) + "; pass an int");
}

Status check_within(std::int64_t value, std::int64_t least, std::int64_t most, std::string_view where) {
  if (value >= least && value <= most) return {};
  return {Reason::bad_value, std::string(where) + ": expected an integer from " + std::to_string(least) +
                                 " to " + std::to_string(most) + ", found " + std::to_string(value)};
}

StatusOr<std::uint64_t> integer_bits(std::int64_t value, Scalar scalar, std::string_view where) {
  using Narrow = std::numeric_limits<std::int32_t>;
  switch (scalar) {
    case Scalar::f64:
      return std::bit_cast<std::uint64_t>(static_cast<double>(value));
    case Scalar::f32:
      return std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(value))};
    case Scalar::i64:
      return static_cast<std::uint64_t>(value);
    case Scalar::i32:
      EAGLE_RETURN_IF_ERROR(check_within(value, Narrow::min(), Narrow::max(), where));
      return std::uint64_t{static_cast<std::uint32_t>(value)};
    case Scalar::boolean:
      EAGLE_RETURN_IF_ERROR(check_within(value, 0, 1, where));
      return static_cast<std::uint64_t>(value);
  }
  return Status(Reason::internal, std::string(where) + ": an unknown scalar type");
}

}  // namespace

StatusOr<std::uint64_t> param_bits(const Number& number, const kernel::Argument& argument,
                                   std::string_view where) {
  if (const auto* real = std::get_if<double>(&number)) return real_bits(*real, argument.type.scalar, where);
  return integer_bits(std::get<std::int64_t>(number), argument.type.scalar, where);
}

}  // namespace eagle::graph
