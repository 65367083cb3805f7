// Literals and escapes of the text form.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/kernel/ir.h"

namespace eagle::v1 {
class Constant;
}

namespace eagle::kernel {

// The whole of `text` as a number.
template <typename Number, typename... Format>
bool read_number(std::string_view text, Number& number, Format... format) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, format...);
  return error == std::errc() && end == text.data() + text.size();
}

// Whether the whole of `text` is a constant of that type, which is then set in `message`.
bool read_literal(std::string_view text, Scalar scalar, v1::Constant& message);

// The characters that an escaped string stands for, or none when an escape is not one of \\ \" \xHH.
std::optional<std::string> unescaped(std::string_view text);

}  // namespace eagle::kernel
