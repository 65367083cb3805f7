// What eaglectl prints for people: tables, numbers with units, text that is safe in a terminal.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eagle::ctl {

// Columns as wide as their widest cell, two spaces between them. What came from outside is escaped, and cut
// with an ellipsis where it is wider than its column may be; without colour, so that it can be piped.
class Table {
public:
  enum class Align : std::uint8_t { left, right };
  struct Column {
    std::string title;
    Align align = Align::left;
    int most = 40;  // columns of a terminal
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  // As many cells as there are columns.
  void add(std::vector<std::string> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }
  [[nodiscard]] std::string text() const;  // with its titles; every line ends

private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// A value a line, "name  value".
std::string list_text(const std::vector<std::pair<std::string, std::string>>& values);

std::string bytes_text(std::uint64_t bytes);  // "17 B", "1.5 KiB", "64.0 GiB"
std::string seconds_text(
    double seconds);  // "1.2 us", "3.4 ms", "5.6 s", "7 min 8 s", "9 h 10 min", "11 d 12 h"
std::string count_text(std::uint64_t count);                     // "1,234,567"
std::string plural(std::uint64_t count, std::string_view what);  // "1 node", "2 nodes"
std::string hex_text(std::uint64_t number);                      // 16 digits

}  // namespace eagle::ctl
