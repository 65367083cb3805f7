#include "engine/kernel/text_literals.h"

#include <cstdint>

#include "eagle/v1/kernel.pb.h"

namespace eagle::kernel {
namespace {

// `from_chars` without its leniency: one sign at most, and no 0x before inf or nan.
template <typename Real>
bool read_real(std::string_view text, Real& value) {
  const bool negative = text.substr(0, 1) == "-";
  if (negative) text.remove_prefix(1);
  const bool hexadecimal = text.substr(0, 2) == "0x";
  if (hexadecimal) text.remove_prefix(2);
  if (text.empty() || text[0] == '-') return false;
  if (hexadecimal && (text[0] == 'i' || text[0] == 'I' || text[0] == 'n' || text[0] == 'N')) return false;
  const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  if (!read_number(text, value, format)) return false;
  if (negative) value = -value;
  return true;
}

bool read_hex_byte(std::string_view digits, char& byte) {
  std::uint8_t value = 0;
  if (digits.size() != 2) return false;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + 2, value, 16);
  byte = static_cast<char>(value);
  return error == std::errc() && end == digits.data() + 2;
}

}  // namespace

bool read_literal(std::string_view text, Scalar scalar, v1::Constant& message) {
  switch (scalar) {
    case Scalar::f64: {
      double value = 0;
      const bool ok = read_real(text, value);
      message.set_f64(value);
      return ok;
    }
    case Scalar::f32: {
      float value = 0;
      const bool ok = read_real(text, value);
      message.set_f32(value);
      return ok;
    }
    case Scalar::i64: {
      std::int64_t value = 0;
      const bool ok = read_number(text, value);
      message.set_i64(value);
      return ok;
    }
    case Scalar::i32: {
      std::int32_t value = 0;
      const bool ok = read_number(text, value);
      message.set_i32(value);
      return ok;
    }
    case Scalar::boolean:
      message.set_boolean(text == "true");
      return text == "true" || text == "false";
  }
  return false;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    std::size_t length = 1;
    char c = text[0];
    if (c == '\\') {
      const char escape = text.size() > 1 ? text[1] : ' ';
      if (escape == 'x') {
        if (!read_hex_byte(text.substr(2, 2), c)) return std::nullopt;
        length = 4;
      } else if (escape == '\\' || escape == '"') {
        c = escape;
        length = 2;
      } else {
        return std::nullopt;
      }
    }
    out += c;
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace eagle::kernel
