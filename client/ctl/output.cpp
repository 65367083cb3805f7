#include "client/ctl/output.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <utility>

#include "engine/view/width.h"

namespace eagle::ctl {
namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

std::string spaces(int count) { return std::string(static_cast<std::size_t>(std::max(0, count)), ' '); }

}  // namespace

void Table::add(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::size_t i = 0; i < cells.size(); ++i)
    cells[i] = view::cut(view::escaped(cells[i]), columns_[i].most);
  rows_.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<int> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    int width = view::display_width(columns_[i].title);
    for (const auto& row : rows_) width = std::max(width, view::display_width(row[i]));
    widths.push_back(width);
  }
  std::string text;
  const auto line = [&](const auto& cell_of) {
    std::string one;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& cell = cell_of(i);
      const std::string room = spaces(widths[i] - view::display_width(cell));
      one += (i == 0 ? "" : "  ") + (columns_[i].align == Align::right ? room + cell : cell + room);
    }
    one.erase(one.find_last_not_of(' ') + 1);
    text += one + "\n";
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows_) line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::string list_text(const std::vector<std::pair<std::string, std::string>>& values) {
  int width = 0;
  for (const auto& [name, value] : values) width = std::max(width, view::display_width(name));
  std::string text;
  for (const auto& [name, value] : values)
    text +=
        name + spaces(width - view::display_width(name)) + "  " + view::cut(view::escaped(value), 100) + "\n";
  return text;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double size = static_cast<double>(bytes);
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  // What would round to 1024.0 is 1.0 of the next unit.
  for (size /= 1024; size >= 1023.95 && unit + 1 < std::size(units); size /= 1024) ++unit;
  return format("%.1f ", size) + units[unit];
}

std::string seconds_text(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds == 0) return "0 s";
  if (seconds < 0.99995e-3) return format("%.1f us", seconds * 1e6);
  if (seconds < 0.99995) return format("%.1f ms", seconds * 1e3);
  if (seconds < 59.95) return format("%.1f s", seconds);
  const auto whole = static_cast<std::uint64_t>(std::min(std::round(seconds), 1e15));
  const auto two = [](std::uint64_t large, const char* one, std::uint64_t small, const char* other) {
    return std::to_string(large) + one + std::to_string(small) + other;
  };
  if (whole < 3600) return two(whole / 60, " min ", whole % 60, " s");
  if (whole < 86400) return two(whole / 3600, " h ", whole % 3600 / 60, " min");
  return two(whole / 86400, " d ", whole % 86400 / 3600, " h");
}

std::string count_text(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string plural(std::uint64_t count, std::string_view what) {
  return count_text(count) + " " + std::string(what) + (count == 1 ? "" : "s");
}

std::string hex_text(std::uint64_t number) {
  return format("%016llx", static_cast<unsigned long long>(number));
}

}  // namespace eagle::ctl
