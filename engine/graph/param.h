// Numbers by value: how a Param takes what a caller gives.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "engine/base/status.h"
#include "engine/kernel/ir.h"

namespace eagle::graph {

using Number = std::variant<double, std::int64_t>;

// The number as the bits of the argument's type, rounded once: an integer never goes through a double on its
// way to a float. WRONG_DTYPE for a real number where an integer is due, BAD_VALUE for one over the range.
// `where` begins the message.
StatusOr<std::uint64_t> param_bits(const Number& number, const kernel::Argument& argument,
                                   std::string_view where);

}  // namespace eagle::graph
