#include "engine/base/nearest.h"

#include <algorithm>
#include <utility>

namespace eagle {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({replaced, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row[b.size()];
}

const std::string* nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t most = 4096;
  const std::string* best = nullptr;
  std::size_t least = 0;
  for (const std::string& candidate : candidates) {
    const std::size_t distance =
        edit_distance(word.substr(0, most), std::string_view(candidate).substr(0, most));
    if (best == nullptr || distance < least) {
      best = &candidate;
      least = distance;
    }
  }
  return best;
}

}  // namespace eagle
