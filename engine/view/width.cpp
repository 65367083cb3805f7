#include "engine/view/width.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

#include "engine/view/unicode_ranges.h"

namespace eagle::view {
namespace {

constexpr char32_t joiner = 0x200D;
constexpr char32_t non_joiner = 0x200C;
constexpr char32_t emoji_style = 0xFE0F;

bool within(char32_t code, char32_t first, char32_t last) { return code >= first && code <= last; }

bool contains(std::span<const CodeRange> ranges, char32_t code) {
  const auto found = std::ranges::lower_bound(ranges, code, {}, &CodeRange::last);
  return found != ranges.end() && found->first <= code;
}

struct Decoded {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: not UTF-8
};

// The first character of a non-empty text; overlong forms, surrogates and cut sequences are refused.
Decoded decode(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = within(lead, 0xC2, 0xDF)   ? 2
                            : within(lead, 0xE0, 0xEF) ? 3
                            : within(lead, 0xF0, 0xF4) ? 4
                                                       : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  char32_t code = lead & (0xFFU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<std::uint8_t>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = (code << 6) | (next & 0x3F);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < smallest[bytes] || code > 0x10FFFF || within(code, 0xD800, 0xDFFF)) return {};
  return {code, bytes};
}

std::string hexadecimal(std::uint32_t value) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[value % 16]);
    value /= 16;
  } while (value != 0);
  if (text.size() % 2 != 0) text.insert(text.begin(), '0');
  return text;
}

std::string escape_of(char32_t code) {
  switch (code) {
    case U'\n':
      return "\\n";
    case U'\t':
      return "\\t";
    case U'\r':
      return "\\r";
    default:
      break;
  }
  if (code < 0x100) return "\\x" + hexadecimal(code);
  return "\\u{" + hexadecimal(code) + "}";
}

bool is_printable(char32_t code) {
  if (code < 0x80) return within(code, 0x20, 0x7E);
  return !contains(invisible, code);
}

int columns_of(char32_t code) {
  if (code < 0x80) return 1;
  if (code == joiner || code == non_joiner || contains(zero_width, code)) return 0;
  return contains(double_width, code) ? 2 : 1;
}

bool is_regional(char32_t code) { return within(code, 0x1F1E6, 0x1F1FF); }
bool is_skin_tone(char32_t code) { return within(code, 0x1F3FB, 0x1F3FF); }
// What a joiner glues into one picture: emoji and the symbols that can be shown as emoji.
bool is_pictograph(char32_t code) { return within(code, 0x2190, 0x2BFF) || within(code, 0x1F000, 0x1FAFF); }

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = decode(text);
    if (next.bytes == 0) {
      result += "\\x" + hexadecimal(static_cast<std::uint8_t>(text[0]));
    } else if (is_printable(next.code)) {
      result += text.substr(0, next.bytes);
    } else {
      result += escape_of(next.code);
    }
    text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  }
  return result;
}

Cluster first_cluster(std::string_view text) {
  if (text.empty()) return {};
  const Decoded first = decode(text);
  if (first.bytes == 0) return {1, 1};
  Cluster cluster{first.bytes, columns_of(first.code)};
  char32_t before = first.code;
  bool flag_open = is_regional(first.code);
  while (cluster.bytes < text.size()) {
    const Decoded next = decode(text.substr(cluster.bytes));
    if (next.bytes == 0) break;
    const bool joined = before == joiner && is_pictograph(next.code) && is_pictograph(first.code);
    const bool toned = is_skin_tone(next.code) && is_pictograph(before);
    const bool closes_flag = flag_open && is_regional(next.code);
    if (columns_of(next.code) != 0 && !joined && !toned && !closes_flag) break;
    if (closes_flag || (next.code == emoji_style && is_pictograph(first.code))) cluster.columns = 2;
    flag_open = flag_open && !closes_flag;
    before = next.code;
    cluster.bytes += next.bytes;
  }
  return cluster;
}

int display_width(std::string_view text) {
  int columns = 0;
  while (!text.empty()) {
    const Cluster cluster = first_cluster(text);
    columns += cluster.columns;
    text.remove_prefix(cluster.bytes);
  }
  return columns;
}

std::string cut(std::string_view text, int columns) {
  if (columns <= 0) return {};
  std::size_t fits_with_ellipsis = 0;
  int used = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Cluster cluster = first_cluster(text.substr(at));
    used += cluster.columns;
    if (used > columns) return std::string(text.substr(0, fits_with_ellipsis)) + "…";
    at += cluster.bytes;
    if (used < columns) fits_with_ellipsis = at;
  }
  return std::string(text);
}

}  // namespace eagle::view
