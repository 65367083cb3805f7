// Partial: the reduction of some consecutive samples, as the nodes of one fixed tree.
//
// The samples of a row are cut into leaves of equal length. Neighbouring leaves 2k and 2k+1 are combined,
// then neighbouring pairs, and so on; a last one without a neighbour is carried up as it is. A partial that
// covers leaves [a, b) holds the largest whole subtrees that lie in it, which are few. Whoever appends all
// leaves of a row in order, in as many partials as he likes, gets the same tree and so the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace eagle::run {

// The value of a node, as its reduction wants it: one number, or the two of a compensated sum.
struct Cell {
  alignas(8) std::byte bytes[16];
};

class Partial {
public:
  Partial() {}  // the nodes are left as they are: a few thousand bytes would be cleared for nothing

  struct Node {
    std::int64_t index;  // among the nodes of its level
    int level;           // 0: one leaf, 1: two, 2: four, ...
    Cell value;
  };

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::span<const Node> nodes() const { return std::span(nodes_).first(size_); }
  void clear() { size_ = 0; }

  // Appends a node that begins where this partial ends. `combine(left, right)` gives the parent's value.
  template <typename Combine>
  void append(Node node, const Combine& combine) {
    while (size_ > 0 && node.index % 2 == 1 && nodes_[size_ - 1].level == node.level) {
      node.value = combine(nodes_[--size_].value, node.value);
      node.index /= 2;
      ++node.level;
    }
    nodes_[size_++] = node;
  }

  // Appends all of `later`, which begins where this partial ends.
  template <typename Combine>
  void append(const Partial& later, const Combine& combine) {
    for (std::size_t i = 0; i < later.size_; ++i) append(later.nodes_[i], combine);
  }

  // The root, of a partial that covers a whole row and is not empty.
  template <typename Combine>
  [[nodiscard]] Cell root(const Combine& combine) const {
    Cell value = nodes_[size_ - 1].value;
    for (std::size_t i = size_ - 1; i-- > 0;) value = combine(nodes_[i].value, value);
    return value;
  }

private:
  // Levels rise to the middle of the range and fall again, each at most once: a row has fewer than 2^56
  // leaves.
  static constexpr std::size_t most = 2 * 56;
  std::array<Node, most> nodes_;
  std::size_t size_ = 0;
};

}  // namespace eagle::run
