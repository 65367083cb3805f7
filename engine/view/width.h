// Text as a terminal shows it: safe to print, and how many columns it takes.
//
// Independent of the locale: the tables are in unicode_ranges.h. A cluster is what a terminal draws as
// one thing: a character with its combining marks, a joined emoji, a flag.
#pragma once

#include <string>
#include <string_view>

namespace eagle::view {

// `text` with everything escaped that would not print as itself: newline, tab and return as "\n", "\t",
// "\r", other controls and invisible formatting as "\x1b" or "\u{202e}", bytes that are not UTF-8 as
// "\xff". The result is valid UTF-8 without line breaks.
std::string escaped(std::string_view text);

// The functions below take valid UTF-8, as `escaped` makes it.

struct Cluster {
  std::size_t bytes = 0;  // of the text, at least 1 where the text is not empty
  int columns = 0;        // 0 (a lone combining mark), 1 or 2
};
Cluster first_cluster(std::string_view text);

int display_width(std::string_view text);

// `text` if it fits into `columns`, else as many whole clusters as fit before a final "…". Without a
// column there is nothing.
std::string cut(std::string_view text, int columns);

}  // namespace eagle::view
