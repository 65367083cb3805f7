// Names that came from outside, made safe to show: in errors and in the text form.
#pragma once

#include <string>
#include <string_view>

namespace eagle::kernel {

// Well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Backslash escapes for `quote`, the backslash, whatever could move a cursor, break a line or turn the
// direction of a text, and bytes that are not UTF-8; the result is UTF-8 on one line.
std::string escaped(std::string_view text, char quote);

// 'name' for an error message: escaped, and cut with an ellipsis when it is long.
std::string quote_name(std::string_view name);

}  // namespace eagle::kernel
