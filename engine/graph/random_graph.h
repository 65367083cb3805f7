// Random graph descriptions, for tests that compare with a slow definition.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <variant>
#include <vector>

#include "engine/graph/testing.h"

namespace eagle::graph::testing {

// Up to a dozen nodes over a few planes: host nodes with random views, kernel launches, groups, and
// conditionals that hold more of the same. It reads, and often races.
class RandomDescription {
public:
  explicit RandomDescription(std::mt19937_64& random) : random_(random) {}

  Description make() {
    for (int i = 0; i < 3; ++i) bytes_.push_back(out_.array({plane_bytes}, DType::boolean));
    cells_ = out_.array({4}, DType::i64);
    accumulate_ = out_.accumulate_kernel();
    finishing_ = out_.finishing_kernel();
    for (const v1::Stage& one : stages(1 + up_to(4), 0)) *out_.message.add_stages() = one;
    return std::move(out_);
  }

private:
  static constexpr std::int64_t plane_bytes = 192;

  std::int64_t up_to(std::int64_t last) {
    return std::uniform_int_distribution<std::int64_t>(0, last)(random_);
  }

  std::vector<v1::Stage> stages(std::int64_t count, int depth) {
    std::vector<v1::Stage> out;
    for (std::int64_t i = 0; i < count; ++i) {
      out.push_back(up_to(2) == 0 ? random_group(depth) : stage(node(depth)));
    }
    return out;
  }

  v1::Stage random_group(int depth) {
    std::vector<std::vector<v1::Node>> branches(static_cast<std::size_t>(2 + up_to(1)));
    for (std::vector<v1::Node>& branch : branches) {
      const std::int64_t count = 1 + up_to(1);
      for (std::int64_t i = 0; i < count; ++i) {
        const bool inner = depth < 2 && up_to(5) == 0;
        if (inner) {
          v1::Node item;
          *item.mutable_group() = random_group(depth + 1).group();
          branch.push_back(std::move(item));
        } else {
          branch.push_back(node(depth));
        }
      }
    }
    return group(branches);
  }

  // Each loop counts in a cell of its own, or not at all. Host nodes look at those of earlier ones.
  v1::Node loop(int depth) {
    const v1::Node made =
        repeat_while(name(), guard(), stages(1 + up_to(1), depth + 1), 1 + up_to(3), counter());
    return made;
  }
  std::optional<View> counter() {
    if (up_to(1) == 0) return std::nullopt;
    counters_.push_back(out_.array({1}, up_to(1) == 0 ? DType::i64 : DType::i32));
    return counters_.back();
  }

  v1::Node node(int depth) {
    switch (up_to(depth < 2 ? 6 : 4)) {
      case 0:
        return launch(name(), accumulate_, {{"x", elements(0)}, {"y", elements(1)}});
      case 1: {
        View mask = bytes_[2];
        mask.shape = {4};
        mask.offset = 4 * up_to(3);
        return launch(name(), finishing_, {{"t", elements(up_to(1))}, {"dt", 0.5}, {"done", mask}});
      }
      case 2: {
        View one = elements(1);
        one.shape = {1};
        return reduce(name(), elements(0), one, up_to(1) == 0 ? v1::REDUCE_SUM : v1::REDUCE_MAX, false);
      }
      case 3:
        return copy(name(), elements(0), elements(1));
      case 5:
        return skippable(name(), guard(), stages(1 + up_to(1), depth + 1));
      case 6:
        return loop(depth);
      default: {
        Planes reads = views();
        if (!counters_.empty() && up_to(1) == 0)
          reads.emplace_back("n", counters_[static_cast<std::size_t>(up_to(99)) % counters_.size()]);
        return host(name(), reads, views());
      }
    }
  }

  // Four aligned numbers of one of the planes.
  View elements(std::int64_t plane) {
    return plane::testing::array({4}, DType::f64, 8 * up_to(plane_bytes / 8 - 4),
                                 bytes_[static_cast<std::size_t>(plane)].plane);
  }

  Planes views() {
    Planes out;
    const std::int64_t count = up_to(2);
    for (std::int64_t i = 0; i < count; ++i) {
      View view = plane::testing::random_view(random_, plane_bytes);
      view.plane = bytes_[static_cast<std::size_t>(up_to(2))].plane;
      out.emplace_back(std::string(1, static_cast<char>('a' + up_to(3))), view);
    }
    return out;
  }

  Cells guard() {
    Cells cells{plane::testing::at(cells_, 0, up_to(3))};
    if (up_to(1) == 0) cells.baseline = plane::testing::at(cells_, 0, up_to(3));
    cells.negated = up_to(1) == 0;
    return cells;
  }

  std::string name() { return up_to(3) == 0 ? "" : "node" + std::to_string(up_to(99)); }

  std::mt19937_64& random_;
  Description out_;
  std::vector<View> bytes_;
  View cells_;
  std::vector<View> counters_;
  std::uint32_t accumulate_ = 0;
  std::uint32_t finishing_ = 0;
};

inline Description random_description(std::mt19937_64& random) { return RandomDescription(random).make(); }

// The groups around each leaf of some stages, and which of their branches it is in.
using Forks = std::map<const void*, std::size_t>;
inline void add_forks(const std::vector<Branch>& branches, const Forks& around, std::vector<Forks>& out) {
  for (std::size_t b = 0; b < branches.size(); ++b) {
    Forks inside = around;
    inside[&branches] = b;
    for (const Node& node : branches[b].nodes) {
      if (const auto* const inner = as<Group>(node)) {
        add_forks(inner->branches, inside, out);
      } else {
        out.push_back(inside);
      }
    }
  }
}
inline std::vector<Forks> forks_of(const std::vector<Stage>& stages) {
  std::vector<Forks> out;
  for (const Stage& one : stages) add_forks(one.branches, {}, out);
  return out;
}
inline bool in_different_branches(const Forks& a, const Forks& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& fork) {
    const auto other = b.find(fork.first);
    return other != b.end() && other->second != fork.second;
  });
}

// Whether two views share a byte, by listing the bytes.
inline bool share_bytes(const View& a, const View& b) {
  if (a.plane != b.plane) return false;
  const std::set<std::int64_t> bytes = plane::testing::bytes_touched(a);
  for (const std::int64_t byte : plane::testing::bytes_touched(b)) {
    if (bytes.contains(byte)) return true;
  }
  return false;
}

}  // namespace eagle::graph::testing
