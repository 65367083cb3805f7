#include "engine/kernel/names.h"

#include <cstddef>
#include <cstdint>

namespace eagle::kernel {
namespace {

constexpr std::size_t longest_quote = 64;  // bytes of a name that an error repeats

// Length of the well-formed character at the start of `text` (not empty), or 0.
std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // The second byte decides what the lead byte leaves open.
  if (lead == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
  if (lead == 0xed && byte(1) > 0x9f) return 0;  // surrogates
  if (lead == 0xf0 && byte(1) < 0x90) return 0;  // overlong
  if (lead == 0xf4 && byte(1) > 0x8f) return 0;  // above U+10FFFF
  return length;
}

// Whatever could move a cursor, break a line or turn the direction of a text: controls, and U+061C, U+200E,
// U+200F, U+2028 to U+202E, U+2066 to U+2069. Of one well-formed character.
bool spoils(std::string_view character) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(character[i]); };
  if (character.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7f;
  if (character.size() == 2)
    return (byte(0) == 0xc2 && byte(1) < 0xa0) || (byte(0) == 0xd8 && byte(1) == 0x9c);
  if (character.size() != 3 || byte(0) != 0xe2) return false;
  const std::uint8_t last = byte(2);
  if (byte(1) == 0x80) return last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
  return byte(1) == 0x81 && last >= 0xa6 && last <= 0xa9;
}

void append_hex(std::string& out, char c) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<std::uint8_t>(c);
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

}  // namespace

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string escaped(std::string_view text, char quote) {
  std::string out;
  while (!text.empty()) {
    const char c = text[0];
    const std::size_t length = character_length(text);
    if (length == 0 || spoils(text.substr(0, length))) {
      for (const char part : text.substr(0, length == 0 ? 1 : length)) append_hex(out, part);
    } else {
      if (c == quote || c == '\\') out += '\\';
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

std::string quote_name(std::string_view name) {
  std::size_t kept = name.size();
  if (kept > longest_quote) {
    kept = longest_quote;
    while (kept > longest_quote - 4 && (static_cast<std::uint8_t>(name[kept]) & 0xc0) == 0x80) --kept;
  }
  return "'" + escaped(name.substr(0, kept), '\'') + (kept < name.size() ? "…'" : "'");
}

}  // namespace eagle::kernel
